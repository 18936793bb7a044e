import pandas as pd
import pytest

from aprec_like.errors import InputError
from aprec_like.files import StorageError
from evaluation.results.files import (
    read_json,
    read_sealed_json,
    write_json,
    write_sealed_json,
    write_text,
)
from evaluation.results.store import RunFolder, check_names, encode_name
from tests.evaluation.made_runs import small_dataset


@pytest.mark.parametrize(
    "name", ["gSASRec", "A_B & 50%", "../escape", "/root", ".", "..", "модель", "a/b", "k=1, t=0.5"]
)
def test_a_models_folder_is_inside_its_run_and_decodes_to_its_name(tmp_path, name):
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
    folder.write_per_user(pd.DataFrame({"user": [1], "target": [2], "NDCG@10": [0.5]}))
    folder.write_metrics({"users": 1})
    folder.finish(seconds_to_best=1.0)
    return folder


def test_a_finished_models_files_are_verified_on_reading(tmp_path):
    folder = finished_model(tmp_path)
    assert folder.is_finished()
    assert folder.read_per_user()["NDCG@10"].tolist() == [0.5]
    write_json(folder.path / "metrics.json", {"users": 2})
    with pytest.raises(InputError, match="was changed after the run"):
        folder.read_metrics()


def test_a_missing_file_of_a_finished_model_is_detected(tmp_path):
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


def test_a_json_file_with_checksum_is_read_unchanged_and_any_edit_is_detected(tmp_path):
    path = tmp_path / "status.json"
    value = {"state": "finished", "seconds": 0.1 + 0.2, "name": "модель", "nested": {"b": [1, None], "a": True}}
    write_sealed_json(path, "status", value)
    assert read_sealed_json(path, "status") == value
    text = path.read_text()
    for other in (text.replace("finished", "finishes"), text.replace("true", "false"), text.replace("1,", "2,")):
        path.write_text(other)
        with pytest.raises(InputError, match="damaged"):
            read_sealed_json(path, "status")
    write_json(path, value)  # without a checksum
    with pytest.raises(InputError, match="damaged"):
        read_sealed_json(path, "status")
    path.write_text(" ".join(text.split()))  # another layout of the same content
    assert read_sealed_json(path, "status") == value


def test_changed_cases_and_items_are_detected(tmp_path):
    run = RunFolder(tmp_path)
    run.write_cases(pd.DataFrame({"user": [1], "history_length": [2], "target_count": [3]}))
    run.write_items(pd.DataFrame({"item": [1, 2], "count": 1}))
    run.write_dataset(small_dataset())
    assert run.read_cases()["user"].tolist() == [1] and run.read_items()["item"].tolist() == [1, 2]
    run.write_items(pd.DataFrame({"item": [2, 1], "count": 1}))
    with pytest.raises(InputError, match=r"items\.parquet: was changed after the run"):
        run.read_items()


@pytest.mark.parametrize("name", ["table.md", "Recipe.JSON", "figures", ".lock", "report.html"])
def test_a_model_with_a_reserved_name_has_another_folder(tmp_path, name):
    run = RunFolder(tmp_path)
    assert run.model(name, 1).path.parent.name.casefold() != name.casefold()
    run.model(name, 1).write_status("running")
    assert [found for found, _, _ in run.models()] == [name]


def test_names_that_differ_in_case_only_are_refused():
    check_names(["SASRec", "gSASRec"])
    with pytest.raises(InputError, match="upper and lower case"):
        check_names(["SASRec", "sasrec"])


@pytest.mark.parametrize("stem", ["..", ".", "...", "a\0b", "рецепт", "C:\\x", "~", "x" * 60])
def test_no_recipe_name_escapes_the_results_folder(tmp_path, stem):
    folder = (tmp_path / encode_name(stem)).resolve()
    assert folder.parent == tmp_path.resolve()
    folder.mkdir()


def test_a_write_that_the_system_refuses_is_a_storage_error_and_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "a.txt"
    write_text(path, "old")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(StorageError, match=r"a\.txt: cannot be written: No space left on device"):
        write_text(path, "new")
    assert path.read_text() == "old" and len(list(tmp_path.iterdir())) == 1
