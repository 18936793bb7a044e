import json

from aprec_like.training.state import EpochRecord, TrainingState


def test_patience_counts_epochs_since_a_strict_improvement():
    state, stopped = TrainingState(), None
    for epoch, value in enumerate([0.1, 0.3, 0.3, 0.2, 0.5], start=1):
        state.add_epoch(EpochRecord(epoch, 1.0, value, state.is_improved_by(value), 1.0))
        if state.is_patience_over(2):
            stopped = epoch
            break
    assert [record.epoch for record in state.history if record.is_best] == [1, 2]  # equal is no improvement
    assert stopped == 4
    assert state.best.epoch == 2


def test_without_validation_patience_is_never_over():
    state = TrainingState()
    state.add_epoch(EpochRecord(1, 1.0, None, False, 1.0))
    assert not state.is_patience_over(1)


def test_a_state_survives_json_to_the_last_bit():
    state = TrainingState(epoch=3, step=7, loss_total=0.1 + 0.2, seconds=1 / 3, best_weights="best-1")
    state.history.append(EpochRecord(1, 2 / 3, 0.1, True, 1e-9))
    assert TrainingState.from_json(json.loads(json.dumps(state.as_json()))) == state
