"""Steps that XLA does not compile as a whole, as a GPU gets them: kernels, host memory, and the same update."""

import itertools
import re
from dataclasses import replace

import keras
import numpy as np
import pytest
import tensorflow as tf

from aprec_like.batches import make_batches
from aprec_like.datasets import Lengths, Simulated
from aprec_like.devices import pretend_gpu
from aprec_like.interactions import Interactions
from aprec_like.losses import BCE, BPR, GBCE, SampledSoftmax, Softmax
from aprec_like.models import HSTU, BERT4Rec, SASRec
from aprec_like.models.sasrec import ORIGINAL_FLAVOUR
from aprec_like.negatives import Negatives
from aprec_like.optimizers import Adagrad, Adam
from aprec_like.recipe import MFBPR
from aprec_like.splits import LeaveOneOut
from aprec_like.training import Trained, Training, make_step
from aprec_like.training.objective import make_objective
from evaluation.benchmarking import gpu_kernels
from evaluation.benchmarking.forecast import compiled_step, trace_step
from evaluation.benchmarking.traced_step import read_traced_step

MAX_HOST_BYTES = 1_000_000
FLOAT_SCATTER = re.compile(r"= (?:b?f\d+)\[[^=]* scatter\(")
SASREC = SASRec(max_length=200, embedding_dim=128, num_blocks=1, dropout_rate=0.1)
BERT = BERT4Rec(
    max_length=200, embedding_dim=128, num_layers=1, num_heads=2, feed_forward_dim=128, is_padding_attended=False
)  # fmt: skip
SMALL = SASRec(max_length=32, embedding_dim=8, num_blocks=1, dropout_rate=0.0)
SMALL_BERT = BERT4Rec(max_length=32, embedding_dim=8, num_layers=1, num_heads=2, feed_forward_dim=16)
ORIGINAL = replace(SMALL, flavour=ORIGINAL_FLAVOUR)
TRAINING = Training(batch_size=128)
LAZY = replace(TRAINING, optimizer=Adam(lazy=True))
MIXED = replace(TRAINING, mixed_precision=True)
CASES = {
    "gBCE": Trained(SASREC, GBCE(128, 0.75), TRAINING, prior_start=True),
    "one negative": Trained(SASREC, BCE(1), TRAINING),
    "softmax": Trained(SASREC, Softmax(), TRAINING),
    "softmax over unseen items": Trained(SASREC, Softmax(excludes_history=True, label_smoothing=0.1), TRAINING),
    "HSTU, bfloat16": Trained(replace(SASREC, block=HSTU()), SampledSoftmax(128), MIXED),
    "sampled softmax, bfloat16": Trained(SASREC, SampledSoftmax(128), MIXED),
    "unseen negatives": Trained(SASREC, GBCE(128), TRAINING, Negatives(reject_history=True)),
    "popular negatives": Trained(SASREC, GBCE(128), TRAINING, Negatives(by_popularity=True, reject_positive=True)),
    "negatives of the sequence, lazy": Trained(SASREC, GBCE(128), LAZY, Negatives("sequence")),
    "negatives of the batch, lazy": Trained(SASREC, GBCE(128), LAZY, Negatives("batch")),
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


@pytest.mark.parametrize("name", CASES)
def test_at_the_size_of_gowalla_a_gpu_has_every_kernel_and_no_large_array_crosses_to_the_host(name, gowalla):
    with pretend_gpu():
        assert not CASES[name].is_step_compiled(gowalla)
        function = trace_step(CASES[name], gowalla)
    operations = list(gpu_kernels.walk_operations(function.graph))
    assert {operation.type for operation in operations if gpu_kernels.host_arguments(operation) is None} == set()
    large = {
        operation.name: operation.type
        for operation in operations
        if gpu_kernels.max_host_bytes(operation) > MAX_HOST_BYTES
    }
    assert large == {}
    assert {operation.type for operation in operations} & gpu_kernels.WAITING == set()
    scatters = {operation.type for operation in operations if "Scatter" in operation.type}
    assert scatters <= {"ResourceScatterUpdate"}  # of equal values where indices repeat
    arguments = function.inputs[: len(function.inputs) - len(function.captured_inputs)]
    crossing = [*read_traced_step(function).transfers, *map(gpu_kernels.num_tensor_bytes, arguments)]
    assert max(crossing) <= MAX_HOST_BYTES


LAWS = [
    Negatives(shared_by, reject_positive, reject_history, by_popularity)
    for shared_by, reject_positive, reject_history in (
        ("position", False, False),
        ("position", True, False),
        ("position", False, True),
        ("sequence", False, False),
        ("sequence", False, True),
        ("batch", False, False),
    )
    for by_popularity in (False, True)
]
LOSSES = (BCE(4), GBCE(4, 0.5), BPR(4), SampledSoftmax(4, is_corrected=False))
OPTIMIZERS = (Adam(), Adam(lazy=True), Adagrad())


def combinations(model):
    """Every loss with every law of negatives; optimisers and precisions in turn."""
    choices = itertools.cycle(itertools.product(OPTIMIZERS, (False, True)))
    for loss, law in [(Softmax(), Negatives()), *itertools.product(LOSSES, LAWS)]:
        optimizer, is_mixed = next(choices)
        yield Trained(model, loss, replace(TRAINING, optimizer=optimizer, mixed_precision=is_mixed), law)


@pytest.mark.slow
@pytest.mark.parametrize("num_items", [200, 40_000])
@pytest.mark.parametrize("model", [SMALL, SMALL_BERT, ORIGINAL], ids=["SASRec", "BERT4Rec", "original SASRec"])
def test_every_loss_law_optimiser_and_precision_has_kernels_and_sums_no_floats_in_any_order(model, num_items, split):
    random, wrong = np.random.default_rng(1), []
    items = random.integers(num_items, size=split.train.num_interactions).astype(np.int32)
    data = replace(split.train, items=items, item_ids=np.arange(num_items))
    for trained in combinations(model):
        with pretend_gpu():
            if trained.is_step_compiled(data):
                step, batch = compiled_step(trained, data)
                text = step.experimental_get_compiler_ir(*batch)(stage="hlo")
                if FLOAT_SCATTER.search(text):
                    wrong.append((trained, "a scatter of floats"))
                continue
            operations = list(gpu_kernels.walk_operations(trace_step(trained, data).graph))
        types = {operation.type for operation in operations}
        missing = {operation.type for operation in operations if gpu_kernels.host_arguments(operation) is None}
        scatters = {name for name in types if "Scatter" in name} - {"ResourceScatterUpdate"}
        if found := missing | (types & gpu_kernels.WAITING) | scatters:
            wrong.append((trained, found))
    assert wrong == []


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
