import numpy as np
import pytest
import tensorflow as tf

from aprec_like.losses import BCE, BPR, GBCE, LeftOut, SampledSoftmax, Softmax, chunks, softmax


def gamma(logit, beta):
    """The paper's transformation of the positive logit (section 5.3), straight from its definition, in float64."""
    sigmoid = 1 / (1 + np.exp(-np.float64(logit)))
    return np.log(1 / (sigmoid**-beta - 1))


def value(loss, positive, negatives, num_items):
    return float(loss(tf.constant(positive, tf.float64), tf.constant(negatives, tf.float64), num_items))


@pytest.mark.parametrize(
    ("positive", "negatives", "num_items", "t", "alpha", "beta", "transformed", "expected"),
    [
        (1.5, [-0.5, 0.25], 101, 0.5, 0.02, 0.51, 2.2239409, 0.4675790586),
        (1.5, [-0.5], 3416, 0.0, 2.9282577e-4, 1.0, 1.5, 0.3377451311),
        (1.5, [-0.5], 3416, 1.0, 2.9282577e-4, 2.9282577e-4, 9.7382997, 0.2370679816),
        (-3.0, [2.0, -1.0, 0.0, 0.5], 3416, 1.0, 1.1713031e-3, 1.1713031e-3, 5.6331741, 0.8221969366),
        (-30.0, [-0.5], 3416, 0.0, 2.9282577e-4, 1.0, -30.0, 15.23703849),
    ],
)
def test_vectors_of_the_original_code(positive, negatives, num_items, t, alpha, beta, transformed, expected):
    loss = GBCE(len(negatives), t)
    assert loss.sampling_rate(num_items) == pytest.approx(alpha, rel=1e-6)
    assert loss.power(num_items) == pytest.approx(beta, rel=1e-6)
    assert gamma(positive, loss.power(num_items)) == pytest.approx(transformed, rel=1e-6)
    assert value(loss, positive, negatives, num_items) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(
    ("num_items", "k", "t", "alpha", "beta"),
    [
        (3416, 256, 0.75, 0.074963, 0.30622),
        (13044, 128, 0.9, 9.8137e-3, 0.108832),
        (1271638, 128, 0.9, 1.00658e-4, 0.100091),
    ],
)
def test_alpha_and_beta_of_the_papers_datasets(num_items, k, t, alpha, beta):
    assert GBCE(k, t).sampling_rate(num_items) == pytest.approx(alpha, rel=1e-4)
    assert GBCE(k, t).power(num_items) == pytest.approx(beta, rel=1e-4)


@pytest.mark.parametrize("t", [0.0, 0.25, 0.5, 0.75, 1.0])
@pytest.mark.parametrize("k", [1, 16])
def test_gbce_is_bce_of_the_transformed_positive(t, k):
    """Theorem 5.2's second form: training with gBCE is training with BCE after gamma."""
    random = np.random.default_rng(0)
    for positive in np.linspace(-8, 8, 9):
        negatives = random.normal(size=k) * 3
        loss = GBCE(k, t)
        as_bce = value(BCE(k), gamma(positive, loss.power(500)), negatives, 500)
        assert value(loss, positive, negatives, 500) == pytest.approx(as_bce, rel=1e-9)


def test_beta_is_the_papers_formula():
    for t in (0.0, 0.3, 1.0):
        alpha = GBCE(7, t).sampling_rate(100)
        assert GBCE(7, t).power(100) == pytest.approx(alpha * (t * (1 - 1 / alpha) + 1 / alpha), rel=1e-12)


def test_gbce_without_calibration_is_bce():
    logits = np.random.default_rng(1).normal(size=(5, 4))
    assert value_of_many(GBCE(3, 0.0), logits) == pytest.approx(value_of_many(BCE(3), logits), rel=1e-12)


def test_bce_by_hand():
    """At logits of 0 every candidate costs log 2; the original SASRec sums them."""
    assert value(BCE(1), 0.0, [0.0], 10) == pytest.approx(np.log(2))
    assert value(BCE(1, is_averaged=False), 0.0, [0.0], 10) == pytest.approx(2 * np.log(2))


