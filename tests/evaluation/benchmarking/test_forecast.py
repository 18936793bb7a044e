import json
import sys
import time

import pytest
import tensorflow as tf

from aprec_like.datasets import Lengths, Simulated
from aprec_like.devices import pretend_gpu
from aprec_like.losses import BCE, GBCE, Softmax
from aprec_like.models import SASRec
from aprec_like.splits import LeaveOneOut
from aprec_like.training import Trained, Training
from evaluation import benchmark
from evaluation.benchmarking.compiled_step import num_type_bytes, read_compiled_step
from evaluation.benchmarking.forecast import Device, compiled_step, forecast

HLO = """HloModule made
%fused (p0: f32[4]) -> f32[4] {
  %p0 = f32[4]{0} parameter(0)
  ROOT %double = f32[4]{0} add(f32[4]{0} %p0, f32[4]{0} %p0)
}
%adding (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %sum = f32[] add(%a, %b)
}
ENTRY %main (x: f32[2,3], y: f32[3,5]) -> f32[2,5] {
  %x = f32[2,3]{1,0} parameter(0)
  %y = f32[3,5]{1,0} parameter(1)
  %product = f32[2,5]{1,0} dot(%x, %y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  %one = f32[4]{0} fusion(%product), kind=kLoop, calls=%fused, metadata={op_name="a/ResourceApplyAdam_1"}
  %two = f32[4]{0} fusion(%product), kind=kLoop, calls=%fused, metadata={op_name="a/ResourceApplyAdam_1"}
  %indices = s32[4]{0} fusion(%one), kind=kLoop, calls=%fused
  ROOT %out = f32[2,5]{1,0} scatter(%product, %indices, %two), to_apply=%adding
}
"""


def test_kernels_bytes_and_products_are_counted():
    step = read_compiled_step(HLO)
    product, adam, indices, scatter = step.kernels
    assert product.num_flops == 2 * 2 * 3 * 5  # a product and a sum for each of 2 x 5 outputs and 3 terms
    assert product.num_bytes == 4 * (6 + 15 + 10)
    assert adam.num_bytes == 2 * 4 * (10 + 4)  # both outputs of one optimiser step are one kernel
    assert indices.num_bytes == 4 * (4 + 4)
    assert scatter.num_flops == 0 and step.num_float_scatters == 1


ROW_SUMS = """HloModule made
%partial (p: f32[6,128], zero: f32[]) -> f32[6,4] {
  %p = f32[6,128]{1,0} parameter(0)
  %zero = f32[] parameter(1)
  ROOT %windows = f32[6,4]{1,0} reduce-window(%p, %zero), window={size=1x32 stride=1x32}, to_apply=%adding
}
%columns (p: f32[640,128], zero: f32[]) -> f32[20,128] {
  %p.1 = f32[640,128]{1,0} parameter(0)
  %zero.1 = f32[] parameter(1)
  ROOT %windows.1 = f32[20,128]{1,0} reduce-window(%p.1, %zero.1), window={size=32x1 stride=32x1}, to_apply=%adding
}
ENTRY %main (x: f32[6,128], y: f32[640,128], zero: f32[]) -> f32[6] {
  %x = f32[6,128]{1,0} parameter(0)
  %y = f32[640,128]{1,0} parameter(1)
  %none = f32[] parameter(2)
  %parts = f32[6,4]{1,0} fusion(%x, %none), kind=kLoop, calls=%partial
  %column_parts = f32[20,128]{1,0} fusion(%y, %none), kind=kLoop, calls=%columns
  %column_sums = f32[128]{0} reduce(%column_parts, %none), dimensions={0}, to_apply=%adding
  ROOT %sums = f32[6]{0} reduce(%parts, %none), dimensions={1}, to_apply=%adding
}
"""


def test_a_sum_over_rows_is_one_kernel_and_one_over_columns_two():
    step = read_compiled_step(ROW_SUMS)
    assert len(step.kernels) == 3
    assert max(kernel.num_bytes for kernel in step.kernels) == 4 * (640 * 128 + 1 + 20 * 128)
    row_sums = next(kernel for kernel in step.kernels if kernel.operation == "sums")
    assert row_sums.num_bytes == 4 * ((6 * 128 + 1 + 6 * 4) + (6 * 4 + 1 + 6))


@pytest.mark.parametrize(("text", "expected"), [("f32[2,3]{1,0}", 24), ("(bf16[4], s64[2])", 24), ("pred[]", 1)])
def test_types_have_their_bytes(text, expected):
    assert num_type_bytes(text) == expected


def test_a_kernel_takes_its_launch_and_the_longer_of_memory_and_arithmetic():
    step = read_compiled_step(HLO)
    only_launches = Device(launch_seconds=1.0, bytes_per_second=1e30, flops_per_second=1e30)
    assert only_launches.seconds(step) == pytest.approx(4.0)
    only_arithmetic = Device(launch_seconds=0.0, bytes_per_second=1e30, flops_per_second=60.0)
    assert only_arithmetic.seconds(step) == pytest.approx(1.0)


