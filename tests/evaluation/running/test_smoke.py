from pathlib import Path

from aprec_like.datasets import FirstUsers, MovieLens1M, Simulated
from aprec_like.recipe import load_recipe
from evaluation.running.smoke import shrink, simulate_like


def test_nested_settings_shrink(tmp_path):
    small = shrink(load_recipe(Path("recipes/quickstart.py")), tmp_path)
    assert small.dataset.num_users == 1_000
    assert small.models["Oracle"].dataset == small.dataset
    trained = small.models["gSASRec"]
    assert (trained.training.max_epochs, trained.training.max_steps_per_epoch) == (2, 4)
    assert (trained.model.max_length, trained.loss.num_negatives) == (16, 16)
    assert small.split.num_validation_users == 64
    assert small.title == "Smoke run, not a result: Simulated"  # said in every caption


def test_a_simulated_catalogue_shrinks_and_a_declared_one_is_kept(tmp_path):
    assert shrink(load_recipe(Path("recipes/simulated_gowalla.py")), tmp_path).dataset.num_items == 5_000
    (tmp_path / "globo-full-catalogue.txt").write_text("1 364047\n1 1\n1 2\n")
    small = shrink(load_recipe(Path("recipes/globo.py")), tmp_path)
    assert small.dataset.load(tmp_path).num_items == 364_047


def test_data_on_disk_is_cut_and_missing_data_is_simulated_with_its_lengths(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    recipe = load_recipe(Path("recipes/ml1m_gsasrec.py"))
    simulated = shrink(recipe, tmp_path)
    assert isinstance(simulated.dataset, Simulated)
    assert simulated.title.startswith("Smoke run, not a result: simulated data in the place of MovieLens")
    (tmp_path / "ml-1m.txt").write_text("1 1\n")
    assert shrink(recipe, tmp_path).dataset == FirstUsers(MovieLens1M())
    lengths = simulate_like(MovieLens1M()).load(tmp_path).lengths
    assert 100 < lengths.mean() < 200
