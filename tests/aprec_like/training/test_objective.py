import numpy as np
import pytest
import tensorflow as tf

from aprec_like.batches import BatchSettings, make_batches
from aprec_like.batches.layouts import Batch, LengthBucket
from aprec_like.losses import BCE, GBCE, SampledSoftmax, Softmax
from aprec_like.losses import chunked_sampled as logits
from aprec_like.models import BERT4Rec, GRU4Rec, SASRec
from aprec_like.negatives import Negatives
from aprec_like.training.objective import make_objective
from evaluation.benchmarking import naive
from tests.conftest import interactions_from


def small_network(num_items=12):
    return SASRec(max_length=4, embedding_dim=8, dropout_rate=0.0).build(num_items)


def batch_of(items, targets):
    """A batch of static shape: one bucket, PADDING where there is no target."""
    users, length = tf.range(len(items), dtype=tf.int64), len(items[0])
    flat = tf.constant(targets, tf.int32)
    positions = tf.range(flat.shape[0] * length, dtype=tf.int64)
    return Batch(
        (LengthBucket(users, tf.constant(items)),), tf.repeat(users, length), tf.reshape(flat, [-1]), positions
    )


def loss_of(network, loss, batch, seed=(1, 2), negatives=None):
    train = interactions_from([[1], [2]], network.num_items)
    objective = make_objective(loss, negatives or Negatives(), train)
    return float(objective(network, batch, tf.constant(seed, tf.int64)))


