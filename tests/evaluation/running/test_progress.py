import os

import pytest

from aprec_like.files import StorageError
from aprec_like.training.state import EpochRecord, Progress
from evaluation.running import progress
from evaluation.running.progress import PROGRESS_NAME, Display, Log, read_progress


@pytest.fixture
def display(tmp_path, monkeypatch):
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", 0)
    with Display("SASRec", tmp_path / "log.txt", "NDCG@10", max_epochs=10, time_limit=float("inf")) as display:
        yield display


def test_the_time_left_is_not_estimated_from_the_step_that_was_compiled(display, capsys):
    """After 30 seconds of compilation, half an epoch takes 5 seconds: 9 more epochs take 90."""
    for step, seconds, left in ((10, 30.0, "time left not known yet"), (20, 35.0, "at most 1 min 30 s left")):
        display.on_step(Progress(epoch=1, step=step, steps_per_epoch=20, loss=0.5, seconds=seconds, best=None))
        assert capsys.readouterr().err.endswith(f", {left}\n")


def test_the_rate_includes_training_before_a_restart_and_the_time_left_does_not(display, capsys):
    """4.5 of 10 epochs of 20 steps in 90 seconds over all restarts: 1 step per second."""
    best = EpochRecord(epoch=3, loss=0.7, validation=0.25, is_best=True, seconds=60.0)
    display.on_step(Progress(epoch=5, step=10, steps_per_epoch=20, loss=0.5, seconds=90.0, best=best))
    line = capsys.readouterr().err
    assert line == (
        "SASRec: epoch 5, step 10/20, loss 0.5000, best NDCG@10 0.2500 (epoch 3), 1.0 steps/s, "
        "time left not known yet\n"
    )
    display.on_epoch(EpochRecord(epoch=5, loss=0.5, validation=0.2, is_best=False, seconds=100.0))
    assert "at most 1 min 40 s left" in capsys.readouterr().err


def test_the_time_left_is_at_most_the_time_limit(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", 0)
    with Display("SASRec", tmp_path / "log.txt", "", max_epochs=10_000, time_limit=120.0) as display:
        display.on_step(Progress(epoch=1, step=10, steps_per_epoch=20, loss=0.5, seconds=90.0, best=None))
    assert "at most 30 s left" in capsys.readouterr().err


def test_the_time_left_is_until_patience_ends_if_that_comes_first(tmp_path, capsys, monkeypatch):
    """10 seconds an epoch, best epoch 3, patience 8: training ends with epoch 11, 60 seconds after epoch 5."""
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", 0)
    best = EpochRecord(epoch=3, loss=0.7, validation=0.25, is_best=True, seconds=30.0)
    log = tmp_path / "log.txt"
    with Display("SASRec", log, "NDCG@10", max_epochs=10_000, time_limit=float("inf"), patience=8) as display:
        display.on_step(Progress(epoch=5, step=10, steps_per_epoch=20, loss=0.5, seconds=45.0, best=best))
        display.on_epoch(EpochRecord(epoch=5, loss=0.5, validation=0.2, is_best=False, seconds=50.0))
        assert capsys.readouterr().err.endswith(", 1 min 0 s left unless it improves\n")
        display.on_epoch(EpochRecord(epoch=6, loss=0.5, validation=0.3, is_best=True, seconds=60.0))
        assert capsys.readouterr().err.endswith(", 1 min 20 s left unless it improves\n")


def test_before_the_first_validation_the_time_left_is_at_least_the_patience(tmp_path, capsys, monkeypatch):
    """10 seconds an epoch, patience 8: training ends with epoch 9 or later, 80 seconds after epoch 1."""
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", 0)
    log = tmp_path / "log.txt"
    with Display("SASRec", log, "NDCG@10", max_epochs=10_000, time_limit=float("inf"), patience=8) as display:
        for step, seconds in ((10, 35.0), (20, 40.0)):
            display.on_step(Progress(epoch=1, step=step, steps_per_epoch=20, loss=0.5, seconds=seconds, best=None))
    assert capsys.readouterr().err.endswith(", at least 1 min 20 s left\n")


@pytest.mark.parametrize("content", ["", "[1]", "[null, 1]", "[[], 1]", "{", "3"])
def test_a_damaged_file_of_progress_is_no_progress(content, tmp_path):
    (tmp_path / PROGRESS_NAME).write_text(content)
    assert read_progress(tmp_path) is None


def test_a_shared_display_writes_its_progress_to_a_file_until_it_ends(tmp_path, capsys):
    log = tmp_path / "log.txt"
    with Display("SASRec", log, "", max_epochs=10, time_limit=float("inf"), is_shared=True) as display:
        display.on_step(Progress(epoch=1, step=10, steps_per_epoch=20, loss=0.5, seconds=10.0, best=None))
        assert read_progress(tmp_path).text.startswith("epoch 1, step 10/20, loss 0.5000, 1.0 steps/s")
        display.print_line("finished in 10 s")
    assert read_progress(tmp_path) is None and capsys.readouterr().err == "SASRec: finished in 10 s\n"


def test_a_log_that_cannot_be_written_is_a_storage_error(tmp_path):
    log = Log(tmp_path / "log.txt")
    log.close()
    log.file = os.fdopen(os.open("/dev/full", os.O_WRONLY), "ab", buffering=0)
    with pytest.raises(StorageError, match="No space left on device"):
        log.write("a line")
    log.close()
