"""Tables of measurements, and the values that are computed from several measurements of a model."""

from __future__ import annotations

from collections.abc import Mapping

from aprec_like.types import Json
from evaluation.benchmarking.setup import Measurement
from evaluation.figures.growth import TITLES, Growth
from evaluation.table import Table

COLUMNS = {
    "Step, s": ("step_seconds", "{:.3f}"),
    "naive, s": ("naive_step_seconds", "{:.3f}"),
    "ratio": ("step_ratio", "{:.1f}"),
    "Network, s": ("encoder_seconds", "{:.3f}"),
    "Output, s": ("output_seconds", "{:.3f}"),
    "ratio  ": ("output_ratio", "{:.1f}"),
    "Targets/s": ("tokens_per_second", "{:,.0f}"),
    "Memory, GiB": ("peak_memory_gib", "{:.2f}"),
    "Input": ("input_share", "{:.1%}"),
    "Validation": ("validation_share", "{:.1%}"),
    "Saving": ("save_share", "{:.1%}"),
    "Users/s": ("users_per_second", "{:,.0f}"),
    "naive": ("naive_users_per_second", "{:,.0f}"),
    "ratio ": ("ranking_ratio", "{:.1f}"),
    "Ranking, GiB": ("ranking_memory_gib", "{:.2f}"),
}
"""Measured value and format of each column of the benchmark's table."""


def add_ratios(measured: Measurement) -> None:
    """Add the ratios to the naive code, and the shares of input, steps, validation and saving in an epoch."""
    for fast, naive, ratio in (
        ("step_seconds", "naive_step_seconds", "step_ratio"),
        ("output_seconds", "naive_output_seconds", "output_ratio"),
        ("naive_users_per_second", "users_per_second", "ranking_ratio"),
    ):
        if fast in measured and naive in measured:
            measured[ratio] = measured[naive] / measured[fast]
    if "step_seconds" in measured and "users_per_second" in measured:
        num_steps = measured.pop("steps_per_epoch")
        validation = measured.pop("validation_users") / measured["users_per_second"]
        waiting, stepping = num_steps * measured["input_seconds"], num_steps * measured["step_seconds"]
        epoch = waiting + stepping + validation + measured["save_seconds"]
        measured |= {
            "epoch_seconds": epoch,
            "input_share": waiting / epoch,
            "step_share": stepping / epoch,
            "validation_share": validation / epoch,
            "save_share": measured["save_seconds"] / epoch,
        }


def benchmark_table(models: Mapping[str, Measurement]) -> Table:
    """Return a table with one row per model; cells of missing measurements are empty."""
    rows = [
        [name, *(form.format(measured[key]) if key in measured else "" for key, form in COLUMNS.values())]
        for name, measured in models.items()
    ]
    return Table("benchmark", ["Model", *COLUMNS], [rows])


def forecast_table(models: Mapping[str, Json]) -> Table:
    """Return a table with one row per forecast."""
    formats = {
        "Kernels": ("kernels", "{:,}"),
        "Chunks": ("chunks", "{}"),
        "Padding": ("padding", "{:.2f}"),
        "Float scatters": ("float_scatters", "{}"),
        "Host, MB": ("host_megabytes", "{:.2f}"),
        "GFLOP": ("gflop", "{:.1f}"),
        "GB": ("gigabytes", "{:.1f}"),
    }
    devices = list(dict.fromkeys(name for found in models.values() for name in found["milliseconds"]))
    rows = [
        [name, *(form.format(found[key]) for key, form in formats.values())]
        + [f"{found['milliseconds'][device]:.1f}" for device in devices]
        for name, found in models.items()
    ]
    caption = (
        "Forecast of a training step on GPUs, not a measurement: kernels of XLA's CPU compiler as an estimate, outside "
        "XLA TensorFlow's operations after Grappler; times from data sheets (float32 without TF32). Padding: positions "
        "computed over real ones. Host: copied between host and device, the batch included."
    )
    return Table("forecast", ["Model", *formats, *(f"{device}, ms" for device in devices)], [rows], caption)


def growth_table(growth: Growth) -> Table:
    """Return a table with one row per model and size."""
    rows = [
        [name, TITLES[varied], f"{value:,}", f"{measured['step_seconds']:.3f}", f"{measured['peak_memory_gib']:.2f}"]
        for name, sweeps in growth.items()
        for varied, values in sweeps.items()
        for value, measured in values.items()
    ]
    return Table("growth", ["Model", "Varied", "Value", "Step, s", "Memory, GiB"], [rows])
