from dataclasses import replace

import numpy as np
import pytest

from aprec_like.batches.layouts import STATIC
from aprec_like.devices import pretend_gpu
from aprec_like.gathers import MAX_ONE_HOT_ROWS
from aprec_like.interactions import Interactions
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


def test_jit_compile_does_not_bring_scatters_of_large_tables_or_padding_to_a_gpu():
    small = Interactions.from_ids(np.array([1, 1]), np.array([1, 2]))
    large = replace(small, item_ids=np.arange(MAX_ONE_HOT_ROWS + 1))
    for jit_compile in (False, True):
        trained = Trained(SASRec(), GBCE(), Training(jit_compile=jit_compile))
        assert trained.is_step_compiled(large) == jit_compile
        with pretend_gpu():
            assert trained.is_step_compiled(small) and not trained.is_step_compiled(large)
            assert trained.batch_settings.layout is None  # packed
    assert trained.batch_settings.layout == STATIC
