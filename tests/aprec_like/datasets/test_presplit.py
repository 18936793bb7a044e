import numpy as np
import pytest

from aprec_like.datasets import PreSplitFolder
from aprec_like.errors import InputError
from aprec_like.splits import AsGiven, LeaveOneOut

# The port removes two items from the training sequences, and three from that of the second user, who validates.
FILES = {
    "train/input.txt": "1 2\n5\n3 2 9\n",
    "val/input.txt": "5 6\n",
    "val/output.txt": "2\n",
    "test/input.txt": "1 2 3\n5 6 2\n3 2 9 1\n",
    "test/output.txt": "4\n1\n5\n",
}


@pytest.fixture
def folder(tmp_path):
    for name, text in FILES.items():
        (tmp_path / "data" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "data" / name).write_text(text)
    return tmp_path


def test_sequences_are_those_of_the_test_files(folder):
    loaded = PreSplitFolder("data").load(folder)
    items = loaded.item_ids[loaded.items]
    assert [part.tolist() for part in np.split(items, loaded.offsets[1:-1])] == [
        [1, 2, 3, 4],
        [5, 6, 2, 1],
        [3, 2, 9, 1, 5],
    ]
    assert loaded.user_ids.tolist() == [1, 2, 3]


def test_the_given_split_is_kept(folder):
    loaded = PreSplitFolder("data").load(folder)
    split = AsGiven().split(loaded)
    ids = loaded.item_ids
    assert ids[split.train.items].tolist() == [1, 2, 5, 3, 2, 9]
    assert split.validation.users.tolist() == [1]
    assert ids[split.validation.histories().items].tolist() == [5, 6]
    assert ids[split.validation.targets].tolist() == [2]
    assert ids[split.test.histories().items].tolist() == [1, 2, 3, 5, 6, 2, 3, 2, 9, 1]
    assert ids[split.test.targets].tolist() == [4, 1, 5]


def test_all_users_may_be_validation_users(folder):
    (folder / "data/val/input.txt").write_text("1 2\n5 6\n3 2 9\n")
    (folder / "data/val/output.txt").write_text("3\n2\n1\n")
    split = AsGiven().split(PreSplitFolder("data").load(folder))
    assert split.validation.users.tolist() == [0, 1, 2]


def test_a_training_sequence_with_a_validation_target_is_refused(folder):
    (folder / "data/train/input.txt").write_text("1 2\n5 6 2\n3 2 9\n")
    (folder / "data/val/input.txt").write_text("1 2\n5 6\n3 2 9\n")
    (folder / "data/val/output.txt").write_text("3\n2\n1\n")
    with pytest.raises(InputError, match=r"train/input\.txt:2: contains the validation target"):
        PreSplitFolder("data").load(folder)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("train/input.txt", "1 3\n5\n3 2 9\n", r"train/input\.txt:1: must begin"),
        ("train/input.txt", "1 2\n5\n", "a line per user"),
        ("test/output.txt", "4\n1 2\n5\n", "a line per user"),
        ("val/input.txt", "5 7\n", r"val/input\.txt:1: must begin"),
        ("val/output.txt", "", "shorter training sequence"),
        ("test/input.txt", "1 2 x\n5 6 2\n3 2 9 1\n", "only whole numbers"),
    ],
)
def test_inconsistent_files_are_refused(folder, name, text, message):
    (folder / "data" / name).write_text(text)
    with pytest.raises(InputError, match=message):
        PreSplitFolder("data").load(folder)


def test_a_missing_folder_or_file_is_reported(folder):
    with pytest.raises(InputError, match=r"missing: there is no such folder; looked for .*missing"):
        PreSplitFolder("missing").load(folder)
    (folder / "data/test/output.txt").unlink()
    with pytest.raises(InputError, match=r"output\.txt: cannot be read"):
        PreSplitFolder("data").load(folder)


def test_other_splits_use_only_the_sequences(folder):
    split = LeaveOneOut(num_validation_users=1).split(PreSplitFolder("data").load(folder))
    assert len(split.test) == 3
