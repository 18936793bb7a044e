"""The page of a run is complete, escaped and self-contained, and works in a browser."""

import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from aprec_like.datasets import Lengths, Simulated
from aprec_like.settings import describe
from evaluation import report
from evaluation.page.data_and_models import as_code, dataset_facts
from tests.evaluation.made_runs import GRID, MIXED, make_run, small_dataset, write_model

VOID = {"meta", "br", "hr", "img", "input", "link"}
HOSTILE_NAME = "<script>alert(1)</script> & \"quotes\" 'all'"


class Page(HTMLParser):
    """The texts, attributes and tables of a page whose tags are all closed."""

    def __init__(self, text):
        super().__init__()
        self.open, self.attributes, self.ids, self.texts, self.scripts, self.tables = [], [], [], [], 0, []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        if tag not in VOID:
            self.open.append(tag)
        self.scripts += tag == "script"
        self.attributes += [(tag, *attribute) for attribute in attributes]
        self.ids += [value for name, value in attributes if name == "id"]
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append("")

    def handle_startendtag(self, tag, attributes):
        self.attributes += [(tag, *attribute) for attribute in attributes]
        self.ids += [value for name, value in attributes if name == "id"]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)
        if "td" in self.open or "th" in self.open:
            self.tables[-1][-1][-1] += data


def write_report(run, monkeypatch, *options):
    monkeypatch.setattr("sys.argv", ["report", str(run.path), *options])
    assert report.run_command(report.main) == 0
    return run.report_path.read_text()


