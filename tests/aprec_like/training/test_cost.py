"""Costs add up over restarts as seconds do; what a part does not know, the whole does not know."""

import pytest

from aprec_like.training import TrainingControl
from aprec_like.training.checkpoints import Checkpoints
from aprec_like.training.cost import NO_COST, NOT_MEASURED, Cost
from aprec_like.training.epoch_loop import EpochLoop
from aprec_like.training.state import TrainingState


def test_sums_and_differences():
    assert Cost(1.0, 2.0, 3.0) + Cost(10.0, 20.0, 30.0) == Cost(11.0, 22.0, 33.0)
    assert Cost(11.0, 22.0, 33.0) - Cost(1.0, 2.0, 3.0) == Cost(10.0, 20.0, 30.0)
    assert NO_COST + Cost(1.0, 2.0, 3.0) == Cost(1.0, 2.0, 3.0)
    assert Cost(1.0, 2.0, None) + Cost(1.0, 2.0, 3.0) == Cost(2.0, 4.0, None)
    assert Cost(1.0, 2.0, 3.0) - NOT_MEASURED == NOT_MEASURED


@pytest.fixture
def train_for(tmp_path):
    """Return a function that goes on with a training in a new process, of which a meter reads these costs."""

    def train_for(*readings):
        costs = iter(readings)
        loop = EpochLoop(TrainingControl(read_cost=lambda: next(costs)), Checkpoints(tmp_path, {}))
        loop.restore([], [])
        for _ in readings[1:]:
            loop.state.step += 1
            loop.save()
        return loop

    return train_for


def test_a_resumed_training_knows_the_cost_of_the_processes_before_it(train_for):
    """The second process had used 50, 500 and 5 for other things before it went on with the training."""
    assert train_for(NO_COST, Cost(1.0, 10.0, 0.25), Cost(4.0, 40.0, 0.5)).cost_before == NO_COST
    assert train_for(Cost(50.0, 500.0, 5.0), Cost(53.0, 530.0, 6.0)).cost_before == Cost(4.0, 40.0, 0.5)
    assert train_for(NO_COST).cost_before == Cost(7.0, 70.0, 1.5)


def test_a_process_that_can_not_measure_energy_leaves_the_whole_unknown(train_for):
    train_for(Cost(0.0, 0.0, None), Cost(4.0, 0.0, None))
    train_for(NO_COST, Cost(3.0, 0.0, 2.0))
    assert train_for(NO_COST).cost_before == Cost(7.0, 0.0, None)


def test_a_state_of_an_earlier_version_does_not_know_its_cost():
    values = TrainingState(epoch=2, seconds=5.0, cost=Cost(1.0, 0.0, 2.0)).as_json()
    assert TrainingState.from_json(values).cost == Cost(1.0, 0.0, 2.0)
    del values["cost"]
    assert TrainingState.from_json(values).cost == NOT_MEASURED
