import pytest

from aprec_like.files import StorageError
from aprec_like.training.state import EpochRecord, Progress
from evaluation.running import progress
from evaluation.running.progress import Display, Log


@pytest.fixture
def display(tmp_path, monkeypatch):
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", 0)
    with Display("SASRec", tmp_path / "log.txt", "NDCG@10", max_epochs=10, time_limit=float("inf")) as display:
        yield display


def test_rates_and_time_left_count_the_training_before_a_resume(display, capsys):
    """4.5 of 10 epochs of 20 steps in 90 seconds over all starts: 1 step a second, 110 seconds left."""
    best = EpochRecord(3, 0.7, 0.25, True, 60.0)
    display.on_step(Progress(5, 10, 20, loss=0.5, seconds=90.0, best=best))
    line = capsys.readouterr().err
    assert line == (
        "SASRec: epoch 5, step 10/20, loss 0.5000, best NDCG@10 0.2500 (epoch 3), 1.0 steps/s, "
        "at most 1 min 50 s left\n"
    )
    display.on_epoch(EpochRecord(5, 0.5, 0.2, False, 100.0))
    assert "at most 1 min 40 s left" in capsys.readouterr().err


def test_the_time_limit_bounds_the_time_left(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", 0)
    with Display("SASRec", tmp_path / "log.txt", "", max_epochs=10_000, time_limit=120.0) as display:
        display.on_step(Progress(1, 10, 20, loss=0.5, seconds=90.0, best=None))
    assert "at most 30 s left" in capsys.readouterr().err


def test_a_log_that_cannot_be_written_is_a_storage_error(tmp_path):
    (tmp_path / "log.txt").symlink_to("/dev/full")
    log = Log(tmp_path / "log.txt")
    with pytest.raises(StorageError, match="No space left on device"):
        log.write("a line")
    log.close()