RECIPE = """
from aprec_like.datasets import Simulated
from aprec_like.losses import GBCE
from aprec_like.models import Popularity, SASRec
from aprec_like.recipe import Recipe, Trained
from aprec_like.training import Training

recipe = Recipe(
    dataset=Simulated(num_users=600, num_items=500),
    models={
        "Popularity": Popularity(),
        "gSASRec": Trained(SASRec(max_length=64, embedding_dim=8, num_blocks=1), GBCE(8), Training(batch_size=32)),
    },
)
"""


def test_the_command_forecasts_trained_models(tmp_path, monkeypatch, capsys):
    (tmp_path / "small.py").write_text(RECIPE)
    monkeypatch.setattr(sys, "argv", ["benchmark", str(tmp_path / "small.py"), "--forecast", "--json"])
    assert benchmark.main() == 0
    models = json.loads(capsys.readouterr().out)["models"]
    assert list(models) == ["gSASRec"]
    found = models["gSASRec"]
    assert found["float_scatters"] == 0 and found["chunks"] == 1 and 1 <= found["padding"] < 1.7
    assert found["milliseconds"]["T4"] > found["milliseconds"]["A100"] > 0.005 * found["kernels"] / 1.01


def test_a_step_that_is_not_compiled_as_a_whole_has_a_forecast_too():
    split = LeaveOneOut(64).split(Simulated(num_users=300, num_items=40_000).load(None))
    trained = Trained(SASRec(max_length=16, embedding_dim=8, num_blocks=1), GBCE(8), Training(batch_size=32))
    found = forecast(trained, split)
    assert found["float_scatters"] == 0 and found["chunks"] == 1 and found["kernels"] > 100
    assert 0 < found["host_megabytes"] < 0.1  # the batch
    passes = 2 * 7 * 4 * 8 * 40_000  # Adam, over two tables of 8 dimensions
    assert passes / 1e9 < found["gigabytes"] < 3 * passes / 1e9


@pytest.mark.slow
@pytest.mark.parametrize(("loss", "batch_size"), [(GBCE(256, 0.75), 128), (BCE(1), 128), (Softmax(), 64)])
def test_a_step_of_the_papers_size_has_few_kernels_chunks_and_padded_positions(loss, batch_size):
    """The sizes of MovieLens-1M; its lengths have a median of 96, and users have at least 20 items."""
    lengths = Lengths(median=96, spread=1.0, minimum=20, maximum=1_700)
    split = LeaveOneOut(512).split(Simulated(num_users=6_040, num_items=3_416, lengths=lengths).load(None))
    found = forecast(Trained(SASRec(), loss, Training(batch_size=batch_size)), split)
    print(loss, found)
    assert found["kernels"] <= 300 and found["chunks"] <= 2 and found["padding"] <= 1.3
    assert found["float_scatters"] == 0 and found["host_megabytes"] < 2  # the batch in both layouts
    assert found["milliseconds"]["A100"] <= 10


def best_seconds(function, num_times=5):
    function()
    seconds = []
    for _ in range(num_times):
        started = time.monotonic()
        function()
        seconds.append(time.monotonic() - started)
    return min(seconds)


@pytest.mark.slow
@pytest.mark.parametrize("loss", [GBCE(256), Softmax()])
def test_with_the_rates_of_this_cpu_the_forecast_is_its_measured_step_within_a_factor_of_two(loss):
    """Needs a quiet machine."""
    matrix, vector = tf.ones([2048, 2048]), tf.Variable(tf.zeros([25_000_000]))
    product = tf.function(lambda: tf.matmul(matrix, matrix)[0, 0], jit_compile=True)
    scale = tf.function(lambda: vector.assign(vector * 0.5 + 1)[0], jit_compile=True)
    cpu = Device(
        launch_seconds=1e-6,
        bytes_per_second=2 * 4 * vector.shape[0] / best_seconds(lambda: float(scale())),
        flops_per_second=2 * 2048**3 / best_seconds(lambda: float(product())),
    )
    lengths = Lengths(median=100, spread=0.7, minimum=5, maximum=400)
    split = LeaveOneOut(64).split(Simulated(num_users=1_000, num_items=3_400, lengths=lengths).load(None))
    trained = Trained(SASRec(max_length=200, embedding_dim=128), loss, Training(batch_size=64))
    with pretend_gpu():
        step, batch = compiled_step(trained, split.train)
        expected = cpu.seconds(read_compiled_step(step.experimental_get_compiler_ir(*batch)(stage="optimized_hlo")))
        measured = best_seconds(lambda: float(step(*batch)))
    print(f"{loss}: measured {measured:.3f} s, forecast {expected:.3f} s")
    assert 0.5 < measured / expected < 2
