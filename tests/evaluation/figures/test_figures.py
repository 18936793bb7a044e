"""Figures of a run; what they show is checked as numbers, not as pixels."""

import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from matplotlib.figure import Figure
from scipy import stats

from aprec_like.errors import InputError
from aprec_like.files import StorageError
from aprec_like.losses import BCE, GBCE, Softmax
from aprec_like.models import SASRec
from aprec_like.negatives import Negatives
from aprec_like.recipe import Trained
from aprec_like.settings import describe
from aprec_like.training import Training
from evaluation.analysis.comparison import compare_models
from evaluation.calibration.predictions import calibration_remarks, read_calibrated_models
from evaluation.calibration.summary import summarise
from evaluation.figures.all_figures import MAX_LINES, make_figures, write_figures
from evaluation.figures.calibration import draw_confidence
from evaluation.figures.results import draw_learning, read_learning_curves
from evaluation.figures.style import TEXT_COLOUR, assign_styles, format_log_axes, save_figure, to_svg
from evaluation.figures.sweeps import describe_grid, find_grids, find_sweeps, grid_p_values
from evaluation.page.large_files import read_large_files
from evaluation.results.load import load_runs
from tests.evaluation.made_runs import GRID, LOSSES, MIXED, NUM_ITEMS, make_run, trained


def all_figures(runs, user=None):
    data = read_large_files(runs, user=user)
    return list(make_figures(runs, compare_models(runs), data.calibration, data.item_counts))


def summaries_of(runs):
    return [summarise(model, None, 0, "first") for model in read_calibrated_models(runs)]


def test_a_run_has_the_figures_that_its_models_allow(tmp_path):
    runs = load_runs([make_run(tmp_path / "mixed")])
    names = [report_figure.name for report_figure in all_figures(runs)]
    assert names == ["pairs", "learning", "time", "confidence", "reliability", "user", "dataset"]
    grid = load_runs([make_run(tmp_path / "grid", GRID)])
    assert [report_figure.name for report_figure in all_figures(grid)][:2] == ["grid-SASRec", "negatives"]
    counted = load_runs([make_run(tmp_path / "counted", {"Popularity": MIXED["Popularity"]})])
    assert [report_figure.name for report_figure in all_figures(counted)] == ["time", "dataset"]


def test_every_figure_is_written_as_pdf_and_png_and_the_same_each_time(tmp_path):
    run = make_run(tmp_path / "mixed")
    runs = load_runs([run])
    chosen = [figure for figure in all_figures(runs) if figure.name in ("learning", "user")]
    write_figures(run, chosen)
    files = {path.name: path.read_bytes() for path in run.figures_path.iterdir()}
    assert set(files) == {"learning.pdf", "learning.png", "user.pdf", "user.png"}
    assert files["user.pdf"].startswith(b"%PDF") and files["user.png"].startswith(b"\x89PNG")
    write_figures(run, chosen)
    assert {path.name: path.read_bytes() for path in run.figures_path.iterdir()} == files


def test_svg_is_well_formed_takes_the_colour_of_the_page_and_shares_no_ids(tmp_path):
    runs = load_runs([make_run(tmp_path / "mixed")])
    texts = [to_svg(figure.figure, f"f{number}") for number, figure in enumerate(all_figures(runs)[:3])]
    ids = []
    for text in texts:
        root = ElementTree.fromstring(text)
        ids += [element.get("id") for element in root.iter() if element.get("id")]
        assert TEXT_COLOUR not in text and "currentColor" in text
    assert len(set(ids)) == len(ids)
    assert "gSASRec &lt;t&gt; &amp; $k$" in texts[0]


def test_a_model_has_the_same_style_in_every_figure(tmp_path):
    runs = load_runs([make_run(tmp_path / "mixed")])
    styles = assign_styles(runs.settings["models"])
    curves = read_learning_curves(runs)
    assert [curve.model for curve in curves] == [name for name in MIXED if name != "Popularity"]
    figure = draw_learning(curves, styles, "NDCG@10")
    drawn = {line.get_label(): line.get_color() for line in figure.axes[0].lines}
    assert {name: drawn[name] for name in styles if name != "Popularity"} == {
        name: style.colour for name, style in styles.items() if name != "Popularity"
    }
    assert len({(style.colour, style.marker) for style in assign_styles(map(str, range(10))).values()}) == 10


