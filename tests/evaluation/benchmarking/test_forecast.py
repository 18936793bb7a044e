import json
import sys

import pytest

from evaluation import benchmark
from evaluation.benchmarking.compiled_step import num_type_bytes, read_compiled_step
from evaluation.benchmarking.forecast import Device

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
