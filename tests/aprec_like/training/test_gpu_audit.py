"""Steps as a GPU gets them, looked up operation by operation: kernels, host memory, order of sums, and the update."""

import inspect
import re
from dataclasses import fields, is_dataclass, replace

import keras
import numpy as np
import pytest
import tensorflow as tf

from aprec_like import losses, models, negatives, optimizers, schedules
from aprec_like.batches import make_batches
from aprec_like.datasets import Lengths, Simulated
from aprec_like.devices import pretend_gpu
from aprec_like.interactions import Interactions
from aprec_like.losses import BCE, GBCE, SampledSoftmax, Softmax
from aprec_like.models import HSTU, BERT4Rec, GRU4Rec, LiGR, RelativePositionBias, SASRec
from aprec_like.negatives import Negatives
from aprec_like.optimizers import Adam
from aprec_like.recipe import MFBPR
from aprec_like.schedules import WarmUp
from aprec_like.splits import LeaveOneOut
from aprec_like.training import Trained, Training, make_step
from aprec_like.training.objective import make_objective
from evaluation.benchmarking import gpu_kernels
from evaluation.benchmarking.forecast import compiled_step, trace_step
from evaluation.benchmarking.traced_step import read_traced_step
from tests.aprec_like.training.gpu_cases import ALL_SETTINGS, MODELS, chosen_cases

MAX_HOST_BYTES = 1_000_000
FLOAT_SCATTER = re.compile(r"= (?:b?f\d+)\[[^=]* scatter\(")
SASREC = SASRec(max_length=200, embedding_dim=128, num_blocks=1, dropout_rate=0.1)
BERT = BERT4Rec(
    max_length=200, embedding_dim=128, num_layers=1, num_heads=2, feed_forward_dim=128, is_padding_attended=False
)  # fmt: skip
GRU = GRU4Rec(max_length=200, embedding_dim=128, dropout_rate=0.1)
SMALL = SASRec(max_length=32, embedding_dim=8, num_blocks=1, dropout_rate=0.0)
TRAINING = Training(batch_size=128)
LAZY = replace(TRAINING, optimizer=Adam(lazy=True))
MIXED = replace(TRAINING, mixed_precision=True)
DECAYED = replace(TRAINING, optimizer=Adam(WarmUp(1e-3, num_steps=100), weight_decay=0.01, clip_norm=1.0))
CASES = {
    "gBCE": Trained(SASREC, GBCE(128, 0.75), TRAINING, prior_start=True),
    "one negative": Trained(SASREC, BCE(1), TRAINING),
    "softmax": Trained(SASREC, Softmax(), TRAINING),
    "softmax over unseen items": Trained(SASREC, Softmax(excludes_history=True, label_smoothing=0.1), TRAINING),
    "LiGR, distinct negatives, weight decay, clipping, schedule": Trained(
        replace(SASREC, block=LiGR(position_bias=RelativePositionBias())),
        SampledSoftmax(128),
        DECAYED,
        Negatives("batch", without_replacement=True),
    ),
    "HSTU, bfloat16": Trained(replace(SASREC, block=HSTU()), SampledSoftmax(128), MIXED),
    "sampled softmax, bfloat16": Trained(SASREC, SampledSoftmax(128), MIXED),
    "unseen negatives": Trained(SASREC, GBCE(128), TRAINING, Negatives(reject_history=True)),
    "popular negatives": Trained(SASREC, GBCE(128), TRAINING, Negatives(by_popularity=True, reject_positive=True)),
    "negatives of the sequence, lazy": Trained(SASREC, GBCE(128), LAZY, Negatives("sequence")),
    "negatives of the batch, lazy": Trained(SASREC, GBCE(128), LAZY, Negatives("batch")),
    "GRU4Rec": Trained(GRU, GBCE(128, 0.75), TRAINING, prior_start=True),
    "GRU4Rec, bfloat16": Trained(GRU, Softmax(), MIXED),
    "BERT4Rec": Trained(BERT, Softmax(), TRAINING),
    "MF-BPR": MFBPR(embedding_dim=128, epochs=1),
}


@pytest.fixture(scope="module")
def gowalla():
    """Random sequences with the sizes of Gowalla."""
    random = np.random.default_rng(1)
    lengths = np.minimum(random.geometric(1 / 75, size=86_168) + 4, 400)
    num_items, offsets = 1_271_638, np.concatenate([[0], np.cumsum(lengths)])
    items = random.integers(num_items, size=offsets[-1]).astype(np.int32)
    return Interactions(items, offsets, user_ids=np.arange(86_168), item_ids=np.arange(num_items))


@pytest.fixture(scope="module")
def split():
    """More items than a compiled step takes."""
    lengths = Lengths(median=60, spread=0.7, minimum=3, maximum=250)
    return LeaveOneOut(64).split(Simulated(num_users=300, num_items=40_000, lengths=lengths).load(None))


def traced_step(trained, split):
    keras.utils.set_random_seed(1)
    data = trained.training_data(split)
    assert not trained.is_step_compiled(data)
    batches = make_batches(data, trained.model.examples(), trained.batch_settings, seed=2)
    objective = make_objective(trained.loss, trained.negatives, data)
    network, optimizer = trained.build_network(data), trained.training.optimizer.build()
    return network, batches, make_step(network, objective, optimizer, 1, batches.element_spec)