@pytest.mark.parametrize("logit", [-200.0, 200.0])
def test_extreme_logits_stay_finite_and_keep_their_gradient(logit):
    positive, negative = tf.constant([logit]), tf.constant([[logit]])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch([positive, negative])
        loss = tf.reduce_sum(GBCE(1, 1.0)(positive, negative, 1_000_000))
    assert np.isfinite(float(loss))
    wrong = tape.gradient(loss, positive if logit < 0 else negative)
    assert abs(float(tf.reduce_sum(wrong))) > 1e-7


def value_of_many(loss, logits):
    return loss(tf.constant(logits[:, 0]), tf.constant(logits[:, 1:]), 100).numpy()


def test_softmax_is_the_negative_log_probability():
    random = np.random.default_rng(2)
    states, table, targets = random.normal(size=(2, 3, 4)), random.normal(size=(7, 4)), random.integers(7, size=(2, 3))
    logits = states @ table.T
    expected = np.log(np.exp(logits).sum(-1)) - np.take_along_axis(logits, targets[..., None], -1)[..., 0]
    np.testing.assert_allclose(Softmax()(tf.constant(states), tf.constant(table), targets), expected, rtol=1e-10)


@pytest.mark.parametrize("jit_compile", [False, True])
@pytest.mark.parametrize("chunk_items", [1, 7, 25, 50, 1000])
def test_softmax_in_chunks_has_the_values_and_gradients_of_all_logits_at_once(monkeypatch, chunk_items, jit_compile):
    monkeypatch.setattr(softmax, "MIN_CHUNK_ITEMS", chunk_items)
    monkeypatch.setitem(chunks.CHUNK_ELEMENTS, "CPU", 1)
    random = np.random.default_rng(0)
    states, table = (tf.constant(random.normal(size=shape), tf.float32) for shape in ((2, 3, 8), (50, 8)))
    targets, weights = tf.constant([[0, 49, 7], [7, 7, 24]]), tf.constant(random.random((2, 3)), tf.float32)

    def plain(states, table):
        return tf.nn.sparse_softmax_cross_entropy_with_logits(targets, tf.einsum("bld,id->bli", states, table))

    def gradients(loss, **options):
        @tf.function(**options)
        def compute(states, table):
            losses = loss(4 * states, table)  # far from equal probabilities
            return losses, *tf.gradients(tf.reduce_sum(weights * losses), [states, table])

        return compute(states, table)

    found = gradients(lambda states, table: Softmax()(states, table, targets), jit_compile=jit_compile)
    for ours, theirs in zip(found, gradients(plain), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("label_smoothing", [0.0, 0.2])
@pytest.mark.parametrize("is_left_out", [False, True])
@pytest.mark.parametrize("kind", ["static", "open", "compiled"])
def test_softmax_over_unseen_items_has_the_values_and_gradients_of_a_plain_loop(
    monkeypatch, kind, is_left_out, label_smoothing
):
    monkeypatch.setattr(softmax, "MIN_CHUNK_ITEMS", 7)
    monkeypatch.setitem(chunks.CHUNK_ELEMENTS, "CPU", 1)
    random = np.random.default_rng(0)
    states, table = random.normal(size=(6, 8)), random.normal(size=(50, 8))
    targets, rows, upstream = np.array([0, 49, 7, 7, 3, 24]), np.array([0, 0, 1, 1, 1, 2]), random.random(6)
    histories = [[0, 49, 2, 8, 9], [7, 3, 48, 30], [*range(20, 50)]]
    if not is_left_out:
        histories = [[], [], []]

    def plain(states, table):
        """The definition, a position at a time: the target's share of its items is 1 - smoothing + smoothing / n."""
        losses = []
        for state, target, row in zip(tf.unstack(states), targets, rows, strict=True):
            items = [item for item in range(50) if item == target or item not in histories[row]]
            log_probabilities = tf.nn.log_softmax(tf.linalg.matvec(tf.gather(table, items), state))
            labels = np.where(np.array(items) == target, 1 - label_smoothing, 0.0) + label_smoothing / len(items)
            losses.append(-tf.reduce_sum(labels * log_probabilities))
        return tf.stack(losses)

    pairs = [(row, item) for row, items in enumerate(histories) for item in items] + [(0, -1)]
    left_out = LeftOut(tf.constant(rows), *(tf.constant(column, tf.int64) for column in zip(*pairs, strict=True)), 3)
    loss = Softmax(excludes_history=is_left_out, label_smoothing=label_smoothing)
    assert loss.leaves_out_history == is_left_out

    def chunked(states, table):
        inputs = tf.compat.v1.placeholder_with_default(states, [None, 8]) if kind == "open" else states
        return loss(inputs, table, tf.constant(targets), left_out if is_left_out else None)

    def gradients(function, **options):
        @tf.function(**options)
        def compute(states, table):
            losses = function(4 * states, table)
            return losses, *map(tf.convert_to_tensor, tf.gradients(tf.reduce_sum(upstream * losses), [states, table]))

        return compute(tf.constant(states), tf.constant(table))

    found = gradients(chunked, jit_compile=kind == "compiled")
    for ours, theirs in zip(found, gradients(plain), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9)


def test_softmax_of_a_number_of_positions_that_only_the_graph_knows():
    random = np.random.default_rng(0)
    states, table = random.normal(size=(5, 4)), tf.constant(random.normal(size=(30, 4)))
    loss = tf.function(lambda states: Softmax()(states, table, tf.range(tf.shape(states)[0])))
    expected = Softmax()(tf.constant(states), table, tf.range(5))
    open_shape = loss.get_concrete_function(tf.TensorSpec([None, 4], tf.float64))
    np.testing.assert_allclose(open_shape(tf.constant(states)), expected, rtol=1e-10)


@pytest.mark.parametrize("is_corrected", [False, True])
def test_sampled_softmax_with_every_other_item_once_is_softmax(is_corrected):
    random = np.random.default_rng(3)
    state, table, target = random.normal(size=4), random.normal(size=(9, 4)), 5
    logits = table @ state
    loss = SampledSoftmax(8, is_corrected=is_corrected)
    sampled = value(loss, logits[target], np.delete(logits, target), 9)
    assert sampled == pytest.approx(
        float(Softmax()(tf.constant(state[None]), tf.constant(table), [target])[0]), rel=1e-12
    )


def test_the_correction_lets_a_negative_stand_for_several_items():
    """All logits 0 among 101 items, 10 negatives: 1 + 10 x 10 instead of 1 + 10 in the denominator."""
    assert value(SampledSoftmax(10), 0.0, [0.0] * 10, 101) == pytest.approx(np.log(11))
    assert value(SampledSoftmax(10, is_corrected=True), 0.0, [0.0] * 10, 101) == pytest.approx(np.log(101))


def test_bpr_by_hand():
    assert value(BPR(1), 2.0, [2.0], 10) == pytest.approx(np.log(2))
    assert value(BPR(2), 1.0, [0.0, 3.0], 10) == pytest.approx(np.mean(np.log1p(np.exp([-1.0, 2.0]))))


@pytest.mark.parametrize("t", [-0.1, 1.5, float("nan")])
def test_calibration_must_lie_between_0_and_1(t):
    with pytest.raises(ValueError, match="between 0 and 1"):
        GBCE(1, t)


@pytest.mark.parametrize("label_smoothing", [-0.1, 1.0])
def test_label_smoothing_must_lie_between_0_and_1(label_smoothing):
    with pytest.raises(ValueError, match="label_smoothing < 1"):
        Softmax(label_smoothing=label_smoothing)


def test_the_number_of_negatives_must_be_positive_and_that_of_the_logits():
    with pytest.raises(ValueError, match="at least 1"):
        BCE(0)
    with pytest.raises(ValueError, match=r"num_negatives=3\). Received: shape \(2, 5\)"):
        BCE(3)(tf.zeros([2]), tf.zeros([2, 5]), 10)


@pytest.mark.parametrize(
    "loss", [BCE(6), GBCE(6, 0.5), BPR(6), SampledSoftmax(6), SampledSoftmax(6, is_corrected=True)]
)
def test_counted_negatives_have_the_loss_of_the_same_negatives_one_by_one(loss):
    random = np.random.default_rng(1)
    logits, sampled = random.normal(size=(4, 5)).astype(np.float32), random.integers(5, size=(4, 6))
    counts = np.stack([np.bincount(row, minlength=5) for row in sampled]).astype(np.float32)
    positive = tf.constant(random.normal(size=4), tf.float32)
    one_by_one = loss(positive, tf.constant(np.take_along_axis(logits, sampled, axis=1)), 100)
    np.testing.assert_allclose(loss(positive, tf.constant(logits), 100, tf.constant(counts)), one_by_one, rtol=1e-5)
