"""The run command from recipe to table, on the circle of items; models run in worker processes."""

import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from aprec_like.files import sha256_of
from evaluation import compare, run
from evaluation.results.files import write_sealed_json
from evaluation.results.store import RunFolder

RECIPE = """
from aprec_like.candidates import UniformCandidates
from aprec_like.datasets import TextFile
from aprec_like.losses import GBCE, Softmax
from aprec_like.metrics import NDCG, Recall
from aprec_like.models import Popularity, SASRec
from aprec_like.recipe import Evaluation, Recipe, Trained
from aprec_like.splits import LeaveOneOut
from aprec_like.optimizers import Adam
from aprec_like.training import Training

training = Training(batch_size=32, max_epochs=8, optimizer=Adam(0.01))
small = SASRec(max_length=8, embedding_dim=16, num_blocks=1, dropout_rate=0.1)
recipe = Recipe(
    dataset=TextFile("circle.txt"),
    split=LeaveOneOut(num_validation_users=50),
    models={
        "Popularity": Popularity(),
        "SASRec": Trained(small, Softmax(), training),
    },
    evaluation=Evaluation(metrics=(Recall(1), NDCG(10)), depth=5, candidates=UniformCandidates(5)),
)
"""


class Workspace:
    """A folder with a recipe and data, and the command line."""

    def __init__(self, folder: Path, monkeypatch, capfd):
        self.folder, self.monkeypatch, self.capfd = folder, monkeypatch, capfd
        self.write(RECIPE)

    def write(self, source: str) -> None:
        (self.folder / "circle_recipe.py").write_text(source)

    def run(self, *options: str, command=run) -> int:
        where = ["--data", str(self.folder), "--results", str(self.folder / "results")] if command is run else []
        first = [str(self.folder / "circle_recipe.py")] if command is run else []
        self.monkeypatch.setattr("sys.argv", [command.__name__, *first, *where, *options])
        code = command.run_command(command.main)
        self.out, self.err = self.capfd.readouterr()
        return code

    @property
    def results(self) -> Path:
        return self.folder / "results" / "circle_recipe"

    def contents(self) -> dict[Path, bytes]:
        return {path: path.read_bytes() for path in self.results.rglob("*") if path.is_file()}

    def per_user(self, model: str, seed: int = 1) -> pd.DataFrame:
        return pd.read_parquet(self.results / model / f"seed_{seed}" / "per_user.parquet")


@pytest.fixture
def workspace(circle_file, monkeypatch, capfd):
    return Workspace(circle_file.parent, monkeypatch, capfd)


