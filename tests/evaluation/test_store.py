import pandas as pd
import pytest

from aprec_like.errors import InputError
from evaluation.documents import read_json, write_json, write_text
from evaluation.store import RunFolder, encode_name


@pytest.mark.parametrize(
    "name", ["gSASRec", "A_B & 50%", "../escape", "/root", ".", "..", "модель", "a/b", "k=1, t=0.5"]
)
def test_a_models_folder_lies_within_its_run_and_gives_the_name_back(tmp_path, name):
    run = RunFolder(tmp_path / "run")
    folder = run.model(name, 3)
    assert folder.path.resolve().parent.parent == (tmp_path / "run").resolve()
    folder.write_status("running")
    assert [(found, seed) for found, seed, _ in run.models()] == [(name, 3)]


def test_a_very_long_name_is_refused():
    with pytest.raises(InputError, match="at most"):
        encode_name("x" * 300)


def finished_model(tmp_path):
    folder = RunFolder(tmp_path).model("SASRec", 1)
    folder.write_per_user(pd.DataFrame({"user": [1], "NDCG@10": [0.5]}))
    folder.write_metrics({"users": 1})
    folder.finish(seconds_to_best=1.0)
    return folder


def test_a_finished_models_files_are_verified_on_reading(tmp_path):
    folder = finished_model(tmp_path)
    assert folder.is_finished()
    assert folder.read_per_user()["NDCG@10"].tolist() == [0.5]
    write_json(folder.path / "metrics.json", {"users": 2})
    with pytest.raises(InputError, match="not what the run wrote"):
        folder.read_metrics()


def test_a_missing_file_of_a_finished_model_is_noticed(tmp_path):
    folder = finished_model(tmp_path)
    (folder.path / "per_user.parquet").unlink()
    with pytest.raises(InputError, match="missing"):
        folder.read_per_user()


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "a.txt"
    write_text(path, "old")
    with pytest.raises(UnicodeEncodeError):
        write_text(path, "\ud800")
    with pytest.raises(ValueError, match="JSON compliant"):
        write_json(path, {"value": float("nan")})
    assert path.read_text() == "old"
    assert [found.name for found in tmp_path.iterdir()] == ["a.txt"]


@pytest.mark.parametrize("content", ["", "{", "[1]", "nonsense"])
def test_a_damaged_json_file_is_named(tmp_path, content):
    (tmp_path / "status.json").write_text(content)
    with pytest.raises(InputError, match=r"status\.json"):
        read_json(tmp_path / "status.json")
