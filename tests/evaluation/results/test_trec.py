"""Import and export of rankings, checked against ir_measures."""

import ir_measures
import numpy as np
import pandas as pd
import pytest

from aprec_like.errors import InputError
from aprec_like.metrics import MRR, NDCG, Recall
from evaluation import compare
from evaluation.results.load import load_runs
from evaluation.results.store import RunFolder
from evaluation.results.trec import export_results, import_results

METRICS = (Recall(1), Recall(10), NDCG(10), MRR())
NUM_USERS, DEPTH, NUM_ITEMS = 300, 50, 200


@pytest.fixture
def run(tmp_path):
    """Two models with complete rankings of 300 users; targets within the stored depth, so that MRR is exact too."""
    random = np.random.default_rng(0)
    run = RunFolder(tmp_path / "ours")
    names = [str(metric) for metric in METRICS]
    models = {"Good one": 10, "Bad": 40}
    settings = {
        "dataset": {},
        "evaluation": {"exclude_seen": True},
        "models": {name: {} for name in models},
        "columns": names,
    }
    run.write_recipe(b"", settings)
    users = np.array([f"u{number}" for number in range(NUM_USERS)], object)
    targets = random.integers(NUM_ITEMS, size=NUM_USERS)
    for name, worst in models.items():
        ranks = random.integers(1, worst, size=NUM_USERS)
        lists = np.stack([random.permutation(np.delete(np.arange(NUM_ITEMS), target))[:DEPTH] for target in targets])
        lists[np.arange(NUM_USERS), ranks - 1] = targets
        scores = -np.sort(-random.random((NUM_USERS, DEPTH)).astype(np.float32), axis=1)
        folder = run.model(name, 1)
        per_user = {"user": users, "target": targets, "rank": ranks.astype(float)}
        per_user |= {str(metric): metric.per_user(ranks) for metric in METRICS}
        folder.write_per_user(pd.DataFrame(per_user))
        folder.write_top_items(
            pd.DataFrame(
                {
                    "user": np.repeat(users, DEPTH),
                    "position": np.tile(np.arange(1, DEPTH + 1, dtype=np.int32), NUM_USERS),
                    "item": lists.ravel(),
                    "score": scores.ravel(),
                }
            )
        )
        folder.finish(seconds_to_best=1.0)
    return run


@pytest.fixture
def exported(run, tmp_path):
    folder = tmp_path / "trec"
    export_results(load_runs([run]), folder)
    return folder


def test_an_exported_ranking_is_imported_unchanged(run, exported):
    runs = load_runs([run])
    for name in ("Good one", "Bad"):
        imported = import_results(exported / f"{name}.run", runs)
        assert imported.name == f"{name} (imported)"
        for metric in runs.metrics:
            np.testing.assert_allclose(imported.per_user(metric), runs.find(name).per_user(metric), atol=1e-12)


def test_ir_measures_agrees(run, exported):
    qrels = list(ir_measures.read_trec_qrels(str(exported / "qrels.txt")))
    measures = {"Recall@10": ir_measures.R @ 10, "NDCG@10": ir_measures.nDCG @ 10, "MRR": ir_measures.RR}
    runs = load_runs([run])
    for name in ("Good one", "Bad"):
        ranking = list(ir_measures.read_trec_run(str(exported / f"{name}.run")))
        judged = ir_measures.calc_aggregate(list(measures.values()), qrels, ranking)
        for metric, measure in measures.items():
            assert judged[measure] == pytest.approx(runs.find(name).per_user(metric).mean(), abs=1e-9)


def test_csv_with_scores_or_ranks_and_per_user_metrics(run, exported, tmp_path):
    runs = load_runs([run])
    top = runs.find("Bad").folders[0].read_top_items()
    expected = runs.find("Bad").per_user("NDCG@10")
    shuffled = top.sample(frac=1, random_state=1)
    shuffled[["user", "item", "score"]].to_csv(tmp_path / "scores.csv", index=False)
    shuffled.rename(columns={"position": "rank"})[["user", "item", "rank"]].to_csv(tmp_path / "ranks.csv", index=False)
    runs.find("Bad").folders[0].read_per_user().sample(frac=1).to_csv(tmp_path / "metrics.csv", index=False)
    runs.find("Bad").folders[0].read_per_user().to_parquet(tmp_path / "metrics.parquet")
    for name in ("scores.csv", "ranks.csv", "metrics.csv", "metrics.parquet"):
        imported = import_results(tmp_path / name, runs)
        np.testing.assert_allclose(imported.per_user("NDCG@10"), expected, atol=1e-12)
        assert imported.name == name.split(".")[0]


def test_ties_count_half_and_a_target_outside_the_list_is_a_miss(run, tmp_path):
    runs = load_runs([run])
    cases = runs.cases
    lines = [f"{user} Q0 {target} 1 0.5 mine\n{user} Q0 x 2 0.5 mine\n" for user, target in cases.to_numpy()[1:]]
    lines.append(f"{cases['user'][0]} Q0 x 1 9 mine\n")
    (tmp_path / "mine.run").write_text("".join(lines))
    imported = import_results(tmp_path / "mine.run", runs)
    assert imported.name == "mine"
    assert imported.per_user("MRR")[0] == 0
    np.testing.assert_allclose(imported.per_user("MRR")[1:], 1 / 1.5)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda lines: lines[DEPTH:], "lacks the run's users: 1 of them, such as u0"),
        (lambda lines: [*lines, "stranger Q0 1 1 1 x"], "has others than the run's users: 1 of them, such as stranger"),
        (lambda lines: [*lines, lines[0]], "an item once per user. Received: user u0"),
        (lambda lines: [line.replace(" Q0", "") for line in lines], "6 columns"),
        (lambda lines: [lines[0].replace(lines[0].split()[4], "nan"), *lines[1:]], "score must be finite"),
        (lambda lines: [], "cannot be read"),
    ],
)
def test_files_that_do_not_fit_are_refused(run, exported, tmp_path, change, message):
    lines = (exported / "Bad.run").read_text().splitlines()
    (tmp_path / "broken.run").write_text("\n".join(change(lines)))
    with pytest.raises(InputError, match=message):
        import_results(tmp_path / "broken.run", load_runs([run]))


def test_the_command_puts_an_import_in_the_same_tested_table(run, exported, monkeypatch, capsys):
    arguments = [str(run.path), "--import", str(exported / "Bad.run"), "--metric", "NDCG@10", "--format", "json"]
    monkeypatch.setattr("sys.argv", ["compare", *arguments])
    assert compare.run_command(compare.main) == 0
    out = capsys.readouterr().out
    assert '"Bad (imported)"' in out and '"family_size": 3' in out
    assert "imported results are one training: Bad (imported)" in out


def test_ids_with_white_space_cannot_be_exported(run, tmp_path):
    folder = run.model("Bad", 1)
    folder.write_per_user(folder.read_per_user().assign(user="a b"))
    folder.finish(seconds_to_best=1.0)
    for path in run.path.glob("Good*/seed_1/status.json"):
        path.unlink()
    with pytest.raises(InputError, match="white space"):
        export_results(load_runs([run]), tmp_path / "trec")
