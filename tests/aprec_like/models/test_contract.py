"""Contracts of all models; a network that is listed in the package is tested with its defaults."""

from dataclasses import replace

import keras
import numpy as np
import pytest

from aprec_like import models
from aprec_like.errors import InputError
from aprec_like.interactions import Histories
from aprec_like.losses import BCE, GBCE, SampledSoftmax, Softmax
from aprec_like.models import (
    BERT4Rec,
    Block,
    GRU4Rec,
    LiGR,
    MarkovChain,
    MatrixFactorisation,
    NeuralModel,
    Popularity,
    PreNorm,
    RelativePositionBias,
    SASRec,
    SASRecBlock,
    SwiGLU,
)
from aprec_like.negatives import Negatives
from aprec_like.optimizers import Adam
from aprec_like.ranking import NetworkScorer, rank
from aprec_like.recipe import MFBPR, Trained
from aprec_like.recipe_classes import recipe_classes
from aprec_like.splits import LeaveOneOut
from aprec_like.training.loop import train
from aprec_like.training.settings import EarlyStopping, Training
from tests.aprec_like.models.own_gru import GRU
from tests.aprec_like.test_contracts import assert_is_a_setting, listed
from tests.conftest import NUM_ITEMS, circle_sequences, interactions_from

SASREC = SASRec(max_length=8, embedding_dim=16, num_blocks=1, dropout_rate=0.1)
BERT4REC = BERT4Rec(
    max_length=8, embedding_dim=16, num_layers=1, feed_forward_dim=32, dropout_rate=0.0, is_padding_attended=False
)
GRU4REC = GRU4Rec(max_length=8, embedding_dim=16, dropout_rate=0.1)
NETWORKS = {
    "SASRec": SASREC,
    "GRU4Rec": GRU4REC,
    "GRU4Rec, two layers": replace(GRU4REC, num_layers=2, is_tied=False),
    "BERT4Rec": BERT4REC,
    "BERT4Rec, padding attended": replace(BERT4REC, is_padding_attended=True),
    "BERT4Rec, head": replace(BERT4REC, has_head=True),
    "BERT4Rec, PreNorm": replace(BERT4REC, num_heads=2, block=PreNorm(SwiGLU(2), RelativePositionBias())),
    "MatrixFactorisation": MatrixFactorisation(16),
}
NETWORKS |= {
    f"SASRec, {cls.__name__}": replace(SASREC, num_heads=2, block=cls())
    for cls in listed(models, Block)
    if cls is not SASRecBlock
}
NETWORKS["own model"] = GRU()
SEQUENCE_NETWORKS = {name: model for name, model in NETWORKS.items() if name != "MatrixFactorisation"}
TESTED = {type(model) for model in NETWORKS.values()}
NETWORKS |= {cls.__name__: cls() for cls in listed(models, NeuralModel) if cls not in TESTED}
PACKAGE_NETWORKS = {name: model for name, model in NETWORKS.items() if name != "own model"}
"""Networks that know their number of parameters, and can be read as whole Keras models."""
TRAINING = Training(
    batch_size=32, max_epochs=60, early_stopping=EarlyStopping(patience=25), optimizer=Adam(learning_rate=0.01)
)

PATIENT = replace(TRAINING, max_epochs=80, early_stopping=EarlyStopping(patience=80), optimizer=Adam(0.003))
"""For models that stand at chance for dozens of epochs before they find the circle, or never at a higher rate."""


def by_name(models):
    return pytest.mark.parametrize("model", models.values(), ids=list(models))


def random_scorer(model, num_users=30, seed=0):
    """All weights random, so that no part of the network is idle."""
    network = model.build(NUM_ITEMS, num_users=num_users)
    random = np.random.default_rng(seed)
    network.set_weights([random.normal(scale=0.3, size=weight.shape) for weight in network.get_weights()])
    return NetworkScorer(network)


@pytest.fixture(scope="module")
def data():
    return interactions_from(circle_sequences(200), NUM_ITEMS)


@pytest.fixture(scope="module")
def split(data):
    return LeaveOneOut(num_validation_users=50).split(data)


