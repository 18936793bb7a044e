import numpy as np
import pytest
import tensorflow as tf

from aprec_like.errors import NotFiniteError
from aprec_like.losses import Softmax
from aprec_like.models import SASRec
from aprec_like.recipe import Trained
from aprec_like.training import Training
from evaluation.running.run_job import failure_reason
from evaluation.running.run_models import exit_reason

MODEL = Trained(SASRec(), Softmax(), Training())


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        np._core._exceptions._ArrayMemoryError((10**9, 10**9), np.dtype(float)),
        tf.errors.ResourceExhaustedError(None, None, "failed to allocate memory\n\tfor tensor"),
        tf.errors.InternalError(None, None, "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 8 bytes"),
    ],
)
def test_out_of_memory_names_the_settings_that_help(error):
    reason = failure_reason(error, MODEL)
    assert reason.startswith("out of memory (") and "\n" not in reason
    assert "a smaller batch_size, a sampled loss instead of a full one, a smaller max_length" in reason


def test_other_errors_are_named():
    assert failure_reason(NotFiniteError("the loss is not finite"), MODEL) == "the loss is not finite"
    assert failure_reason(KeyError("x"), MODEL) == "KeyError: 'x'"


@pytest.mark.parametrize(
    ("code", "part"),
    [(-9, "batch_size"), (-6, "batch_size"), (-4, "ONEDNN_MAX_CPU_ISA"), (-11, "signal 11"), (3, "code 3")],
)
def test_the_reason_of_a_killed_worker_follows_from_its_exit_code(code, part):
    assert part in exit_reason(code, MODEL)