def find_faults(trained, data, is_packed=True):
    """What a GPU lacks, serialises, waits for or has on the host in one step; operations by their types."""
    with pretend_gpu():
        if trained.is_step_compiled(data):
            step, batch = compiled_step(trained, data, is_packed)
            function, crossing = step.get_concrete_function(), ()
            num_scatters = len(FLOAT_SCATTER.findall(step.experimental_get_compiler_ir(*batch)(stage="hlo")))
            outside, inside = [], list(gpu_kernels.walk_operations(function.graph, enters_compiled=True))
        else:
            function = trace_step(trained, data, is_packed)
            read, _, crossing = read_traced_step(function)
            num_scatters = read.num_float_scatters
            outside = list(gpu_kernels.walk_operations(function.graph))
            inside = list(gpu_kernels.walk_compiled_operations(function.graph))
    arguments = function.inputs[: len(function.inputs) - len(function.captured_inputs)]
    crossing = [*crossing, *map(gpu_kernels.num_tensor_bytes, arguments)]
    types = {operation.type for operation in outside}
    scatters = {name for name in types if "Scatter" in name} - {"ResourceScatterUpdate"}  # of equal values, if repeated
    found = {
        "no kernel": {each.type for each in outside if gpu_kernels.host_arguments(each) is None},
        "not compiled by XLA": {each.type for each in inside if not gpu_kernels.has_compiled_kernel(each)},
        "raises": types & gpu_kernels.RAISING,
        "waits": types & gpu_kernels.WAITING,
        "sums in any order": scatters | ({"XLA"} if num_scatters else set()),
        "on the host": {each.type for each in outside if gpu_kernels.max_host_bytes(each) > MAX_HOST_BYTES},
        "copied, bytes": {num_bytes for num_bytes in crossing if num_bytes > MAX_HOST_BYTES},
    }
    return {fault: where for fault, where in found.items() if where}


@pytest.mark.parametrize("name", CASES)
def test_at_the_size_of_gowalla_a_gpu_has_every_kernel_and_no_large_array_crosses_to_the_host(name, gowalla):
    with pretend_gpu():
        assert not CASES[name].is_step_compiled(gowalla)
    assert find_faults(CASES[name], gowalla) == {}


def with_items(data, num_items):
    """The same users with random items of a catalogue of another size, at random times."""
    items = np.random.default_rng(1).integers(num_items, size=data.num_interactions).astype(np.int32)
    times = np.cumsum(np.random.default_rng(2).integers(10**5, size=data.num_interactions))
    return replace(data, items=items, item_ids=np.arange(num_items), timestamps=times)


@pytest.mark.parametrize(
    "law",
    [Negatives(), Negatives("sequence", by_popularity=True)],
    ids=["per position", "of the sequence, by popularity"],
)
def test_lazy_adam_of_a_small_catalogue_runs_on_a_gpu(law, split):
    assert find_faults(Trained(SMALL, GBCE(4), LAZY, law), with_items(split.train, 200)) == {}


def test_a_compiled_step_runs_on_a_gpu(split):
    trained = Trained(MODELS["LiGR with positions"], Softmax(excludes_history=True), DECAYED)
    assert find_faults(trained, with_items(split.train, 200)) == {}


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_a_gpu_runs_every_pair_of_parts_that_a_recipe_can_declare(name, split):
    cases = [case for case in chosen_cases() if case.name == name]
    found = {case: find_faults(case.trained, with_items(split.train, case.num_items), case.is_packed) for case in cases}
    assert {case: faults for case, faults in found.items() if faults} == {}


def exported_settings():
    """The settings of networks and their training that recipes can import; not their base classes."""
    found = {
        value
        for module in (losses, models, negatives, optimizers, schedules)
        for value in vars(module).values()
        if inspect.isclass(value) and is_dataclass(value) and not issubclass(value, models.CountingModel)
    }
    return {each for each in found if not any(other is not each and issubclass(other, each) for other in found)}


def test_the_audit_has_every_part_that_a_recipe_can_declare():
    assert exported_settings() - {type(settings) for settings in ALL_SETTINGS} == set()


@pytest.mark.parametrize("kind", sorted(exported_settings(), key=lambda kind: kind.__name__))
def test_the_audit_has_every_switch_of_a_part_in_both_positions(kind):
    instances = [settings for settings in ALL_SETTINGS if type(settings) is kind]
    switches = [field.name for field in fields(kind) if field.type == "bool" or "None" in str(field.type)]
    for name in switches:
        assert len({getattr(settings, name) for settings in instances}) > 1, name


@pytest.mark.parametrize("name", ["gBCE", "popular negatives", "negatives of the batch, lazy"])
def test_a_gpu_makes_the_same_update_of_a_large_table(name, split):
    trained = replace(CASES[name], model=SMALL, loss=GBCE(8))

    def two_updates():
        network, batches, step = traced_step(trained, split)
        losses = [float(step(batch, tf.constant(n, tf.int64))) for n, batch in enumerate(batches.take(2))]
        return losses, network.get_weights()

    losses, weights = two_updates()
    with pretend_gpu():
        gpu_losses, gpu_weights = two_updates()
    np.testing.assert_allclose(gpu_losses, losses, rtol=1e-5)
    for ours, theirs in zip(gpu_weights, weights, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-5)
