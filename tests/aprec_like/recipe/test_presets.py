from aprec_like.losses import GBCE
from aprec_like.models import SASRec
from aprec_like.recipe import gSASRec
from aprec_like.training import Trained, Training


def test_gsasrec_is_sasrec_with_gbce():
    training = Training()
    preset = gSASRec(training, num_negatives=8, calibration=0.5, prior_start=False, max_length=10)
    assert preset == Trained(SASRec(max_length=10), GBCE(num_negatives=8, calibration=0.5), training)


def test_gsasrec_starts_from_the_prior_unless_told_otherwise():
    assert gSASRec(Training()).prior_start