def test_the_stars_of_a_grid_are_bonferroni_corrected_one_sided_tests_against_its_reference(tmp_path):
    runs = load_runs([make_run(tmp_path / "grid", GRID)])
    (grid,) = find_grids(runs)
    assert (grid.negatives, grid.calibrations, grid.reference) == ((1, 4, 16), (0.0, 0.5, 1.0), (1, 0.0))
    p_values = grid_p_values(grid, "NDCG@10")
    assert len(p_values) == 8
    first = runs.find("k=1, t=0").per_user("NDCG@10")
    for (k, t), p_value in p_values.items():
        other = runs.find(f"k={k}, t={t:g}").per_user("NDCG@10")
        one_sided = stats.ttest_rel(other, first, alternative="greater").pvalue
        assert p_value == pytest.approx(min(1, 8 * one_sided), rel=1e-6, abs=0)


def test_validation_selects_the_cell_of_a_grid_and_its_test_value_is_stated(tmp_path):
    run = make_run(tmp_path / "grid", GRID)
    folder = run.model("k=4, t=0.5", 1)
    folder.finish(
        **{k: v for k, v in folder.status().items() if k not in ("state", "at", "sha256", "checksum")}
        | {"best_validation": 0.9}
    )
    runs = load_runs([run])
    (grid,) = find_grids(runs)
    assert grid.selected() == ((4, 0.5), 0.9)
    value = runs.find("k=4, t=0.5").per_user("NDCG@10").mean()
    assert f"chooses k = 4, t = 0.5 (0.9000 there); its test NDCG@10 is {value:.4f}" in describe_grid(grid, "NDCG@10")


def test_a_grid_that_is_still_running_has_empty_cells_and_two_axes_only(tmp_path):
    run = make_run(tmp_path / "grid", GRID)
    run.model("k=16, t=1", 1).write_status("running")
    (grid,) = find_grids(load_runs([run]))
    assert len(grid.models) == 8 and (16, 1.0) not in grid.models
    assert find_grids(load_runs([make_run(tmp_path / "mixed")])) == []


def test_negatives_that_are_sampled_otherwise_are_another_line(tmp_path):
    shared = {
        f"{k} per batch": describe(Trained(SASRec(), GBCE(k, 0.5), Training(), Negatives(shared_by="batch")))
        for k in (4, 16)
    }
    models = {"4 each": trained(GBCE(4, 0.5)), "8 each": trained(GBCE(8, 0.5))} | shared
    sweeps = find_sweeps(load_runs([make_run(tmp_path / "laws", models)]))
    assert [(sweep.loss, sweep.negatives.tolist()) for sweep in sweeps] == [
        ("gBCE, t = 0.5", [4, 8]),
        ("gBCE, t = 0.5, shared by batch", [4, 16]),
    ]
    twice = models | {"4 again": trained(GBCE(4, 0.5), SASRec(dropout_rate=0.1))}
    sweeps = find_sweeps(load_runs([make_run(tmp_path / "twice", twice)]))
    assert [sweep.loss for sweep in sweeps] == ["gBCE, t = 0.5, shared by batch"]  # dropout varies in the other


def test_the_optimum_of_the_sampler_and_theorem_1_are_two_curves(tmp_path):
    runs = load_runs([make_run(tmp_path / "made", {"SASRec": trained(BCE(1))})])
    figure = draw_confidence(summaries_of(runs), assign_styles(["SASRec"]))
    curves = {line.get_linestyle(): line.get_ydata() for line in figure.axes[0].lines if len(line.get_ydata()) > 2}
    assert curves["--"].max() < curves[":"].max()
    labels = {text.get_text() for text in figure.legends[0].texts}
    assert labels == {"SASRec", "optimum of the sampler used", "Theorem 1", "calibrated"}


def test_theorem_1_is_in_the_legend_only_if_it_is_in_the_figure(tmp_path):
    runs = load_runs([make_run(tmp_path / "made", {"SASRec-Softmax": trained(Softmax())})])
    summaries = summaries_of(runs)
    labels = {
        text.get_text() for text in draw_confidence(summaries, assign_styles(["SASRec-Softmax"])).legends[0].texts
    }
    assert labels == {"SASRec-Softmax", "calibrated"}