def make_run_with_paper(path, **settings):
    published = {"SASRec": {"NDCG@10": 0.9}}
    return make_run(path, published=published, literature={"Quoted <i>": {"NDCG@10": 0.3}}, **settings)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A run with names that would break a page without escaping, its parsed page, and the text of the page."""
    models = MIXED | {HOSTILE_NAME: MIXED["SASRec"]}
    run = make_run_with_paper(tmp_path_factory.mktemp("report") / "made", models=models)
    run.model("Popularity", 1).write_status("failed", reason="out of <memory>")
    with pytest.MonkeyPatch.context() as patch:
        text = write_report(run, patch)
    return run, Page(text), text


def test_the_page_is_complete_and_shows_every_section(made):
    _, page, text = made
    sections = ["summary", "results", "pairs", "paper", "training", "calibration", "dataset", "models", "environment"]
    assert [identifier for identifier in page.ids if identifier in (*sections, "cite")] == [*sections, "cite"]
    assert len(set(page.ids)) == len(page.ids)
    assert len(text) < 3_000_000
    assert text.count("<svg") == len(list((made[0].figures_path).glob("*.png"))) == 7


def test_the_page_fetches_nothing(made):
    _, page, text = made
    assert page.scripts == 1
    for _, name, value in page.attributes:
        if name in ("src", "href", "xlink:href", "action", "data"):
            assert value.startswith(("#", "data:image/png;base64,")), value
    assert "default-src 'none'" in text
    assert not re.search(r"url\((?!#)|@import", text)


def test_texts_from_data_are_escaped(made):
    _, page, text = made
    assert "<script>alert" not in text
    assert any(HOSTILE_NAME in row[0] for row in page.tables[0])
    for raw in ("<memory>", "a <note>", "<fast>", "Quoted <i>", "<t>"):
        assert raw not in text and any(raw in data for data in page.texts), raw


def test_the_tables_have_means_intervals_stars_the_paper_and_budgets(made):
    run, page, _ = made
    header, *rows = page.tables[0]
    published = ["Recall@1 (paper)", "NDCG@10 (paper)"]
    assert header == ["Model", "Recall@1", "NDCG@10", *published, "Minutes"]
    sasrec = next(row for row in rows if row[0].split()[0] == "SASRec")
    mean = run.model("SASRec", 1).read_per_user()["NDCG@10"].mean()
    assert re.fullmatch(rf"{mean:.4f}\*0\.\d+ to 0\.\d+|{mean:.3f}\*0\.\d+ to 0\.\d+", sasrec[2])
    assert sasrec[3:] == ["", "0.9", "2.0"]
    assert all(len(row) == len(header) for row in rows)
    assert rows[-1] == ["Quoted <i> (quoted)", "", "", "", "0.3", ""]
    budgets = next(table for table in page.tables if "Memory, GiB" in table[0])
    sasrec = next(row for row in budgets if row[0].split() == ["SASRec", "underfit"])  # the fourth of five epochs
    assert sasrec[1:] == ["0.1800", "2.0", "2.7", "4", "5", "max epochs", "1.50", "1"]
    verdicts = next(table for table in page.tables if table[0][-1] == "Verdict")
    assert verdicts[1][0] == "SASRec" and verdicts[1][-1] == "off"


@pytest.mark.parametrize(
    ("known", "shown"), [({"density": 0.08}, ["8.0000% of all pairs of a user and an item"]), ({}, [])]
)
def test_the_density_is_that_of_describe_and_no_other(tmp_path, known, shown):
    run = make_run(tmp_path / "run")
    run.write_dataset(small_dataset(**known))
    assert [fact.values[0] for fact in dataset_facts(run) if fact.name == "Density"] == shown


def test_unfinished_models_are_listed_with_reasons(made):
    text = " ".join(made[1].texts)
    assert "Popularity, seed 1: failed: out of <memory>" in text
    assert "5 of 6 models finished" in text


def test_a_run_without_a_finished_model_has_a_page(tmp_path, monkeypatch):
    run = make_run(tmp_path / "young")
    for name in MIXED:
        run.model(name, 1).write_status("running")
    text = write_report(run, monkeypatch)
    assert "No model has finished yet." in Page(text).texts
    assert "0 of 5 models finished" in text


def test_a_changed_simulator_removes_the_truth_but_not_the_page(tmp_path, monkeypatch, capsys):
    data = describe(Simulated(num_users=100, num_items=50, lengths=Lengths(8, 0.3, 4, 20)))
    run = make_run(tmp_path / "old", {"SASRec": MIXED["SASRec"]}, dataset=data)
    text = write_report(run, monkeypatch)
    assert "not compared with the truth" in capsys.readouterr().err
    assert "Predicted@1" in text and "|p - P|" not in text


def test_a_loss_that_this_version_does_not_know_is_remarked_on(tmp_path, monkeypatch, capsys):
    own = MIXED["SASRec"] | {"loss": {"class": "OwnLoss", "num_negatives": 4}}
    text = write_report(make_run(tmp_path / "own", {"Own": own, "SASRec": MIXED["SASRec"]}), monkeypatch)
    remark = "Own has a loss that this version does not know: no probabilities; report --recipe FILE shows"
    assert remark in text and remark in capsys.readouterr().err


def test_settings_are_shown_as_python():
    assert as_code({"class": "A", "b": [1, None], "c": {"class": "D", "e": "f"}}) == "A(b=[1, None], c=D(e='f'))"
    assert as_code({"class": "A", "c": {"class": "D"}}, depth=0) == "A(\n    c=D(),\n)"


def test_another_folder_is_refused_in_one_line(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["report", str(tmp_path)])
    assert report.run_command(report.main) == 2
    assert capsys.readouterr().err.count("\n") == 1


def publish(run):
    """Remove what a published folder leaves out."""
    (run.path / "items.parquet").unlink()
    for path in run.path.rglob("top_items.parquet"):
        path.unlink()


def test_a_published_folder_gets_the_same_page_again(tmp_path, monkeypatch):
    run = make_run_with_paper(tmp_path / "made", dataset={"class": "MovieLens1M"})
    page = write_report(run, monkeypatch, "--user", "7")
    publish(run)
    run.report_path.unlink()
    (run.path / "table.md").write_text("of an earlier version")
    for path in run.figures_path.iterdir():
        path.unlink()
    assert write_report(run, monkeypatch) == page
    assert len(list(run.figures_path.glob("*.png"))) == 7
    assert "differs from the best" in (run.path / "table.md").read_text()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda run: (run.path / "report.json").unlink(), "no items.parquet (published folders may leave it out)"),
        (lambda run: run.model("SASRec", 1).finish(seconds_to_best=1.0), None),
        (
            lambda run: write_model(run, "SASRec", MIXED["SASRec"], np.ones(300), np.random.default_rng(1)),
            "other results",
        ),
        (lambda run: damage(run, {"calibration": {"SASRec": {}}}), "calibration['SASRec'].predicted is missing"),
        (lambda run: damage(run, {"item_counts": {"places": [1, 2], "counts": [1]}}), "must be equally long"),
    ],
)
def test_a_published_folder_keeps_its_page_if_what_is_stored_does_not_do(
    tmp_path, monkeypatch, capsys, change, message
):
    run = make_run(tmp_path / "made")
    page = write_report(run, monkeypatch)
    change(run)
    publish(run)
    code = report.run_command(report.main)
    if message is None:
        assert code == 0
        return
    assert code == 2
    assert message in capsys.readouterr().err
    assert run.report_path.read_text() == page


def train_again(run, name):
    write_model(run, name, MIXED[name], np.ones(300), np.random.default_rng(1))


def damage(run, changes):
    run.write_report_data(run.read_report_data() | changes)


def test_a_published_folder_with_later_trainings_keeps_what_is_stored_of_the_first(tmp_path, monkeypatch, capsys):
    run = make_run(tmp_path / "made")
    write_report(run, monkeypatch)
    stored = run.read_report_data()
    publish(run)
    write_model(run, "SASRec", MIXED["SASRec"], np.ones(300), np.random.default_rng(1), seed=2)
    for _ in range(2):  # the second time must not be of the remark of the first
        page = write_report(run, monkeypatch)
        assert capsys.readouterr().err.count("popularity of SASRec are of their first trainings alone") == 1
    assert "popularity of SASRec are of their first trainings alone" in page
    assert run.read_report_data() == stored


def test_a_published_folder_shows_no_other_user_and_no_truth_that_was_not_measured(tmp_path, monkeypatch, capsys):
    run = make_run(tmp_path / "made")
    write_report(run, monkeypatch)
    publish(run)
    for options, message in ((("--user", "9"), "without it the user shown is 1"), (("--truth",), "no comparison")):
        monkeypatch.setattr("sys.argv", ["report", str(run.path), *options])
        assert report.run_command(report.main) == 2
        assert message in capsys.readouterr().err


def test_the_report_needs_no_tensorflow(tmp_path):
    run = make_run(tmp_path / "made", {"Popularity": MIXED["Popularity"]})
    code = (
        f"import sys; sys.argv = ['report', {str(run.path)!r}]\n"
        "from evaluation import report; assert report.main() == 0\n"
        "assert 'tensorflow' not in sys.modules and 'keras' not in sys.modules"
    )
    root = Path(__file__).parents[3]
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_in_a_browser_the_page_sorts_fits_a_phone_and_logs_no_error(tmp_path, monkeypatch):
    pytest.importorskip("selenium")
    from tests.browser import is_installed, open_browser, open_page

    if not is_installed():
        pytest.skip("needs chromium and chromedriver")
    runs = [make_run_with_paper(tmp_path / "mixed"), make_run(tmp_path / "grid", GRID)]
    for run in runs:
        write_report(run, monkeypatch)
    names = "return Array.from(document.querySelector('#results tbody').rows, row => row.cells[0].textContent.trim())"
    values = "return Array.from(document.querySelector('#results tbody').rows, row => row.cells[2].dataset.value)"
    click = "document.querySelectorAll('#results thead button')[{}].click()"
    with open_browser() as driver:
        for width in (1280, 390):
            for run in runs:
                open_page(driver, run.report_path, width)
                assert driver.execute_script("return document.documentElement.scrollWidth") <= width
        open_page(driver, runs[0].report_path, 1280)
        before = driver.execute_script(names)
        driver.execute_script(click.format(2))
        descending = driver.execute_script(names)
        means = [float(value) for value in driver.execute_script(values)]
        assert means == sorted(means, reverse=True) and sorted(descending) == sorted(before)
        driver.execute_script(click.format(2))
        assert driver.execute_script(names) == descending[::-1]
        driver.execute_script(click.format(0))
        assert driver.execute_script(names) == sorted(before, key=str.casefold)
        driver.execute_script("document.querySelector('button.copy').click()")
        assert driver.get_log("browser") == []


def test_of_very_many_models_the_best_are_drawn_and_all_are_in_the_table(tmp_path, monkeypatch, capsys):
    models = {f"model {number}": list(MIXED.values())[1] for number in range(45)}
    run = make_run(tmp_path / "many", models)
    write_report(run, monkeypatch)
    assert "The best 40 models are shown, 5 others left out." in capsys.readouterr().err
    page = run.report_path.read_text()
    assert all(name in page for name in models) and "The best 12 of 45 models." in page
