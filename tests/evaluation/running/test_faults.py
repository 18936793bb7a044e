"""Real runs that are killed, interrupted and started again, compared with one that was not."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import circle_sequences, write_pairs

ROOT = Path(__file__).parents[3]

RECIPE = """
from aprec_like.datasets import TextFile
from aprec_like.losses import BCE, GBCE, Softmax
from aprec_like.models import BERT4Rec, Popularity, SASRec
from aprec_like.optimizers import Adam
from aprec_like.recipe import MFBPR, Evaluation, Recipe, Trained
from aprec_like.splits import LeaveOneOut
from aprec_like.training import EarlyStopping, Training

training = Training(batch_size=32, max_epochs=8, early_stopping=EarlyStopping(patience=8), optimizer=Adam(0.01))
small = SASRec(max_length=8, embedding_dim=8, num_blocks=1, dropout_rate=0.2)
masked = BERT4Rec(max_length=8, embedding_dim=8, num_layers=1, feed_forward_dim=16)
recipe = Recipe(
    dataset=TextFile("circle.txt"),
    split=LeaveOneOut(num_validation_users=50),
    models={
        "Popularity": Popularity(),
        "MF-BPR": MFBPR(embedding_dim=8, epochs=8, batch_size=64),
        "SASRec": Trained(small, BCE(1), training),
        "gSASRec": Trained(small, GBCE(8, 0.75), training),
        "BERT4Rec": Trained(masked, Softmax(), training),
    },
    evaluation=Evaluation(depth=5),
)
"""
MODELS = ("MF-BPR", "SASRec", "gSASRec", "BERT4Rec")
MINUTES = 60


class Run:
    """A folder with a recipe and data, and the run command in a separate process group, as in a terminal."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        write_pairs(folder / "circle.txt", circle_sequences(200))
        (folder / "faults.py").write_text(RECIPE)

    def start(self, *options: str) -> subprocess.Popen:
        where = ["--data", str(self.folder), "--results", str(self.folder)]
        command = [sys.executable, "-m", "evaluation.run", str(self.folder / "faults.py"), *where, *options]
        return subprocess.Popen(
            command,
            cwd=ROOT,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # the tests may run in the background
        )

    def finish(self, *options: str) -> str:
        process = self.start(*options)
        _, said = process.communicate(timeout=10 * MINUTES)
        assert process.returncode == 0, said
        return said

    def model(self, name: str) -> Path:
        return self.folder / "faults" / name / "seed_1"

    def status(self, name: str) -> dict:
        path = self.model(name) / "status.json"
        return json.loads(path.read_text()) if path.exists() else {"state": "none"}

    def log(self, name: str) -> str:
        path = self.model(name) / "log.txt"
        return path.read_text() if path.exists() else ""

    def results(self, name: str) -> tuple[bytes, bytes]:
        return tuple((self.model(name) / file).read_bytes() for file in ("metrics.json", "per_user.parquet"))