@by_name(NETWORKS)
def test_an_architecture_is_a_setting(model):
    assert_is_a_setting(model, recipe_classes() | {"GRU": GRU})


@by_name(NETWORKS)
def test_scores_have_a_row_per_user_and_a_column_per_item(model, data):
    assert random_scorer(model).score(data.histories(np.arange(7))).shape == (7, NUM_ITEMS)


@by_name(NETWORKS)
def test_a_batch_scores_like_its_users_one_by_one(model, data):
    scorer = random_scorer(model)
    together = scorer.score(data.histories(np.arange(7))).numpy()
    alone = [scorer.score(data.histories(np.array([user]))).numpy()[0] for user in range(7)]
    np.testing.assert_allclose(together, alone, atol=1e-4)


@by_name(PACKAGE_NETWORKS)
def test_the_number_of_parameters_is_known_without_building(model):
    network = model.build(NUM_ITEMS, num_users=30)
    assert network.count_params() == model.num_parameters(NUM_ITEMS, 30)


@by_name(NETWORKS)
def test_the_same_seed_builds_the_same_network(model, data):
    scores = []
    for seed in (1, 1, 2):
        keras.utils.set_random_seed(seed)
        scorer = NetworkScorer(model.build(NUM_ITEMS, num_users=30))
        scores.append(scorer.score(data.histories(np.arange(5))).numpy())
    np.testing.assert_array_equal(scores[0], scores[1])
    assert np.abs(scores[0] - scores[2]).max() > 0


@by_name(NETWORKS)
def test_weights_survive_saving(model, data, tmp_path):
    scorer, other = random_scorer(model, seed=1), random_scorer(model, seed=2)
    scorer.network.save_weights(tmp_path / "best.weights.h5")
    other.network.load_weights(tmp_path / "best.weights.h5")
    histories = data.histories(np.arange(5))
    np.testing.assert_array_equal(scorer.score(histories), other.score(histories))


@by_name(PACKAGE_NETWORKS)
def test_a_network_survives_saving_as_a_keras_model(model, data, tmp_path):
    scorer = NetworkScorer(model.build(NUM_ITEMS, num_users=30, logit_bias=-1.5))
    scorer.network.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    histories = data.histories(np.arange(5))
    np.testing.assert_array_equal(scorer.score(histories), NetworkScorer(loaded).score(histories))


@by_name(SEQUENCE_NETWORKS)
def test_a_padded_tensor_has_the_states_of_its_histories(model, data):
    network, histories = random_scorer(model).network, data.histories(np.arange(7))
    expected = network.last_states(histories)
    for length in (histories.lengths.max(), 30):
        np.testing.assert_allclose(network.next_item_states(histories.last(length)), expected, atol=1e-5)


@by_name(SEQUENCE_NETWORKS)
def test_more_room_for_padding_changes_a_score_only_where_padding_is_attended(model, data):
    """The same weights in a network with a longer window; its last positions are those of the shorter one."""
    short, long = random_scorer(model), random_scorer(replace(model, max_length=12))
    for ours, theirs in zip(short.network.trainable_variables, long.network.trainable_variables, strict=True):
        if ours.shape == theirs.shape:
            theirs.assign(ours)
        elif "distances" in ours.path:  # distance 0 is in the middle
            theirs.assign(np.pad(ours.numpy(), ((4, 4), (0, 0))))
        else:  # the position table: SASRec ends at row max_length - 1, BERT4Rec at row max_length
            last, longer = (8, 12) if isinstance(model, SASRec) else (9, 13)
            values = theirs.numpy()
            values[longer - 8 : longer] = ours.numpy()[last - 8 : last]
            theirs.assign(values)
    histories = Histories(np.array([3, 4, 5, 9, 10], np.int32), np.array([0, 3, 5]))
    difference = np.abs(short.score(histories).numpy() - long.score(histories).numpy()).max()
    is_attended = isinstance(model, BERT4Rec) and model.is_padding_attended
    assert difference > 1e-3 if is_attended else difference < 1e-4