def test_losses_become_lines_over_the_number_of_negatives(tmp_path):
    sweeps = find_sweeps(load_runs([make_run(tmp_path / "losses", LOSSES)]))
    assert [(sweep.architecture, sweep.loss) for sweep in sweeps] == [
        (architecture, loss)
        for architecture in ("SASRec", "BERT4Rec")
        for loss in ("BCE", "gBCE, t = 1", "SampledSoftmax")
    ]
    assert all(np.array_equal(sweep.negatives, [1, 4, 16]) for sweep in sweeps)


def test_the_shown_user_is_the_named_one_or_the_papers_or_the_first(tmp_path):
    runs = load_runs([make_run(tmp_path / "mixed")])
    captions = {figure.name: figure.caption for figure in all_figures(runs, user="77")}
    assert "of user 77," in captions["user"]
    with pytest.raises(InputError, match="no test user 9999 with predictions; some are 1, 2"):
        all_figures(runs, user="9999")
    movielens = make_run(tmp_path / "ml", dataset={"class": "MovieLens1M"})
    assert "of user 1," in {figure.name: figure.caption for figure in all_figures(load_runs([movielens]))}["user"]


def test_figures_of_lines_show_the_best_of_many_models(tmp_path):
    runs = load_runs([make_run(tmp_path / "losses", LOSSES)])
    figure = next(figure.figure for figure in all_figures(runs) if figure.name == "confidence")
    drawn = [line.get_label() for line in figure.axes[0].lines if line.get_label() in LOSSES]
    assert drawn == list(LOSSES)[-MAX_LINES:]  # later models of a made run are better


def test_an_axis_within_one_power_of_ten_has_numbers_too():
    figure = Figure()
    axes = figure.subplots()
    axes.loglog([0.12, 0.9], [0.001, 100])
    format_log_axes(axes.xaxis, axes.yaxis)
    figure.draw_without_rendering()
    assert [label.get_text() for label in axes.get_xticklabels(minor=True) if label.get_text()] == [
        "0.2",
        "0.3",
        "0.4",
        "0.5",
        "0.7",
    ]
    assert {"0.01", "0.1", "1", "10"} <= {label.get_text() for label in axes.get_yticklabels()}
    assert not any(label.get_text() for label in axes.get_yticklabels(minor=True))


def rewrite_top_items(run, change):
    """Change the top items of every model; `change` gets and returns the table."""
    for _, _, folder in list(run.models()):
        status = folder.status()
        folder.write_top_items(change(folder.read_top_items()))
        folder.finish(**{name: value for name, value in status.items() if name not in ("state", "at", "sha256")})


def test_predictions_of_which_none_came_true_have_no_logarithmic_figure(tmp_path):
    run = make_run(tmp_path / "weak")
    rewrite_top_items(run, lambda top: top[top["item"] != (top["user"] - 1) % NUM_ITEMS])
    names = [figure.name for figure in all_figures(load_runs([run]))]
    assert names == ["pairs", "learning", "time", "user", "dataset"]


def test_users_who_have_seen_every_item_have_no_predictions(tmp_path):
    run = make_run(tmp_path / "seen")
    rewrite_top_items(run, lambda top: top[top["user"] > 5])
    figures = {figure.name: figure for figure in all_figures(load_runs([run]))}
    assert "items of user 6" in figures["user"].caption
    with pytest.raises(InputError, match="has no test user 3 with predictions; some are 6, 7"):
        all_figures(load_runs([run]), user="3")
    rewrite_top_items(run, lambda top: top[:0])
    runs = load_runs([run])
    assert [figure.name for figure in all_figures(runs)] == ["pairs", "learning", "time", "dataset"]
    assert len(calibration_remarks(runs, [])) == 4


def test_a_full_disk_is_a_storage_error(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pathlib.Path.write_bytes", full)
    for suffix in ("pdf", "png"):
        with pytest.raises(StorageError, match="No space left on device"):
            save_figure(Figure(), tmp_path / f"figure.{suffix}")
