"""Names and ids of strangers: no terminal executes them, no spreadsheet computes them, one error is one line."""

import csv
import io
import json
import sys

import pandas as pd
import pytest

from evaluation import compare, data
from evaluation.cli import run_command
from evaluation.datasheets.describe import latex_row
from evaluation.printable import printable, spreadsheet_cell
from evaluation.results.store import RunFolder
from evaluation.table import Table, as_text
from evaluation.table_formats import as_csv, as_latex, as_markdown
from tests.conftest import interactions_from
from tests.evaluation.made_runs import make_run

CODES = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202e\x7f"
"""Sets a terminal's title, clears it, colours it, and turns the direction of writing."""


def is_harmless(text: str) -> bool:
    return all(character.isprintable() or character == "\n" for character in text)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("gSASRec, t=0.75: модель 模型", "gSASRec, t=0.75: модель 模型"),
        ("a\x1b[31mb", "a\\u001b[31mb"),
        ("two\nlines\tand\rtabs", "two lines and tabs"),
        ("\U000e0001", "\\udb40\\udc01"),
        ("\ud800", "\\ud800"),
        ("no\xa0break", "no break"),
    ],
)
def test_a_text_is_shown_on_one_line_without_codes(text, shown):
    assert printable(text) == shown


@pytest.mark.parametrize("text", ["=cmd|' /C calc'!A0", "@SUM(1)", "+1+cmd", "-2+3", "\t=1", " =1", "\uff1d1"])
def test_a_cell_that_a_spreadsheet_would_compute_is_a_text(text):
    assert spreadsheet_cell(text).startswith("'")


@pytest.mark.parametrize("value", ["-0.25*", "+12.5%", "+0.0012†", "gSASRec", "-1e-05", 0.5, None, True, "a=b"])
def test_numbers_with_marks_and_names_stay_as_they_are(value):
    assert spreadsheet_cell(value) == value


@pytest.mark.parametrize("write", [as_text, as_markdown, as_latex, as_csv])
def test_no_part_of_a_table_lets_codes_through(write):
    text = f"{CODES}\nx"
    table = Table(text, [text, text], [[[text, text]]], text, [text], [(text, 1)])
    written = write(table)
    assert is_harmless(written) and "owned" in written
    assert written.count("\n") == write(Table("x", ["x", "x"], [[["x", "x"]]], "x", ["x"], [("x", 1)])).count("\n")


def test_all_that_a_command_prints_is_filtered_and_json_stays_json(capsys):
    def main() -> int:
        print(json.dumps({"name": CODES}, ensure_ascii=False))
        print(CODES, file=sys.stderr)
        return 0

    assert run_command(main) == 0
    out, err = capsys.readouterr()
    assert is_harmless(out) and is_harmless(err)
    assert json.loads(out) == {"name": CODES}


def called(monkeypatch, capsys, command, *options):
    monkeypatch.setattr("sys.argv", [command.__name__, *map(str, options)])
    code = run_command(command.main)
    out, err = capsys.readouterr()
    assert is_harmless(out) and is_harmless(err), (out, err)
    return code, out, err


@pytest.mark.parametrize("form", ["text", "markdown", "latex", "csv", "json"])
def test_a_results_folder_of_a_stranger_shows_no_codes(tmp_path, monkeypatch, capsys, form):
    """In the name of the folder, the reason of a failure, and the tag of an imported ranking."""
    run = make_run(tmp_path / f"{CODES}\n")
    run.model("Popularity", 1).write_status("failed", reason=f"{CODES}\nsecond line")
    users = run.model("SASRec", 1).read_per_user()["user"]
    lines = [f"{user} Q0 {item} 1 {-item} {CODES}=" for user in users for item in range(10)]
    (tmp_path / "their.run").write_text("\n".join(lines))
    options = (run.path, "--pairwise", "--format", form, "--import", tmp_path / "their.run")
    code, out, _ = called(monkeypatch, capsys, compare, *options)
    assert code == 0 and "owned" in out
    if form == "csv":
        assert not any(cell.startswith("=") for row in csv.reader(io.StringIO(out)) for cell in row)


def test_an_unprintable_name_in_recipe_json_is_refused(tmp_path, monkeypatch, capsys):
    run = make_run(tmp_path / "run")
    recipe = run.read_recipe()
    RunFolder(run.path).write_recipe(b"", recipe | {"columns": ["NDCG@10\x1b[2J\n"]})
    code, out, err = called(monkeypatch, capsys, compare, run.path)
    assert (code, out, err.count("\n")) == (2, "", 1) and "printable name" in err


def test_ids_and_column_names_of_a_data_file_show_no_codes(tmp_path, monkeypatch, capsys):
    path = tmp_path / "a\x1b$_#{}\\.csv"
    rows = [{"user": f"u{CODES}\n", "item": f"{item}{CODES}\n"} for item in range(3)]
    pd.DataFrame(rows).to_csv(path, index=False)
    code, out, _ = called(monkeypatch, capsys, data, "describe", path)
    assert code == 0 and "owned" in out and len(out.splitlines()) == 12
    pd.DataFrame(rows).rename(columns={"user": f"u{CODES}\n"}).to_csv(path, index=False)
    code, _, err = called(monkeypatch, capsys, data, "describe", path)
    assert code == 2 and err.count("\n") == 1 and "say which column has the users" in err


def test_the_latex_row_of_a_dataset_escapes_every_special_character():
    row = latex_row("a_b & 50% $x$ #1 {y} \\end ~^", interactions_from([[0, 1], [1, 0]]))
    name = row.split(" & 2 & ")[0]
    assert name == (r"a\_b \& 50\% \$x\$ \#1 \{y\} \textbackslash{}end \textasciitilde{}\textasciicircum{}")