@pytest.mark.parametrize("settings", [{"keras_dropout": 0.2}, {"has_batch_norm": True}], ids=str)
def test_layers_that_would_do_nothing_are_refused(settings):
    with pytest.raises(InputError, match=r"GRUNetwork: the layer .* training mode, which is never on"):
        GRU(**settings).build(NUM_ITEMS)


LEARNERS = {
    "own model": Trained(GRU(), Softmax(), TRAINING),
    "SASRec, sampled softmax": Trained(SASREC, SampledSoftmax(8), TRAINING),
    "SASRec, corrected": Trained(SASREC, SampledSoftmax(8, is_corrected=True), TRAINING),
    "SASRec, unseen items": Trained(replace(SASREC, block=LiGR()), Softmax(excludes_history=True), TRAINING),
    "SASRec, shared": Trained(SASREC, GBCE(8, 0.5), TRAINING, Negatives(shared_by="batch")),
    "SASRec, popularity": Trained(SASREC, GBCE(8, 0.5), TRAINING, Negatives(by_popularity=True, reject_positive=True)),
    "GRU4Rec, gBCE": Trained(GRU4REC, GBCE(8, 0.5), TRAINING, prior_start=True),
    "GRU4Rec, unseen items": Trained(GRU4REC, Softmax(excludes_history=True), TRAINING),
    "GRU4Rec, sampled softmax": Trained(GRU4REC, SampledSoftmax(8), TRAINING, Negatives("sequence")),
    "GRU4Rec, one negative": Trained(GRU4REC, BCE(1), TRAINING, Negatives(reject_history=True)),
    "BERT4Rec, softmax": Trained(BERT4REC, Softmax(), PATIENT),
    "BERT4Rec, gBCE": Trained(BERT4REC, GBCE(8, 0.5), PATIENT, Negatives(shared_by="sequence")),
    "BERT4Rec, head": Trained(replace(BERT4REC, has_head=True), SampledSoftmax(8), PATIENT),
}


@pytest.mark.parametrize("trained", LEARNERS.values(), ids=list(LEARNERS))
def test_the_next_item_on_a_circle_is_learned_with_any_loss(trained, split):
    outcome = train(trained, split, seed=1)
    assert np.mean(rank(outcome.scorer, split.test, exclude_seen=True).ranks == 1) > 0.6  # by chance 0.05


def test_the_markov_chain_knows_the_circle_and_popularity_does_not(split):
    models = (MarkovChain(), Popularity())
    chain, popularity = (rank(model.fit(split.test.known), split.test, exclude_seen=True).ranks for model in models)
    assert np.mean(chain == 1) > 0.99
    assert np.mean(popularity == 1) < 0.3


def test_the_markov_chain_falls_back_on_popularity():
    known = interactions_from([[0, 1, 2], [0, 2], [2, 3]], 5)
    scores = MarkovChain().fit(known).score(Histories(np.array([0, 4], np.int32), np.array([0, 1, 2, 2])))
    assert scores[0].argsort()[::-1].tolist()[:2] == [2, 1]  # both followed 0 once; 2 is more popular
    assert scores[1].argmax() == scores[2].argmax() == 2  # nothing followed 4, and nothing is known of the third user


def test_matrix_factorisation_learns_who_likes_what():
    """Two crowds with items of their own; each user is asked for an item of the same crowd."""
    random = np.random.default_rng(0)
    sequences = [random.permutation(np.arange(10) + 10 * (user % 2))[:6].tolist() for user in range(100)]
    split = LeaveOneOut(20).split(interactions_from(sequences, 20))
    trained = MFBPR(embedding_dim=8, epochs=30, batch_size=64)
    outcome = train(trained, split, seed=1)
    ranks = rank(outcome.scorer, split.test, exclude_seen=True).ranks
    assert np.mean(ranks <= 5) > 0.95  # of ten items of the crowd, five are seen
    assert outcome.history[-1].validation is None
    assert outcome.best.epoch == 30
    with pytest.raises(InputError, match="not for a new history"):
        outcome.scorer.score(Histories(np.array([1], np.int32), np.array([0, 1])))
