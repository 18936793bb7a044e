from dataclasses import replace

from aprec_like.losses import GBCE, SampledSoftmax
from aprec_like.models import GSASREC_FLAVOUR, LiGR, PreNorm, SASRec
from aprec_like.recipe import eSASRec, gSASRec
from aprec_like.training import Trained, Training


def test_gsasrec_is_sasrec_with_gbce():
    training = Training()
    preset = gSASRec(training, num_negatives=8, calibration=0.5, prior_start=False, max_length=10)
    assert preset == Trained(SASRec(max_length=10), GBCE(num_negatives=8, calibration=0.5), training)


def test_gsasrec_starts_from_the_prior_unless_told_otherwise():
    assert gSASRec(Training()).prior_start


def test_esasrec_is_a_tied_sasrec_with_gated_blocks_and_an_uncorrected_sampled_softmax():
    """With the sizes that its authors chose for MovieLens-1M, each of which can be replaced."""
    model = SASRec(
        max_length=200,
        embedding_dim=64,
        num_blocks=2,
        num_heads=1,
        dropout_rate=0.1,
        flavour=replace(GSASREC_FLAVOUR, is_tied=True),
        block=LiGR(),
    )
    training = Training()
    assert eSASRec(training) == Trained(model, SampledSoftmax(256, is_corrected=False), training)
    other = eSASRec(training, num_negatives=8, embedding_dim=16, block=PreNorm())
    assert other == Trained(replace(model, embedding_dim=16, block=PreNorm()), SampledSoftmax(8), training)
