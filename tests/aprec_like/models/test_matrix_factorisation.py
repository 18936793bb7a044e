from aprec_like.models.matrix_factorisation import PairExamples
from tests.aprec_like.batches.taken_batches import take_batches
from tests.conftest import interactions_from


def test_pairs_pass_over_every_item_of_a_user_once():
    interactions = interactions_from([[0, 1, 0, 0], [2], [3, 4, 3, 5]])
    batches = take_batches(interactions, 3, examples=PairExamples())
    pairs = [(int(user), int(item)) for batch in batches for user, item in zip(batch.users, batch.targets, strict=True)]
    assert sorted(pairs) == [(0, 0), (0, 1), (1, 2), (2, 3), (2, 4), (2, 5)]
