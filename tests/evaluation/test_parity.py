from pathlib import Path

import numpy as np
import pytest

from evaluation import parity

GOLDEN = sorted((Path(__file__).parent.parent / "golden").glob("*.npz"))

SASREC = next(path for path in GOLDEN if path.stem == "sasrec_aprec_1head")


def run(monkeypatch, *files):
    monkeypatch.setattr("sys.argv", ["parity", *map(str, files)])
    return parity.run_command(parity.main)


def test_the_golden_files_are_here():
    assert len(GOLDEN) == 6


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_our_networks_equal_the_original_code(path, monkeypatch, capsys):
    assert run(monkeypatch, path) == 0
    assert "equal" in capsys.readouterr().out


@pytest.mark.parametrize(
    "key", ["states", "scores", "loss/t0.75", "grad_block0_query_kernel/t0.75", "block0/norm2_beta"]
)
def test_a_perturbed_value_is_a_difference(key, tmp_path, monkeypatch, capsys):
    vectors = dict(np.load(SASREC))
    value = np.array(vectors[key])
    value.flat[-1] += 1e-3 * max(1.0, np.abs(value).max())
    vectors[key] = value
    np.savez(tmp_path / "perturbed.npz", **vectors)
    assert run(monkeypatch, GOLDEN[0], tmp_path / "perturbed.npz") == 1
    assert "perturbed.npz: DIFFERENT" in capsys.readouterr().out


def test_a_nan_is_a_difference(tmp_path, monkeypatch):
    vectors = dict(np.load(SASREC))
    vectors["scores"] = vectors["scores"] * np.nan
    np.savez(tmp_path / "nan.npz", **vectors)
    assert run(monkeypatch, tmp_path / "nan.npz") == 1


def test_files_of_another_kind_are_refused_in_one_line(tmp_path, monkeypatch, capsys):
    (tmp_path / "text.npz").write_text("no")
    np.savez(tmp_path / "other.npz", a=np.zeros(3))
    for name in ("text.npz", "other.npz", "nothing.npz"):
        assert run(monkeypatch, tmp_path / name) == 2
        assert capsys.readouterr().err.count("\n") == 1
