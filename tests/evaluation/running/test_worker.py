import numpy as np
import pytest
import tensorflow as tf

from aprec_like.errors import NotFiniteError
from aprec_like.losses import Softmax
from aprec_like.models import SASRec
from aprec_like.recipe import Trained
from aprec_like.training import Training
from evaluation.running import run_recipe as runner
from evaluation.running import worker

MODEL = Trained(SASRec(), Softmax(), Training())


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        np._core._exceptions._ArrayMemoryError((10**9, 10**9), np.dtype(float)),
        tf.errors.ResourceExhaustedError(None, None, "failed to allocate memory\n\tfor tensor"),
    ],
)
def test_out_of_memory_names_the_settings_that_help(error):
    reason = worker._reason(error, MODEL)
    assert reason.startswith("out of memory (") and "\n" not in reason
    assert "a smaller batch_size, a sampled loss instead of a full one, a smaller max_length" in reason


def test_other_errors_are_named():
    assert worker._reason(NotFiniteError("the loss is not finite"), MODEL) == "the loss is not finite"
    assert worker._reason(KeyError("x"), MODEL) == "KeyError: 'x'"


@pytest.mark.parametrize(("code", "part"), [(-9, "batch_size"), (-6, "batch_size"), (-11, "signal 11"), (3, "code 3")])
def test_a_process_that_could_not_speak_is_spoken_for(code, part):
    class Recipe:
        models = {"SASRec": MODEL}  # noqa: RUF012

    assert part in runner._reason(code, Recipe, "SASRec")
