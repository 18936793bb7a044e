"use strict";

// A cell's value: what the page says it is, else a number in its text, else the text.
function valueOf(row, column) {
  const cell = row.cells[column];
  const text = cell.dataset.value ?? cell.textContent.trim();
  if (text === "") return null;
  const number = Number(text.replace(/[,%*†≤<]/g, "").trim());
  return Number.isNaN(number) ? text : number;
}

function compare(one, other) {
  if (typeof one === "number" && typeof other === "number") return one - other;
  return String(one).localeCompare(String(other), undefined, { numeric: true });
}

// Sort the rows of every block of a table; what is empty stays last either way. The first click sorts numbers downwards.
function sortBy(table, header) {
  const column = header.cellIndex;
  const first = header.dataset.first ?? "descending";
  const direction = header.ariaSort === first ? (first === "descending" ? "ascending" : "descending") : first;
  for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
  header.setAttribute("aria-sort", direction);
  const sign = direction === "ascending" ? 1 : -1;
  for (const block of table.tBodies) {
    const rows = Array.from(block.rows, (row) => ({ row, value: valueOf(row, column) }));
    rows.sort((one, other) => {
      if (one.value === null || other.value === null) return (one.value === null) - (other.value === null);
      return sign * compare(one.value, other.value);
    });
    block.append(...rows.map(({ row }) => row));
  }
}

for (const header of document.querySelectorAll("table.sortable thead th")) {
  header.querySelector("button").addEventListener("click", () => sortBy(header.closest("table"), header));
}

for (const button of document.querySelectorAll("button.copy")) {
  button.addEventListener("click", async () => {
    const source = document.getElementById(button.dataset.of);
    const range = document.createRange();
    range.selectNodeContents(source);
    getSelection().removeAllRanges();
    getSelection().addRange(range);
    try {
      await navigator.clipboard.writeText(source.textContent);
    } catch {
      document.execCommand("copy");
    }
    button.textContent = "Copied";
  });
}