def test_a_recipe_becomes_a_results_folder_that_is_finished_resumed_and_repeated(workspace):
    assert workspace.run() == 0
    assert "SASRec" in workspace.out and "Popularity" in workspace.out
    files = {str(path.relative_to(workspace.results)) for path in workspace.results.rglob("*") if path.is_file()}
    of_run = {"recipe.py", "recipe.json", "dataset.json", "environment.json", "table.md", "table.tex", "table.csv"}
    of_model = {"status.json", "history.csv", "metrics.json", "per_user.parquet", "top_items.parquet", "log.txt"}
    assert of_run | {"significance.csv"} | {f"SASRec/seed_1/{name}" for name in of_model} <= files

    status = json.loads((workspace.results / "SASRec/seed_1/status.json").read_text())
    assert status["state"] == "finished" and 1 <= status["best_epoch"] <= 8
    assert 0 < status["seconds_to_best"] <= status["seconds_total"]
    weights = workspace.results / "SASRec/seed_1/checkpoint/best.weights.h5"
    assert status["sha256"]["checkpoint/best.weights.h5"] == sha256_of(weights)
    per_user = workspace.per_user("SASRec")
    assert list(per_user) == [
        "user", "target", "rank", "target_score", "sigmoid_sum", "logsumexp", "seen_sigmoid_sum",
        "seen_softmax_sum", "Recall@1", "NDCG@10",
        "sampled_rank", "Recall@1 (sampled)", "NDCG@10 (sampled)",
    ]  # fmt: skip
    assert per_user["Recall@1 (sampled)"].mean() > 0.9
    metrics = json.loads((workspace.results / "SASRec/seed_1/metrics.json").read_text())
    assert metrics["users"] == len(per_user) == 200
    assert metrics["metrics"]["NDCG@10"]["mean"] == pytest.approx(per_user["NDCG@10"].mean())
    top = pd.read_parquet(workspace.results / "SASRec/seed_1/top_items.parquet")
    firsts = top[top["position"] == 1].merge(per_user, on="user")
    assert ((firsts["item"] == firsts["target"]) == (firsts["Recall@1"] == 1)).all()
    history = pd.read_csv(workspace.results / "SASRec/seed_1/history.csv")
    assert list(history["epoch"]) == list(range(1, 9))

    # The same command again trains nothing.
    before = (workspace.results / "SASRec/seed_1/status.json").read_bytes()
    assert workspace.run() == 0
    assert "SASRec, seed 1: finished on" in workspace.err
    assert (workspace.results / "SASRec/seed_1/status.json").read_bytes() == before

    # Trained again from the same seed: the same values; another seed: the same users and targets.
    assert workspace.run("--fresh", "--only", "SASRec") == 0
    pd.testing.assert_frame_equal(workspace.per_user("SASRec"), per_user, check_exact=True)
    assert workspace.run("--only", "SASRec", "--seeds", "2") == 0
    other = workspace.per_user("SASRec", seed=2)
    assert other[["user", "target"]].equals(per_user[["user", "target"]])
    assert not other["target_score"].equals(per_user["target_score"])

    # compare prints what run printed, in every format.
    assert workspace.run(str(workspace.results), "--format", "markdown", command=compare) == 0
    assert workspace.out == (workspace.results / "table.md").read_text()

    # A changed model that is finished is refused with the difference; an added one is welcome.
    workspace.write(RECIPE.replace("dropout_rate=0.1", "dropout_rate=0.2"))
    assert workspace.run("--only", "Popularity") == 2
    assert "models['SASRec'] has changed" in workspace.err and '"dropout_rate": 0.2' in workspace.err
    workspace.write(
        RECIPE.replace('"Popularity": Popularity(),', '"Popularity": Popularity(), "Counts": Popularity(),')
    )
    assert workspace.run("--only", "Counts") == 0
    assert workspace.per_user("Counts")["rank"].equals(workspace.per_user("Popularity")["rank"])


def test_a_training_goes_on_with_larger_limits_to_the_same_bytes(workspace):
    """As if the limits had been so from the start: 2 epochs at first, then 4 and a larger patience."""
    short = RECIPE.replace("max_epochs=8", "max_epochs=2")
    longer = RECIPE.replace("max_epochs=8", "max_epochs=4, early_stopping=EarlyStopping(patience=300)")
    longer = longer.replace("import Training\n", "import EarlyStopping, Training\n")
    workspace.write(short)
    assert workspace.run("--only", "SASRec") == 0
    assert "SASRec (epochs cut)" in workspace.out and "max_epochs=2 ended training" in workspace.out
    workspace.write(longer)
    assert workspace.run("--only", "SASRec") == 0
    assert "resumes from epoch 3, step 0" in workspace.err
    files = [workspace.results / "SASRec/seed_1" / name for name in ("metrics.json", "per_user.parquet")]
    gone_on = [path.read_bytes() for path in files]
    assert workspace.run("--only", "SASRec", "--fresh") == 0
    assert [path.read_bytes() for path in files] == gone_on

    workspace.write(short)
    assert workspace.run("--only", "SASRec") == 2
    assert '- "max_epochs": 4' in workspace.err and '+ "max_epochs": 2' in workspace.err
    for state in (workspace.results / "SASRec/seed_1/checkpoint").glob("state-*"):
        state.unlink()
    workspace.write(longer.replace("max_epochs=4", "max_epochs=6"))
    assert workspace.run("--only", "SASRec") == 2
    assert "its checkpoint was not kept (--keep-checkpoints keeps it)" in workspace.err


