from dataclasses import replace

import pytest

from aprec_like.datasets import Sizes, TextFile
from aprec_like.devices import pretend_gpu
from aprec_like.errors import InputError
from aprec_like.losses import BCE, GBCE, Softmax
from aprec_like.models import MatrixFactorisation, Popularity, SASRec, TimeGaps
from aprec_like.negatives import Negatives
from aprec_like.recipe import Evaluation, Recipe, Trained
from aprec_like.splits import LeaveOneOut
from aprec_like.training import Training
from evaluation.results.store import RunFolder
from evaluation.running import plan
from evaluation.running.plan import memory_savers, predict_disk, predict_memory
from evaluation.running.preflight import format_bytes, load_data, prepare

SMALL = SASRec(max_length=8, embedding_dim=8)
RECIPE = Recipe(
    dataset=TextFile("circle.txt"),
    split=LeaveOneOut(num_validation_users=50),
    models={"Popularity": Popularity(), "SASRec": Trained(SMALL, BCE(1), Training())},
)
CHANGED = replace(RECIPE, models=RECIPE.models | {"SASRec": Trained(SMALL, BCE(2), Training())})
JOBS = [("Popularity", 1), ("SASRec", 1)]


@pytest.fixture
def run(tmp_path, circle_file):
    run = RunFolder(tmp_path / "results")
    run.path.mkdir()
    return run


def prepared(run, recipe=RECIPE, is_fresh=False):
    return prepare(run, recipe, b"", load_data(recipe, run.path.parent), JOBS, is_fresh=is_fresh)


def earlier_run(run, state, has_checkpoint):
    """Create the files of an earlier run in a state; returns the model's folder."""
    assert prepared(run) == JOBS
    folder = run.model("SASRec", 1)
    if state == "finished":
        folder.finish(seconds_to_best=1.0)
    else:
        folder.write_status("running" if state == "damaged" else state)
    if has_checkpoint:
        folder.checkpoint_path.mkdir()
        (folder.checkpoint_path / f"state-000002-000000.{'0' * 64}.npz").write_bytes(b"")
    return folder


@pytest.mark.parametrize(
    ("state", "has_checkpoint"), [("finished", False), ("running", True), ("interrupted", True), ("damaged", True)]
)
def test_results_and_progress_are_not_mixed_with_other_settings(run, state, has_checkpoint):
    folder = earlier_run(run, state, has_checkpoint)
    if state == "damaged":
        (folder.path / "status.json").write_text("{")
    with pytest.raises(InputError, match=r"models\['SASRec'\] has changed: .*\"num_negatives\": 2"):
        prepared(run, CHANGED)
    assert prepared(run) == (JOBS[:1] if state == "finished" else JOBS)
    assert folder.path.exists()
    assert prepared(run, CHANGED, is_fresh=True) == JOBS
    assert not folder.path.exists()


@pytest.mark.parametrize(("state", "has_checkpoint"), [("failed", True), ("interrupted", False)])
def test_a_model_that_failed_or_made_no_progress_may_be_changed(run, state, has_checkpoint):
    earlier_run(run, state, has_checkpoint)
    assert prepared(run, CHANGED) == JOBS


def test_a_damaged_recipe_beside_finished_models_requires_training_all_again(run):
    earlier_run(run, "finished", False)
    (run.path / "recipe.json").write_text("{")
    with pytest.raises(InputError, match=r"damaged.*--fresh trains all models again"):
        prepared(run)
    assert prepared(run, is_fresh=True) == JOBS


def test_part_files_of_killed_writes_are_removed(run):
    part = earlier_run(run, "running", True).path / ".part-x-per_user.parquet"
    part.write_bytes(b"half")
    prepared(run)
    assert not part.exists()


