"""`train`: builds a network, runs epochs of training steps with validation, and restores the best weights."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

import keras
import numpy as np

from aprec_like.batches import make_batches
from aprec_like.interactions import Interactions
from aprec_like.out_of_core import release
from aprec_like.ranking import NetworkScorer, rank
from aprec_like.splits import Split
from aprec_like.training.checkpoints import Checkpoints
from aprec_like.training.cost import NO_COST, Cost
from aprec_like.training.epoch_loop import EpochLoop, TrainingControl
from aprec_like.training.hosts import Hosts
from aprec_like.training.objective import make_objective
from aprec_like.training.settings import Trained
from aprec_like.training.state import EpochRecord
from aprec_like.training.step import Steps, make_step, make_steps
from aprec_like.types import Tensor


@dataclass(frozen=True, eq=False)
class TrainingOutcome:
    """The result of a training.

    Args:
        scorer: the network with the weights of its best epoch, or of the last one without validation.
        history: one record per epoch.
        stopped_by: `max_epochs`, `early_stopping` or `time_limit`.
        seconds_before: seconds of training before the checkpoint that this process resumed from.
        cost_before: cost of training before that checkpoint.
    """

    scorer: NetworkScorer
    history: list[EpochRecord]
    stopped_by: str
    seconds_before: float = 0.0
    cost_before: Cost = NO_COST

    @property
    def best(self) -> EpochRecord:
        """The epoch whose weights the network has."""
        return next((record for record in reversed(self.history) if record.is_best), self.history[-1])


def train(
    trained: Trained, split: Split, *, seed: int, exclude_seen: bool = True, control: TrainingControl | None = None
) -> TrainingOutcome:
    """Train a network on `split.train` until validation stops improving, and give it the weights of its best epoch.

    With checkpoints, an interrupted training resumes from its last saved state and ends with the weights it would have
    had without the interruption: everything random is a function of the seed and the number of the step. A finished
    training with a larger `max_epochs`, patience or time limit goes on from its last state in the same way.

    In the scope of a `tf.distribute` strategy (`aprec_like.devices.make_strategy`) several devices or hosts share every
    batch and differ from one in the order of sums alone; a training may go on with another number of them.

    Args:
        trained: architecture, loss and settings.
        split: training interactions, and the validation cases that choose the best epoch.
        seed: seed of initial weights, order of users, dropout and negatives. Sets Keras' global seed.
        exclude_seen: whether validation excludes the items of a user's history from the ranking.
        control: time limit, checkpoints, stopping and callbacks.

    Raises:
        NotFiniteError: if the loss or a score is not finite.
        StoppedError: if a stop was requested.
    """
    keras.utils.set_random_seed(seed)
    control, training, hosts = control or TrainingControl(), trained.training, Hosts()
    hosts.check_time_limit(control.time_limit)
    data = trained.training_data(split)
    network, optimizer = trained.build_network(data), training.optimizer.build()
    objective = make_objective(trained.loss, trained.negatives, data)
    scorer = NetworkScorer(network)
    with tempfile.TemporaryDirectory() as temporary:
        checkpoints = control.checkpoints or Checkpoints(Path(temporary), fingerprint=None)
        loop = EpochLoop(control, hosts.own_checkpoints(checkpoints, Path(temporary)), hosts.max_steps_per_call)
        loop.reopen(training)
        start = (loop.state.epoch - 1, loop.state.step)
        hosts.check_same_start(start)
        batches = make_batches(data, trained.model.examples(), trained.batch_settings, seed, start=start)
        is_compiled = trained.is_step_compiled(data)
        step = make_step(network, objective, optimizer, seed, batches.element_spec, is_compiled)
        loop.restore(network.variables, optimizer.variables)
        control.on_start(loop.state.history, loop.state.step)
        steps, num_steps = _releasing(make_steps(step, batches), data), trained.num_steps_per_epoch(data)
        while loop.state.stopped_by is None:
            loss = loop.run_epoch(steps, num_steps)
            validation = None
            if training.early_stopping:
                cases, numbers = hosts.own_cases(split.validation)
                rankings = rank(
                    scorer,
                    cases,
                    exclude_seen=exclude_seen,
                    depth=control.validation_depth,
                    on_progress=lambda num_ranked: loop.stop_if_requested(),
                )
                control.on_validation(rankings)
                per_user = training.early_stopping.metric.per_user(rankings.ranks)
                validation = float(np.mean(hosts.gather_cases(per_user, numbers, len(split.validation))))
            loop.end_epoch(loss, validation, training)
        loop.restore_best_weights()
    return TrainingOutcome(scorer, loop.state.history, loop.state.stopped_by, loop.seconds_before, loop.cost_before)


def _releasing(steps: Steps, data: Interactions) -> Steps:
    """Return a function that does steps, then releases the pages of mapped training data that they have read."""

    def run_steps(first: Tensor, num_steps: Tensor, total: Tensor) -> Tensor:
        total = steps(first, num_steps, total)
        release(data.items)
        return total

    return run_steps
