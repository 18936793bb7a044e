import numpy as np
import pandas as pd
import pytest

from aprec_like.errors import InputError
from evaluation import compare
from evaluation.analysis import breakdown as findings
from evaluation.analysis.comparison import Rules, compare_models
from evaluation.analysis.significance import Interval, paired_t
from evaluation.results.load import load_runs
from evaluation.results.store import RunFolder
from evaluation.table import Entry

NUM_USERS = 400


def trained(architecture, loss, **settings):
    return {"class": "Trained", "model": {"class": architecture}, "loss": {"class": loss, **settings}}


MODELS = {
    "S1": trained("SASRec", "BCE", num_negatives=1),
    "SA": trained("SASRec", "Softmax"),
    "B1": trained("BERT4Rec", "BCE", num_negatives=1),
    "BA": trained("BERT4Rec", "Softmax"),
}
LEVELS = {"S1": 0.4, "SA": 0.5, "B1": 0.4, "BA": 0.6}


@pytest.fixture
def run(tmp_path):
    """Four models of two architectures and two losses; the better ones are better only for long histories."""
    random = np.random.default_rng(0)
    run = RunFolder(tmp_path / "crossed")
    published = {"SA": {"NDCG@10": 0.5}, "S1": {"NDCG@10": 0.41}, "B1": {"NDCG@10": 0.9}}
    settings = {"evaluation": {"exclude_seen": True}, "models": MODELS, "columns": ["NDCG@10"], "published": published}
    run.write_recipe(b"", settings)
    users = np.arange(NUM_USERS)
    lengths = np.repeat([5, 10, 50, 100], NUM_USERS // 4)
    noise = random.normal(scale=0.02, size=NUM_USERS)
    for name, level in LEVELS.items():
        values = np.where(lengths > 20, level + (level - 0.4), 0.4) + noise + random.normal(scale=0.01, size=NUM_USERS)
        folder = run.model(name, 1)
        folder.write_per_user(pd.DataFrame({"user": users, "target": users % 7, "NDCG@10": values}))
        top = pd.DataFrame({"user": np.repeat(users, 10), "position": np.tile(np.arange(1, 11), NUM_USERS)})
        folder.write_top_items(top.assign(item=top["position"] - 1, score=0.0))
        folder.finish(seconds_to_best=1.0)
    run.write_cases(pd.DataFrame({"user": users, "history_length": lengths, "target_count": np.arange(NUM_USERS)}))
    run.write_items(pd.DataFrame({"item": np.arange(40), "count": np.arange(40, 0, -1)}))
    run.write_dataset({})
    return run


def texts(line):
    return [entry.text + entry.mark if isinstance(entry, Entry) else entry for entry in line]


def test_every_pair_is_tested_in_one_family(run):
    runs = load_runs([run])
    pairs = findings.compare_pairs(runs, "NDCG@10", Rules(correction="bonferroni"))
    assert len(pairs.tests) == 6
    difference = runs.find("S1").per_user("NDCG@10") - runs.find("SA").per_user("NDCG@10")
    assert pairs.p_corrected["S1", "SA"] == pytest.approx(min(1, 6 * paired_t(difference)))
    block = findings.pairwise_table(pairs).blocks[0]
    assert texts(block[0])[:2] == ["S1", ""]
    assert texts(block[0])[2].startswith("-") and texts(block[1])[1].startswith("+")
    assert texts(block[0])[2][1:] == texts(block[1])[1][1:]


def test_effects_across_and_down(run):
    runs = load_runs([run])
    table = findings.effects_table(runs, "NDCG@10", Rules())
    assert table.header == ["NDCG@10", "BCE(k=1)", "Softmax", "BCE(k=1) to Softmax"]
    means = {name: runs.find(name).per_user("NDCG@10").mean() for name in MODELS}
    (sasrec, bert), (down,) = (list(map(texts, block)) for block in table.blocks)
    assert sasrec[3] == f"{means['SA'] / means['S1'] - 1:+.1%}*"
    assert bert[3] == f"{means['BA'] / means['B1'] - 1:+.1%}*"
    assert down[2] == f"{means['BA'] / means['SA'] - 1:+.1%}*"
    assert down[1] == f"{means['B1'] / means['S1'] - 1:+.1%}"  # no effect was planted there
    assert "4 steps" in table.caption


def test_effects_need_a_whole_grid(run):
    run.model("BA", 1).write_status("failed", reason="x")
    with pytest.raises(InputError, match="every architecture with every loss"):
        findings.effects_table(load_runs([run]), "NDCG@10", Rules())


@pytest.mark.parametrize(
    ("published", "digits", "expected"),
    [
        (0.151, 3, "inside our interval"),
        (0.16, 2, "inside our interval"),  # the paper's 0.16 may have been 0.155
        (0.16, 3, "off"),  # its 0.160 can't
        (0.157, 3, "within 5 %"),
        (0.165, 3, "off"),
    ],
)
def test_verdicts(published, digits, expected):
    assert findings.verdict(Interval(0.15, 0.145, 0.1555), published, digits) == expected


def test_a_zero_at_the_end_of_a_published_number_is_a_digit(run):
    """0.300 is the float 0.3; other numbers of the metric tell how many digits the paper has."""
    settings = run.read_recipe()
    published = {"SA": {"NDCG@10": 0.3}, "S1": {"NDCG@10": 0.123}}
    run.write_recipe(b"", settings | {"published": published})
    table, _ = findings.published_table(compare_models(load_runs([run])))
    assert [line[4] for line in table.blocks[0] if line[0] == "SA"] == ["0.300"]


def test_a_published_number_that_is_off_fails_the_check(run, monkeypatch, capsys):
    table, is_right = findings.published_table(compare_models(load_runs([run])))
    verdicts = {line[0]: line[-1] for line in table.blocks[0]}
    assert verdicts == {"SA": "inside our interval", "S1": "within 5 %", "B1": "off"}
    assert not is_right
    monkeypatch.setattr("sys.argv", ["compare", str(run.path), "--check"])
    assert compare.run_command(compare.main) == 1
    assert "off" in capsys.readouterr().out


def test_beyond_accuracy_by_hand(run):
    """Everyone is shown the ten most popular of forty items: a quarter of the catalogue, places 1 to 10."""
    block = findings.beyond_accuracy_table(load_runs([run])).blocks[0]
    assert [line[1:] for line in block] == [["25.0%", "5.5"]] * 4


def test_strata_find_where_the_difference_lies(run):
    strata = findings.stratify(load_runs([run]), "NDCG@10", "BA", "B1")
    by_length = [stratum for stratum in strata if stratum.by == "history length"]
    assert [stratum.bounds for stratum in by_length] == [(5, 5), (10, 10), (50, 50), (100, 100)]
    assert sum(stratum.num_users for stratum in by_length) == NUM_USERS
    for stratum in by_length[:2]:
        assert stratum.difference.low < 0 < stratum.difference.high or abs(stratum.difference.mean) < 0.01
    for stratum in by_length[2:]:
        assert stratum.difference.low > 0.3


def test_equal_values_stay_together():
    bins = findings._quantile_bins(np.array([1, 1, 1, 1, 1, 1, 1, 2, 3]))
    values = np.array([1, 1, 1, 1, 1, 1, 1, 2, 3])
    assert sum(map(len, bins)) == 9
    assert [set(values[rows]) & {1} for rows in bins].count({1}) == 1


def test_the_command_draws_and_prints_them_all(run, tmp_path, monkeypatch, capsys):
    options = [
        "--pairwise",
        "--effects",
        "--beyond-accuracy",
        "--explain",
        "BA",
        "S1",
        "--figures",
        str(tmp_path / "f"),
    ]
    for kind in ("text", "markdown", "latex", "json"):
        monkeypatch.setattr("sys.argv", ["compare", str(run.path), *options, "--format", kind])
        assert compare.run_command(compare.main) == 0
        assert "Coverage@10" in capsys.readouterr().out
    figures = sorted(path.name for path in (tmp_path / "f").iterdir())
    assert figures == ["crossed-pairwise-NDCG@10.pdf", "crossed-strata-NDCG@10.pdf"]
    assert all((tmp_path / "f" / name).read_bytes().startswith(b"%PDF") for name in figures)


def test_a_folder_says_what_it_lacks(run):
    (run.path / "cases.parquet").unlink()
    (run.path / "items.parquet").unlink()
    with pytest.raises(InputError, match="published folders may leave it out"):
        findings.stratify(load_runs([run]), "NDCG@10", "BA", "B1")
    with pytest.raises(InputError, match="published folders may leave it out"):
        findings.beyond_accuracy_table(load_runs([run]))