def test_another_depth_is_ranked_from_the_stored_weights_to_the_bytes_of_a_fresh_run(workspace):
    """The best 12 items instead of 5; neither an interruption before the ranking nor `--only` trains again."""
    short = RECIPE.replace("max_epochs=8", "max_epochs=2")
    workspace.write(short)
    assert workspace.run() == 0
    folder = RunFolder(workspace.results).model("SASRec", 1)
    seconds = folder.status()["seconds_to_best"]
    workspace.write(short.replace("depth=5", "depth=12"))
    folder.weights_path.rename(workspace.folder / "weights")
    before = workspace.contents()
    assert workspace.run() == 2
    assert "best 5 items of every user; for 12 it must be ranked again, and its weights are not" in workspace.err
    assert workspace.contents() == before

    (workspace.folder / "weights").rename(folder.weights_path)
    folder.write_status("interrupted", reason="stopped by the user")
    assert workspace.run("--only", "Popularity") == 0  # SASRec is not finished, and not asked for
    assert workspace.run() == 0
    assert "SASRec: is ranked again with its stored weights, for the best 12 items" in workspace.err
    assert "epoch 1, step" not in workspace.err and folder.status()["seconds_to_best"] == seconds
    names = ("metrics.json", "per_user.parquet", "top_items.parquet")
    files = [f"{model}/seed_1/{name}" for model in ("SASRec", "Popularity") for name in names]
    files += ["SASRec/seed_1/checkpoint/best.weights.h5"]
    ranked_again = {name: (workspace.results / name).read_bytes() for name in files}
    assert workspace.run("--fresh") == 0
    assert {name: (workspace.results / name).read_bytes() for name in files} == ranked_again

    # Results of earlier versions do not say their depth; `--only` ranks the others again too.
    status = folder.status()
    write_sealed_json(folder.path / "status.json", "status", {key: status[key] for key in status if key != "depth"})
    workspace.write(short.replace("depth=5", "depth=3"))
    assert workspace.run("--only", "Popularity") == 0
    assert "SASRec: is ranked again" in workspace.err and folder.read_top_items()["position"].max() == 3


def test_a_failing_model_does_not_affect_the_others(workspace):
    workspace.write(RECIPE.replace("Adam(0.01)", "Adam(1e30)"))
    assert workspace.run() == 1
    status = json.loads((workspace.results / "SASRec/seed_1/status.json").read_text())
    assert status["state"] == "failed" and "not finite" in status["reason"]
    assert "Traceback" in (workspace.results / "SASRec/seed_1/log.txt").read_text()
    assert not list(workspace.results.rglob("state-*"))  # a resumed training would fail again
    assert "Traceback" not in workspace.err
    assert "SASRec, seed 1: failed" in workspace.out
    assert (workspace.results / "Popularity/seed_1/metrics.json").exists()


def test_smoke_shrinks_training_and_has_a_separate_folder(workspace):
    workspace.write(RECIPE.replace("max_epochs=8", "max_epochs=5000"))
    assert workspace.run("--smoke") == 0
    status = json.loads((workspace.folder / "results/circle_recipe-smoke/SASRec/seed_1/status.json").read_text())
    assert status["epochs"] == 2
    assert not workspace.results.exists()


def test_smoke_on_data_that_is_not_on_disk_uses_simulated_data(workspace):
    (workspace.folder / "circle.txt").unlink()
    assert workspace.run("--smoke", "--only", "Popularity") == 0
    dataset = json.loads((workspace.folder / "results/circle_recipe-smoke/dataset.json").read_text())
    assert dataset["dataset"]["class"] == "Simulated"
    assert dataset["users"] >= 500


