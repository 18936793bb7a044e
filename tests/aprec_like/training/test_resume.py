"""A training that is interrupted and resumed ends with the same bits as one that was not."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from aprec_like.errors import InputError, NotFiniteError, StoppedError
from aprec_like.losses import BPR, GBCE, SampledSoftmax, Softmax
from aprec_like.models import BERT4Rec, GRU4Rec, LiGR, MatrixFactorisation, SASRec, SwiGLU
from aprec_like.negatives import Negatives
from aprec_like.optimizers import Adagrad, Adam
from aprec_like.schedules import CosineDecay
from aprec_like.settings import describe
from aprec_like.splits import LeaveOneOut
from aprec_like.training import EarlyStopping, Trained, Training, TrainingControl, epoch_loop, train
from aprec_like.training.checkpoints import Checkpoints

SMALL = SASRec(max_length=8, embedding_dim=8, num_blocks=1, dropout_rate=0.2)
SHORT = Training(
    batch_size=32, max_epochs=3, early_stopping=EarlyStopping(patience=3), optimizer=Adam(learning_rate=0.05)
)
CASES = {
    "SASRec with gBCE": Trained(SMALL, GBCE(8, 0.75), SHORT, prior_start=True),
    "SASRec with softmax, users drawn with replacement": Trained(
        SMALL, Softmax(), replace(SHORT, with_replacement=True)
    ),
    "LiGR, unseen items, AdamW with a schedule": Trained(
        replace(SMALL, block=LiGR(SwiGLU(1))),
        Softmax(excludes_history=True, label_smoothing=0.1),
        replace(SHORT, optimizer=Adam(CosineDecay(0.05, 15, warmup_steps=3), weight_decay=0.1, clip_norm=0.5)),
    ),
    "GRU4Rec": Trained(
        GRU4Rec(max_length=8, embedding_dim=8, num_layers=2), SampledSoftmax(4), SHORT, Negatives("sequence")
    ),
    "BERT4Rec": Trained(BERT4Rec(max_length=8, embedding_dim=8, num_layers=1, num_heads=2), Softmax(), SHORT),
    "MF-BPR": Trained(
        MatrixFactorisation(8),
        BPR(1),
        replace(SHORT, batch_size=256, early_stopping=None, optimizer=Adagrad(), learns_validation_targets=True),
        Negatives(by_popularity=True, reject_history=True),
    ),
}
QUICK = Trained(MatrixFactorisation(8), BPR(1), replace(SHORT, batch_size=128))
"""A model that is fast to trace, with validation and best weights."""


@pytest.fixture
def split(circle):
    return LeaveOneOut(num_validation_users=50).split(circle)


class KilledError(Exception):
    """Stands for a killed process: training ends without saving."""


def outcome_of(trained, split, **control):
    return train(trained, split, seed=1, control=TrainingControl(**control))


def history_of(outcome):
    """What must not depend on interruptions: all of the history but seconds."""
    rows = [(record.epoch, record.loss, record.validation, record.is_best) for record in outcome.history]
    return rows, outcome.stopped_by


def assert_same(outcome, expected):
    assert history_of(outcome) == history_of(expected)
    pairs = zip(outcome.scorer.network.get_weights(), expected.scorer.network.get_weights(), strict=True)
    for ours, theirs in pairs:
        np.testing.assert_array_equal(ours, theirs)


STOPS = (4, 3)
"""Numbers of the call of `is_stopping` that returns True: after step 4, then while epoch 1 is validated."""


@pytest.mark.parametrize("name", CASES)
def test_a_training_stopped_twice_ends_with_the_same_weights(name, split, tmp_path, monkeypatch):
    expected = outcome_of(CASES[name], split)
    monkeypatch.setattr(epoch_loop, "MAX_STEPS_PER_CALL", 1)  # it can stop after every step
    lines = []
    for stop in STOPS:
        asked = itertools.count(1)
        options = {"checkpoints": Checkpoints(tmp_path, {"name": name}, lines.append)}
        with pytest.raises(StoppedError):
            outcome_of(CASES[name], split, **options, is_stopping=lambda asked=asked, stop=stop: next(asked) >= stop)
    outcome = outcome_of(CASES[name], split, checkpoints=Checkpoints(tmp_path, {"name": name}, lines.append))
    assert lines[0] == "resumes from epoch 1, step 4"
    assert lines[1] == ("resumes from epoch 2, step 3" if name == "MF-BPR" else "resumes from epoch 1, step 6")
    assert_same(outcome, expected)


@pytest.mark.parametrize("seed", range(3))
def test_a_training_that_was_killed_resumes_from_its_last_save(seed, split, tmp_path, monkeypatch):
    expected = outcome_of(QUICK, split)
    monkeypatch.setattr(epoch_loop, "MAX_STEPS_PER_CALL", 1)
    random = np.random.default_rng(seed)
    steps_done = []
    for seconds in (math.inf, 0.0, math.inf):  # saved between epochs only, or after every step
        monkeypatch.setattr(epoch_loop, "SECONDS_BETWEEN_SAVES", seconds)
        steps_left = iter(range(random.integers(2, 7)))

        def die(progress, steps_left=steps_left):
            steps_done.append((progress.epoch, progress.step))
            if next(steps_left, None) is None:
                raise KilledError

        with pytest.raises(KilledError):
            outcome_of(QUICK, split, checkpoints=Checkpoints(tmp_path, {}), on_step=die)
    assert_same(outcome_of(QUICK, split, checkpoints=Checkpoints(tmp_path, {})), expected)
    assert len(set(steps_done)) < len(steps_done)  # some steps were done twice


def test_a_kill_while_saving_leaves_the_save_before_it(split, tmp_path, monkeypatch):
    expected = outcome_of(QUICK, split)
    moved = itertools.count()

    def die(part, path):
        if next(moved) == 3:
            raise KilledError
        part.replace(path)

    monkeypatch.setattr("aprec_like.training.checkpoints.move_into_place", die)
    with pytest.raises(KilledError):
        outcome_of(QUICK, split, checkpoints=Checkpoints(tmp_path, {}))
    monkeypatch.undo()
    assert_same(outcome_of(QUICK, split, checkpoints=Checkpoints(tmp_path, {})), expected)


def test_a_finished_training_is_not_repeated(split, tmp_path):
    expected = outcome_of(QUICK, split, checkpoints=Checkpoints(tmp_path, {}))

    def fail(progress):
        raise AssertionError("trained again")

    lines = []
    outcome = outcome_of(QUICK, split, checkpoints=Checkpoints(tmp_path, {}, lines.append), on_step=fail)
    assert_same(outcome, expected)
    assert lines == ["is already trained: 3 epochs"]


def test_the_time_limit_counts_the_time_before_a_stop(split, tmp_path):
    endless = replace(QUICK.training, max_epochs=10_000, early_stopping=EarlyStopping(patience=10_000))
    trained = replace(QUICK, training=endless)
    with pytest.raises(StoppedError):
        outcome_of(trained, split, checkpoints=Checkpoints(tmp_path, {}), is_stopping=lambda: True)
    saved = Checkpoints(tmp_path, {}).load()
    assert saved.state["step"] == 1 and saved.state["seconds"] > 0
    checkpoints = Checkpoints(tmp_path, {})
    checkpoints.save(saved.state | {"step": 2, "seconds": 3600.0}, _variables_of(saved))
    outcome = outcome_of(trained, split, checkpoints=Checkpoints(tmp_path, {}), time_limit=3600.0)
    assert outcome.stopped_by == "time_limit" and len(outcome.history) == 1
    assert outcome.history[0].seconds > 3600 and outcome.seconds_before == 3600


def _variables_of(saved):
    import tensorflow as tf

    with np.load(saved.path) as stored:
        return {name: tf.Variable(stored[name]) for name in stored.files if name != "facts.json"}


def test_a_loss_that_is_not_finite_is_not_saved(split, tmp_path, monkeypatch):
    monkeypatch.setattr(epoch_loop, "SECONDS_BETWEEN_SAVES", 0.0)
    trained = replace(QUICK, training=replace(QUICK.training, optimizer=Adam(learning_rate=1e30)))
    with pytest.raises(NotFiniteError):
        outcome_of(trained, split, checkpoints=Checkpoints(tmp_path, {}))
    assert math.isfinite(Checkpoints(tmp_path, {}).load().state["loss_total"])


def test_the_best_weights_are_on_disk_and_not_in_memory(split, tmp_path, monkeypatch):
    """They are read from their file at the end of training."""
    read = []
    restore = Checkpoints.restore_best
    monkeypatch.setattr(
        Checkpoints, "restore_best", lambda self, name, weights: (read.append(name), restore(self, name, weights))
    )
    outcome = outcome_of(QUICK, split, checkpoints=Checkpoints(tmp_path, {}))
    assert read == [path.name for path in tmp_path.glob("best-*") if f"-{outcome.best.epoch:06}." in path.name]


def test_slow_saves_are_made_less_often(split, tmp_path, monkeypatch):
    """After a save of 20 seconds the next is due 1,000 seconds later."""
    saves = []
    monkeypatch.setattr(Checkpoints, "save", lambda self, state, variables: saves.append(state["epoch"]))
    outcome_of(QUICK, split, checkpoints=Checkpoints(tmp_path, {}))
    assert saves == [2, 3, 4]
    clock = itertools.count(0.0, 10.0)
    monkeypatch.setattr(epoch_loop.time, "monotonic", lambda: next(clock))
    loop = epoch_loop.EpochLoop(TrainingControl(), Checkpoints(tmp_path, {}))
    loop.save()
    assert loop._save_seconds == 20.0  # the clock was asked in between
    asked = itertools.count(1)
    while not loop.is_save_due(0.0):
        next(asked)
    assert next(asked) == 20.0 / epoch_loop.MAX_SHARE_OF_SAVES / 10.0


def test_a_measured_save_holds_the_state_and_the_best_weights(tmp_path):
    network, optimizer = SMALL.build(20), Adam().build()
    optimizer.build(network.trainable_variables)
    assert epoch_loop.save_seconds(network.variables, optimizer.variables, tmp_path) > 0
    sizes = {path.name.split("-")[0]: path.stat().st_size for path in tmp_path.iterdir()}
    num_weights = sum(np.prod(weight.shape) for weight in network.get_weights())
    assert sizes.keys() == {"state", "best"}
    assert sizes["best"] > 4 * num_weights and sizes["state"] > 3 * 4 * num_weights  # Adam has two moments


LONGER = replace(SHORT, batch_size=64, max_epochs=6, early_stopping=EarlyStopping(patience=4))


@pytest.mark.parametrize(
    "limits",
    [{"max_epochs": 2}, {"early_stopping": EarlyStopping(patience=1)}],
    ids=["epochs", "patience"],
)
def test_a_finished_training_goes_on_with_larger_limits(limits, split, tmp_path):
    """As if the limits had been so from the start."""
    longer = replace(QUICK, training=LONGER)
    expected = outcome_of(longer, split)
    short = replace(longer, training=replace(LONGER, **limits))
    first = outcome_of(short, split, checkpoints=Checkpoints(tmp_path, describe(short)))
    assert len(first.history) < len(expected.history)
    assert_same(outcome_of(longer, split, checkpoints=Checkpoints(tmp_path, describe(longer))), expected)
    with pytest.raises(InputError, match="longer than max_epochs and patience allow now"):
        outcome_of(short, split, checkpoints=Checkpoints(tmp_path, describe(short)))


def test_a_training_that_the_time_limit_cut_within_an_epoch_goes_on_from_the_cut(split, tmp_path, monkeypatch):
    longer = replace(QUICK, training=replace(LONGER, batch_size=32))
    expected = outcome_of(longer, split)
    monkeypatch.setattr(epoch_loop, "MAX_STEPS_PER_CALL", 1)
    steps = itertools.count(1)
    monkeypatch.setattr(epoch_loop.EpochLoop, "is_time_over", property(lambda loop: next(steps) >= CUT))
    cut = outcome_of(longer, split, checkpoints=Checkpoints(tmp_path, {}))
    assert cut.stopped_by == "time_limit" and len(cut.history) < len(expected.history)
    monkeypatch.undo()
    lines = []
    assert_same(outcome_of(longer, split, checkpoints=Checkpoints(tmp_path, {}, lines.append)), expected)
    (line,) = lines
    assert "step 0" not in line  # within an epoch


CUT = 16
"""Number of the question after the time that is answered yes."""
