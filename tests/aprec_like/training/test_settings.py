import pytest

from aprec_like.losses import GBCE, SampledSoftmax, Softmax
from aprec_like.models import SASRec
from aprec_like.negatives import Negatives
from aprec_like.training import Trained, Training


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"loss": Softmax(), "prior_start": True}, "binary loss"),
        ({"loss": GBCE(), "prior_start": True, "negatives": Negatives(by_popularity=True)}, "uniform negatives"),
        (
            {"loss": SampledSoftmax(num_negatives=4, is_corrected=True), "negatives": Negatives(by_popularity=True)},
            "uniform negatives",
        ),
    ],
)
def test_settings_that_contradict_each_other_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        Trained(model=SASRec(), training=Training(), **settings)