def wait_until(process: subprocess.Popen, condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 5 * MINUTES
    while not condition():
        assert process.poll() is None, process.stderr.read()
        assert time.monotonic() < deadline
        time.sleep(0.002)


def kill(process: subprocess.Popen) -> None:
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    process.stderr.close()


WITHOUT_INTERRUPTION = """
import sys
from pathlib import Path

from aprec_like.recipe import load_recipe
from evaluation.running.run_model import ModelRun, run_model
from aprec_like.devices import prepare_devices
from evaluation.results.store import RunFolder

folder, names = Path(sys.argv[1]), sys.argv[2:]
recipe = load_recipe(folder / "faults.py")
prepare_devices()
for name in names:
    run = ModelRun(recipe, name, seed=1, data_dir=folder, folder=RunFolder(folder / "faults").model(name, 1))
    with run.make_display() as display:
        run_model(run, display)
"""


@pytest.fixture(scope="module")
def expected(tmp_path_factory) -> Run:
    """Results of uninterrupted runs, all in one process to save time."""
    run = Run(tmp_path_factory.mktemp("expected"))
    command = [sys.executable, "-c", WITHOUT_INTERRUPTION, str(run.folder), *MODELS]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    return run


def test_killed_and_interrupted_runs_resume_to_the_same_bytes(expected, tmp_path):
    """Every model is killed once; one is interrupted too."""
    run, options = Run(tmp_path), ("--only", *MODELS)

    # The run command is killed: the worker exits by itself, which releases the lock.
    process = run.start(*options)
    wait_until(process, lambda: "epoch 2" in run.log("MF-BPR"))
    process.kill()
    process.communicate()  # returns when the worker, which shares standard error, has exited
    assert run.status("MF-BPR")["state"] == "running"

    # Two workers are killed; the others run. Ctrl-C reaches all processes, as in a terminal.
    process = run.start(*options)
    wait_until(process, lambda: "epoch 3" in run.log("SASRec"))
    os.kill(run.status("SASRec")["pid"], signal.SIGKILL)
    wait_until(process, lambda: "epoch 2" in run.log("gSASRec"))
    os.kill(run.status("gSASRec")["pid"], signal.SIGKILL)
    wait_until(process, lambda: "epoch 2" in run.log("BERT4Rec"))
    os.killpg(process.pid, signal.SIGINT)
    _, said = process.communicate()
    assert process.returncode == 130
    assert said.splitlines()[-1].startswith("stopped; finished models and progress are kept")
    assert "Traceback" not in said
    states = {name: run.status(name)["state"] for name in MODELS}
    assert states == {"MF-BPR": "finished", "SASRec": "failed", "gSASRec": "failed", "BERT4Rec": "interrupted"}
    assert "batch_size" in run.status("gSASRec")["reason"]

    # Killed once more, the last model is marked in the table, and the exit code is 1.
    process = run.start(*options)
    wait_until(process, lambda: "resumes from epoch" in run.log("BERT4Rec"))
    os.kill(run.status("BERT4Rec")["pid"], signal.SIGKILL)
    process.communicate()
    assert process.returncode == 1
    assert "BERT4Rec, seed 1: failed: killed by signal 9" in (run.folder / "faults/table.md").read_text()

    said = run.finish(*options)
    assert "SASRec, seed 1: finished on" in said and "BERT4Rec: resumes from epoch" in said
    for name in MODELS:
        assert run.results(name) == expected.results(name), name
        assert "resumes from epoch" in run.log(name)
        kinds = {path.name.partition("-")[0] for path in (run.model(name) / "checkpoint").iterdir()}
        assert kinds <= {"best.weights.h5", "state", "best"}  # of trainings that a limit ended, the last state is kept
    assert not list(run.folder.rglob(".part-*"))


def test_jobs_that_run_at_once_are_killed_and_resume_to_the_same_bytes(expected, tmp_path):
    run, names = Run(tmp_path), ("SASRec", "gSASRec")
    options = ("--only", *names, "--jobs", "2")
    process = run.start(*options)
    wait_until(process, lambda: any("epoch 2" in run.log(name) for name in names))
    kill(process)
    said = run.finish(*options)
    assert "gSASRec: finished" in said and "Traceback" not in said
    assert any("resumes from epoch" in run.log(name) for name in names)
    for name in names:
        assert run.results(name) == expected.results(name), name
        assert not (run.model(name) / "progress.json").exists()
    assert "gSASRec" in (run.folder / "faults/table.md").read_text()


MOMENTS: dict[str, Callable[[Run, str], bool]] = {
    "in the first epoch": lambda run, name: run.status(name)["state"] == "running",
    "while saving": lambda run, name: any((run.model(name) / "checkpoint").glob(".part-*")),
    "in the middle": lambda run, name: "epoch 4" in run.log(name),
    "while ranking": lambda run, name: "trained 8 epochs" in run.log(name),
    "between models": lambda run, name: run.status("Popularity")["state"] == "finished",
}
DELAYS = {"in the first epoch": 6.0, "while ranking": 0.3, "between models": 3.0}
"""Up to how many seconds later the kill comes; at the other moments at once."""


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("moment", MOMENTS)
def test_a_run_killed_at_any_moment_gives_the_same_bytes(expected, tmp_path, name, moment):
    run = Run(tmp_path)
    options = ("--only", "Popularity", name)
    process = run.start(*options)
    wait_until(process, lambda: MOMENTS[moment](run, name))
    time.sleep(random.Random(f"{name} {moment}").uniform(0, DELAYS.get(moment, 0.0)))
    kill(process)
    state = run.status(name)["state"]
    assert state in ("none", "running", "finished")
    run.finish(*options)
    assert run.results(name) == expected.results(name)
    if moment == "in the middle":
        assert "resumes from epoch" in run.log(name)
    if moment == "while ranking":
        assert state == "finished" or "is already trained: 8 epochs" in run.log(name)
    assert not list(run.folder.rglob(".part-*"))


@pytest.mark.slow
def test_a_ray_task_whose_node_dies_goes_on_from_its_checkpoint_on_another_node(tmp_path, monkeypatch):
    """The head runs no tasks. Of the two other nodes the second comes when the first is to be lost."""
    cluster_utils = pytest.importorskip("ray.cluster_utils")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    runs = [Run(tmp_path / name) for name in ("expected", "lost") if not (tmp_path / name).mkdir()]
    for run in runs:
        longer = RECIPE.replace("max_epochs=8", "max_epochs=200").replace("patience=8", "patience=200")
        (run.folder / "faults.py").write_text(longer)
    runs[0].finish("--only", "gSASRec")
    cluster = cluster_utils.Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
    try:
        node = cluster.add_node(num_cpus=1)
        cluster.wait_for_nodes(timeout=5 * MINUTES)
        process = runs[1].start("--only", "gSASRec", "--ray", cluster.address)
        wait_until(process, lambda: any(runs[1].model("gSASRec").glob("checkpoint/state-00001*")))
        cluster.remove_node(node, allow_graceful=False)
        assert "resumes" not in runs[1].log("gSASRec")
        cluster.add_node(num_cpus=1)
        _, said = process.communicate(timeout=10 * MINUTES)
        assert process.returncode == 0, said
    finally:
        cluster.shutdown()
    resumed = [line for line in runs[1].log("gSASRec").splitlines() if "resumes from epoch" in line]
    assert len(resumed) == 1 and int(resumed[0].split("resumes from epoch ")[1].split(",")[0]) >= 10
    assert runs[1].results("gSASRec") == runs[0].results("gSASRec")