def test_the_disk_holds_the_checkpoints_of_one_model_and_the_results_of_all():
    """1,000 users with 9 values and 10 places each; 1,500 rows of 4 numbers in a model."""
    models = {"A": Trained(MatrixFactorisation(embedding_dim=3), BCE(1), Training()), "B": Popularity()}
    recipe = replace(RECIPE, models=models, evaluation=Evaluation(depth=10))
    sizes = Sizes(users=1_000, items=500, interactions=9_999)
    user_bytes = 1_000 * (9 * 8 + 10 * 24)
    weights = 4 * 1_500 * 4
    assert predict_disk(recipe, ["A", "A", "B"], sizes) == 3 * user_bytes + 2 * 5 * weights + 11 * weights
    at_once = predict_disk(recipe, ["A", "A", "A"], sizes, num_at_once=2)
    assert at_once == 3 * user_bytes + 3 * 5 * weights + 2 * 11 * weights
    assert predict_disk(recipe, ["B"], sizes) == user_bytes
    assert predict_disk(recipe, [], sizes) == 0


def test_only_settings_of_the_model_are_suggested_to_save_memory():
    shared = Trained(SMALL, GBCE(256), Training(), Negatives(shared_by="batch"))
    assert "num_negatives" in memory_savers(shared) and "shared_by" not in memory_savers(shared)
    assert "shared_by" in memory_savers(Trained(SMALL, GBCE(256), Training()))
    full = memory_savers(Trained(SMALL, Softmax(), Training()))
    assert "sampled loss" in full and "num_negatives" not in full and "max_length" in full
    assert "max_length" not in memory_savers(Trained(MatrixFactorisation(), BCE(1), Training()))


def test_a_model_that_does_not_fit_into_memory_is_refused_with_a_batch_size_that_fits(run, monkeypatch):
    sizes = Sizes(users=200, items=20, interactions=1_400)
    needed = predict_memory(RECIPE.models["SASRec"], sizes)
    monkeypatch.setattr(plan, "total_memory", lambda: plan.TENSORFLOW_BYTES + needed - 1)
    with pytest.raises(InputError, match=r"SASRec needs about .* GiB of memory .* batch_size=64 would fit"):
        prepared(run)
    monkeypatch.setattr(plan, "total_memory", lambda: plan.TENSORFLOW_BYTES + 1)
    with pytest.raises(InputError, match="no batch_size fits; to save memory: "):
        prepared(run)
    monkeypatch.setattr(plan, "total_memory", lambda: plan.TENSORFLOW_BYTES + needed)
    assert prepared(run) == JOBS


def test_a_model_that_does_not_fit_into_the_memory_of_a_gpu_is_refused(run, monkeypatch):
    sizes = Sizes(users=200, items=20, interactions=1_400)
    with pretend_gpu():
        needed = predict_memory(RECIPE.models["SASRec"], sizes)
        monkeypatch.setattr(plan, "gpu_memory", lambda: plan.TENSORFLOW_BYTES + needed - 1)
        with pytest.raises(InputError, match=r"SASRec needs about .* and the GPU has .* batch_size=64 would fit"):
            prepared(run)
        monkeypatch.setattr(plan, "gpu_memory", lambda: plan.TENSORFLOW_BYTES + needed)
        prepared(run)


def test_the_predicted_memory_of_softmax_over_a_million_items_excludes_all_logits():
    trained = Trained(SASRec(), Softmax(), Training(batch_size=16))
    assert 3 < predict_memory(trained, Sizes(users=86_168, items=1_271_638, interactions=6_400_000)) / 2**30 < 9


@pytest.mark.parametrize(
    ("num_bytes", "text"), [(3 * 2**29, "1.5 GiB"), (5 << 20, "5.0 MiB"), (98_304, "96.0 KiB"), (100, "100 bytes")]
)
def test_sizes_are_told_in_a_unit_in_which_they_are_not_zero(num_bytes, text):
    assert format_bytes(num_bytes) == text


def test_a_model_that_needs_times_is_refused_on_data_without_timestamps(run):
    trained = Trained(replace(SMALL, time_gaps=TimeGaps()), BCE(1), Training())
    with pytest.raises(InputError, match="SASRec has time_gaps, and TextFile has no timestamps"):
        prepared(run, replace(RECIPE, models=RECIPE.models | {"SASRec": trained}))
    assert not (run.path / "recipe.json").exists()