@pytest.mark.parametrize("kind", ["static", "open", "compiled"])
@pytest.mark.parametrize("limit", [0, 1000], ids=["gathered", "all logits"])
@pytest.mark.parametrize(("most", "loss"), [(4, GBCE(5, 0.5)), (7, SampledSoftmax(5)), (1000, BCE(5))])
def test_losses_in_chunks_have_the_values_and_gradients_of_the_plain_formula(monkeypatch, limit, most, loss, kind):
    monkeypatch.setattr(logits, "MAX_GEMM_ITEMS_PER_CANDIDATE", limit)
    monkeypatch.setattr(logits, "MAX_CHUNK_TARGETS", most)
    random = np.random.default_rng(0)
    states, table, offset = (
        tf.Variable(random.normal(size=shape).astype(np.float32)) for shape in ((11, 4), (50, 4), ())
    )
    candidates = tf.constant(random.integers(50, size=(11, 6)), tf.int32)
    weights = tf.constant(random.random(11), tf.float32)

    def plain():
        rows = tf.einsum("td,tcd->tc", states, tf.gather(table, candidates)) + offset
        return tf.reduce_sum(weights * loss(rows[:, 0], rows[:, 1:], 50))

    def chunked():
        inputs = states * 1.0
        # How many targets there are is known only in the graph, as in training, or before, as for XLA.
        if kind == "open":
            inputs = tf.compat.v1.placeholder_with_default(inputs, [None, 4])
        return logits.sampled_loss_sum(loss, inputs, tf.convert_to_tensor(table), candidates, weights, 50, offset)

    results = []
    for formula in (plain, tf.function(chunked, jit_compile=kind == "compiled")):
        with tf.GradientTape() as tape:
            value = 3 * formula()
        gradients = tape.gradient(value, [states, table, offset])
        results.append([value, *map(tf.convert_to_tensor, gradients)])
    for expected, found in zip(*results, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("limit", [0, 1000], ids=["gathered", "all logits"])
def test_gradients_have_the_same_bits_every_time(monkeypatch, limit):
    """Large enough for several threads, which must not add up in the order in which they happen to finish."""
    monkeypatch.setattr(logits, "MAX_GEMM_ITEMS_PER_CANDIDATE", limit)
    random = np.random.default_rng(0)
    states, table = (tf.Variable(random.normal(size=shape).astype(np.float32)) for shape in ((4000, 64), (2000, 64)))
    candidates = tf.constant(random.integers(2000, size=(4000, 129)), tf.int32)

    @tf.function(input_signature=[tf.TensorSpec([None, 64]), tf.TensorSpec([None, 129], tf.int32)])
    def gradients(inputs, candidates):
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            rows = tf.convert_to_tensor(table)
            weights = tf.ones(tf.shape(inputs)[:1])
            value = logits.sampled_loss_sum(GBCE(128, 0.5), inputs, rows, candidates, weights, 2000)
        return tape.gradient(value, [inputs, table])

    first = gradients(states, candidates)
    for _ in range(8):
        for found, expected in zip(gradients(states, candidates), first, strict=True):
            np.testing.assert_array_equal(found, expected)


LENGTHS = [1, 2, 3, 5, 8, 9, 17, 20, 30, 40, 55, 60, 4, 6, 7, 33]


@pytest.mark.parametrize(
    ("loss", "cls"),
    [
        (GBCE(6, 0.75), SASRec),
        (GBCE(6, 0.75), GRU4Rec),
        (GBCE(6, 0.75), BERT4Rec),
        (BCE(1), SASRec),
        (Softmax(), BERT4Rec),
    ],
)
def test_the_fast_step_has_the_gradient_of_the_naive_one(loss, cls):
    """Same batch, same negatives, no dropout: buckets, real positions and chunks change nothing."""
    random = np.random.default_rng(0)
    train = interactions_from([random.integers(30, size=length + 1).tolist() for length in LENGTHS], 30)
    sizes = {"max_length": 32, "embedding_dim": 8, "dropout_rate": 0.0}
    bert = BERT4Rec(**sizes, num_layers=2, num_heads=2, feed_forward_dim=16, is_padding_attended=False, has_head=True)
    model = bert if cls is BERT4Rec else cls(**sizes)
    network = model.build(30, logit_bias=None if isinstance(loss, Softmax) else -1.0)
    network.set_weights([random.normal(scale=0.3, size=weight.shape) for weight in network.get_weights()])
    batch = next(iter(make_batches(train, model.examples(), BatchSettings(16, 256, layout=4), seed=1)))
    assert len({bucket.inputs.shape[1] for bucket in batch.buckets}) > 1
    seed = tf.constant([3, 4], tf.int64)
    weights = [variable.value for variable in network.trainable_variables]
    with tf.GradientTape() as tape:
        value = make_objective(loss, Negatives(), train)(network, batch, seed)
    fast = tape.gradient(value, weights, unconnected_gradients=tf.UnconnectedGradients.ZERO)

    inputs, targets = naive.pad_batch(batch, 32)
    negatives = None
    if not isinstance(loss, Softmax):
        sampler = Negatives().sampler(train, loss.num_negatives)
        drawn = sampler(batch.users, batch.targets, tf.random.experimental.stateless_fold_in(seed, 1, alg="philox"))
        where = tf.where(targets != -1)
        negatives = tf.scatter_nd(where, drawn, [*targets.shape, loss.num_negatives])
    with tf.GradientTape() as tape:
        expected = naive.naive_loss(network, loss, inputs, targets, negatives)
    plain = tape.gradient(expected, weights, unconnected_gradients=tf.UnconnectedGradients.ZERO)
    assert float(value) == pytest.approx(float(expected), rel=1e-5)
    for ours, theirs in zip(fast, plain, strict=True):
        np.testing.assert_allclose(tf.convert_to_tensor(ours), tf.convert_to_tensor(theirs), atol=1e-5)


def test_the_mean_is_over_positions_with_a_target_not_over_users():
    """One user with three targets, one with one: the loss is a quarter of the four position losses."""
    network = small_network()
    items, targets = [[-1, 1, 2, 3], [-1, -1, -1, 5]], [[-1, 2, 3, 4], [-1, -1, -1, 6]]
    value = loss_of(network, Softmax(), batch_of(items, targets))
    states = network(tf.constant(items)).numpy()
    scores = states @ network.item_table.numpy().T
    losses = np.log(np.exp(scores).sum(-1)) - np.take_along_axis(scores, np.maximum(targets, 0)[..., None], -1)[..., 0]
    assert value == pytest.approx(losses[np.array(targets) >= 0].mean(), rel=1e-5)


@pytest.mark.parametrize("loss", [BCE(3), GBCE(3, 0.5), Softmax()])
def test_padding_on_the_left_changes_nothing(loss):
    """Without dropout, and with the negatives drawn from a catalogue whose logits are all equal."""
    network = small_network()
    if not isinstance(loss, Softmax):
        network.output_embedding.embeddings.assign(tf.ones_like(network.output_embedding.embeddings))
    short = loss_of(network, loss, batch_of([[1, 2]], [[2, 3]]))
    padded = loss_of(network, loss, batch_of([[-1, -1, 1, 2]], [[-1, -1, 2, 3]]))
    assert short == pytest.approx(padded, rel=1e-5)


def test_the_same_seed_gives_the_same_loss_and_another_seed_another():
    network = SASRec(max_length=4, embedding_dim=8, dropout_rate=0.5).build(12)
    batch = batch_of([[1, 2, 3, 4]], [[2, 3, 4, 5]])
    values = [loss_of(network, BCE(2), batch, seed) for seed in ([1, 1], [1, 1], [1, 2])]
    assert values[0] == values[1] != values[2]


@pytest.mark.parametrize("shared_by", ["sequence", "batch"])
def test_shared_negatives_give_the_loss_of_the_same_items_drawn_for_every_position(shared_by):
    network = small_network()
    network.output_embedding.embeddings.assign(tf.random.stateless_normal([14, 8], [1, 2]))
    items, targets = [[-1, 1, 2, 3], [4, 5, 6, 7]], [[-1, 2, 3, 4], [5, 6, 7, 8]]
    loss, seed = GBCE(5, 0.5), tf.constant([1, 2], tf.int64)
    value = loss_of(network, loss, batch_of(items, targets), negatives=Negatives(shared_by=shared_by))
    sampler = Negatives().sampler(interactions_from([[1], [2]], 12), 5)
    users = tf.range(2 if shared_by == "sequence" else 1)
    drawn = sampler(users, users, tf.random.experimental.stateless_fold_in(seed, 1, alg="philox"))
    negatives = tf.broadcast_to(drawn[:, None], [2, 4, 5])
    expected = naive.naive_loss(network, loss, tf.constant(items), tf.constant(targets), negatives)
    assert value == pytest.approx(float(expected), rel=1e-5)


def test_sharing_does_not_change_the_expected_loss():
    network = small_network()
    network.output_embedding.embeddings.assign(tf.random.stateless_normal([14, 8], [1, 2]))
    batch = batch_of([[1, 2, 3, 4], [5, 6, 7, 8]], [[2, 3, 4, 5], [6, 7, 8, 9]])
    means = {}
    for shared_by in ("position", "sequence", "batch"):
        train = interactions_from([[1], [2]], 12)
        objective = tf.function(make_objective(GBCE(4, 0.5), Negatives(shared_by=shared_by), train))
        values = [float(objective(network, batch, tf.constant([seed, 1], tf.int64))) for seed in range(300)]
        means[shared_by] = (np.mean(values), np.std(values) / np.sqrt(len(values)))
    for shared_by in ("sequence", "batch"):
        difference = abs(means[shared_by][0] - means["position"][0])
        assert difference < 4 * np.hypot(means[shared_by][1], means["position"][1])


@pytest.mark.parametrize("layout", [4, 0], ids=["buckets", "static"])
def test_softmax_over_unseen_items_leaves_out_the_users_whole_training_sequence(layout):
    """Also items before the window of the network; every position keeps its own target."""
    random = np.random.default_rng(0)
    sequences = [random.choice(30, size=size, replace=False).tolist() for size in (2, 5, 9, 20, 29)]
    train = interactions_from(sequences, 30)
    model = SASRec(max_length=8, embedding_dim=8, dropout_rate=0.0)
    network = model.build(30)
    network.set_weights([random.normal(scale=0.3, size=weight.shape) for weight in network.get_weights()])
    batches = make_batches(train, model.examples(), BatchSettings(5, 256, layout=layout), seed=1)
    objective = make_objective(Softmax(excludes_history=True), Negatives(), train)
    value = tf.function(lambda batch: objective(network, batch, tf.constant([1, 2], tf.int64)))
    found = value.get_concrete_function(batches.element_spec)(next(iter(batches)))
    losses = []
    for sequence in sequences:
        window = sequence[-9:]
        states = network(tf.constant([window[:-1]]))[0].numpy()
        for state, target in zip(states, window[1:], strict=True):
            logits = network.item_table.numpy() @ state
            is_in_sum = [item == target or item not in sequence for item in range(30)]
            losses.append(np.log(np.exp(logits[is_in_sum]).sum()) - logits[target])
    assert float(found) == pytest.approx(np.mean(losses), rel=1e-5)
