const byId = (id) => document.getElementById(id);
const history = [];
let name = "";
let latest = 0; // number of the last search
let asked = 0; // number of the last request for recommendations

async function ask(path, body) {
  const options = body === undefined ? {} : { method: "POST", body: JSON.stringify(body) };
  const response = await fetch(path, options);
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.error);
  return answer;
}

function element(tag, text, className) {
  const made = document.createElement(tag);
  made.textContent = text ?? "";
  if (className) made.className = className;
  return made;
}

const label = (item) => item.title || String(item.id);

async function search() {
  const number = ++latest;
  const { items } = await ask(`items?q=${encodeURIComponent(byId("search").value)}`);
  if (number !== latest) return; // a later search has been answered
  const entries = items.map((item) => {
    const button = element("button", label(item));
    button.type = "button";
    if (item.title) button.append(" ", element("span", item.id, "id"));
    button.addEventListener("click", () => add(item));
    const entry = element("li");
    entry.append(button);
    return entry;
  });
  if (!entries.length && byId("search").value.trim()) entries.push(element("li", "no item found"));
  byId("found").replaceChildren(...entries);
}

function add(item) {
  latest += 1; // answers to earlier searches come too late
  history.push(item);
  byId("search").value = "";
  byId("found").replaceChildren();
  byId("search").focus();
  update();
}

async function update() {
  const number = ++asked;
  byId("history").replaceChildren(...history.map((item, place) => {
    const entry = element("li");
    const remove = element("button", "×");
    remove.type = "button";
    remove.setAttribute("aria-label", `remove ${label(item)}`);
    remove.addEventListener("click", () => { history.splice(place, 1); update(); });
    entry.append(element("span", label(item)), remove);
    return entry;
  }));
  byId("empty").hidden = history.length > 0;
  if (!name || !history.length) {
    byId("recommended").hidden = true;
    byId("message").textContent = "Add items to the history.";
    return;
  }
  const items = history.map((item) => item.id);
  try {
    const inputs = { items: [items], exclude_seen: !byId("seen").checked, k: 10 };
    const { outputs } = await ask(`v1/models/${encodeURIComponent(name)}:predict`, { inputs });
    const { similarities } = await ask("similarities", { items, recommended: outputs.ids[0] });
    if (number === asked) show(outputs, similarities);
  } catch (error) {
    byId("recommended").hidden = true;
    byId("message").textContent = error.message;
  }
}

function show(outputs, similarities) {
  const values = outputs.probabilities?.[0];
  byId("value-title").textContent = values ? "Probability" : "Score";
  byId("why-title").hidden = !similarities.length;
  byId("recommended").tBodies[0].replaceChildren(...outputs.ids[0].map((id, place) => {
    const row = element("tr");
    const title = outputs.titles?.[0][place];
    const item = element("td", title || id);
    if (title) item.append(" ", element("span", id, "id"));
    const value = element("td", values ? values[place].toFixed(4) : outputs.scores[0][place].toFixed(3));
    if (values) {
      const bar = element("meter");
      bar.value = values[place];
      value.append(bar);
    }
    row.append(item, value);
    if (similarities.length) row.append(element("td", why(similarities[place]), "why"));
    return row;
  }));
  byId("recommended").hidden = false;
  byId("message").textContent = "";
}

function why(cosines) {
  const order = cosines.map((value, place) => [value, place]).sort((a, b) => b[0] - a[0]);
  return order.slice(0, 2).map(([value, place]) => `${label(history[place])} (${value.toFixed(2)})`).join("; ");
}

byId("seen").addEventListener("change", update);
byId("search").addEventListener("input", search);
if (byId("search").value) search(); // typed before this script was loaded
const facts = await ask("model");
name = facts.model;
byId("model").textContent = name;
document.title = `${name}: recommendations`;
byId("facts").textContent = `${facts.num_items.toLocaleString("en")} items, run ${facts.run}. A demo on this machine.`;
byId("seen").checked = !facts.exclude_seen;
update();