def test_a_dry_run_prints_the_plan_and_writes_nothing(workspace):
    workspace.write(RECIPE.replace("Softmax()", "GBCE(num_negatives=4, calibration=0.5)"))
    assert workspace.run("--dry-run") == 0
    assert "200 users, 20 items" in workspace.out
    assert "alpha 0.210526, beta 0.60526" in workspace.out
    assert "6 steps per epoch" in workspace.out
    assert not (workspace.folder / "results").exists()


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        (("recipe = Recipe(", "recipe = Recipe(("), (), "circle_recipe.py:14"),
        (("import GBCE", "import Missing"), (), "circle_recipe.py:4: ImportError"),
        (("GBCE, Softmax", "GBCE, Softmax, no_such"), (), "circle_recipe.py:4: ImportError"),
        (("Softmax(), training", "GBCE(num_negatives=4, calibration=1.5), training"), (), "calibration=1.5"),
        (('"circle.txt"', '"nothing.txt"'), (), "nothing.txt"),
        (('"circle.txt"', '"broken.txt"'), (), "broken.txt:17"),
        (("num_validation_users=50", "num_validation_users=500"), (), "num_validation_users=500"),
        (("", ""), ("--only", "NoSuch"), "no model 'NoSuch'; it has Popularity, SASRec"),
    ],
)
def test_wrong_input_is_one_line_exit_code_2_and_nothing_written(workspace, change, options, message):
    lines = (workspace.folder / "circle.txt").read_text().splitlines()
    (workspace.folder / "broken.txt").write_text("\n".join([*lines[:16], "17", *lines[16:]]))
    workspace.write(RECIPE.replace(*change, 1))
    assert workspace.run(*options) == 2
    assert workspace.err.count("\n") == 1
    assert workspace.err.startswith("error: ") and message in workspace.err
    assert not (workspace.folder / "results").exists()


def test_filters_and_a_temporal_split_are_in_dataset_json(workspace):
    random = np.random.default_rng(0)
    rows = [
        f"u{user},{'abcdefghij'[item]},{time},{item % 5 + 1}"
        for user, item, time in zip(
            random.integers(60, size=900), random.integers(10, size=900), random.integers(10_000, size=900), strict=True
        )
    ]
    (workspace.folder / "events.csv").write_text("\n".join(["user,item,time,stars", *rows]))
    source = RECIPE.replace(
        'TextFile("circle.txt")', 'CSVFile("events.csv", user="user", item="item", timestamp="time", rating="stars")'
    )
    source = source.replace("import TextFile", "import CSVFile").replace(
        "split=LeaveOneOut(num_validation_users=50)",
        "filters=(MinimumRating(2), WithoutRepeats(), KCore(3, 3)), split=TemporalSplit(0.2, 0.2)",
    )
    workspace.write(
        "from aprec_like.filters import KCore, MinimumRating, WithoutRepeats\n"
        "from aprec_like.splits import TemporalSplit\n" + source
    )
    assert workspace.run() == 0, workspace.err
    dataset = json.loads((workspace.results / "dataset.json").read_text())
    assert [kept["class"] for kept in dataset["filters"]] == ["MinimumRating", "WithoutRepeats", "KCore"]
    assert dataset["items"] == 8 and "leakage" not in dataset  # a temporal split trains on the past alone
    assert "trains on the future" not in workspace.err
    per_user = workspace.per_user("SASRec")
    assert per_user["user"].str.startswith("u").all() and set(per_user["target"]) <= set("abcdefghij")
    top = pd.read_parquet(workspace.results / "SASRec/seed_1/top_items.parquet")
    assert set(top["item"]) <= set("abcdefghij")


@pytest.mark.parametrize(("option", "module", "extra"), [("--ray", "ray", "cluster"), ("--slurm", "submitit", "slurm")])
def test_a_cluster_that_cant_be_used_is_one_line_before_data_is_read(workspace, monkeypatch, option, module, extra):
    monkeypatch.setitem(sys.modules, module, None)
    assert workspace.run(option) == 2
    assert workspace.err.count("\n") == 1 and f'pip install "aprec_like[{extra}]"' in workspace.err
    assert not (workspace.folder / "results").exists()
