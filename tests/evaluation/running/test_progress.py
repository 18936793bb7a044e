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


def test_rate_and_time_left_include_training_before_a_restart(display, capsys):
    """4.5 of 10 epochs of 20 steps in 90 seconds over all restarts: 1 step per second, 110 seconds left."""
    best = EpochRecord(epoch=3, loss=0.7, validation=0.25, is_best=True, seconds=60.0)
    display.on_step(Progress(epoch=5, step=10, steps_per_epoch=20, loss=0.5, seconds=90.0, best=best))
    line = capsys.readouterr().err
    assert line == (
        "SASRec: epoch 5, step 10/20, loss 0.5000, best NDCG@10 0.2500 (epoch 3), 1.0 steps/s, "
        "at most 1 min 50 s left\n"
    )
    display.on_epoch(EpochRecord(epoch=5, loss=0.5, validation=0.2, is_best=False, seconds=100.0))
    assert "at most 1 min 40 s left" in capsys.readouterr().err


def test_the_time_left_is_at_most_the_time_limit(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", 0)
    with Display("SASRec", tmp_path / "log.txt", "", max_epochs=10_000, time_limit=120.0) as display:
        display.on_step(Progress(epoch=1, step=10, steps_per_epoch=20, loss=0.5, seconds=90.0, best=None))
    assert "at most 30 s left" in capsys.readouterr().err


def test_a_log_that_cannot_be_written_is_a_storage_error(tmp_path):
    (tmp_path / "log.txt").symlink_to("/dev/full")
    log = Log(tmp_path / "log.txt")
    with pytest.raises(StorageError, match="No space left on device"):
        log.write("a line")
    log.close()
