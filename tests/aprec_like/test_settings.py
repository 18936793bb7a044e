from dataclasses import replace

import pytest

from aprec_like.datasets import FirstUsers, Lengths, Simulated
from aprec_like.errors import InputError
from aprec_like.filters import KCore
from aprec_like.losses import Softmax
from aprec_like.models import BERT4Rec, Oracle, SASRec
from aprec_like.recipe_classes import DATA_CLASSES, recipe_classes
from aprec_like.settings import describe, restore
from aprec_like.splits import LeaveOneOut
from aprec_like.training import Trained, Training


def test_settings_are_described_completely():
    described = describe(Trained(SASRec(), Softmax(), Training()))
    assert described["class"] == "Trained"
    assert described["model"]["flavour"]["layer_norm_epsilon"] == 1e-3
    assert described["training"]["early_stopping"] == {"class": "EarlyStopping", "metric": "NDCG@10", "patience": 200}
    other = describe(Trained(replace(SASRec(), dropout_rate=0.4), Softmax(), Training()))
    assert described != other


@pytest.mark.parametrize(
    "settings",
    [
        Simulated(num_users=10, lengths=Lengths(median=5, spread=0.5, minimum=2, maximum=9)),
        FirstUsers(Simulated(), filters=(KCore(user=2, item=3),), num_users=5),
        LeaveOneOut(num_validation_users=None),
        BERT4Rec(max_length=8),
        Oracle(Simulated()),
    ],
)
def test_described_settings_are_restored(settings):
    assert restore(describe(settings), recipe_classes()) == settings


@pytest.mark.parametrize(
    ("described", "message"),
    [
        ({"class": "Path"}, "the class 'Path', which this version does not know"),
        ({"class": "SASRec"}, "the class 'SASRec'"),
        ({"class": "LeaveOneOut", "folds": 3}, "settings of LeaveOneOut that this version does not know"),
    ],
)
def test_unknown_classes_and_fields_are_refused(described, message):
    with pytest.raises(InputError, match=message):
        restore(described, DATA_CLASSES)


def test_a_setting_that_json_cannot_hold_is_refused():
    with pytest.raises(TypeError, match="must be a number, string"):
        describe({"step": len})
