import io
import json
import zipfile

import keras
import numpy as np
import pytest
import tensorflow as tf

from aprec_like.errors import InputError
from aprec_like.files import StorageError
from aprec_like.training import checkpoints as module
from aprec_like.training.checkpoints import Checkpoints, has_checkpoint, remove_checkpoints

FINGERPRINT = {"model": {"class": "SASRec", "dims": (1, 2)}, "seed": 1}


def variables(value):
    return {
        "weights/0000": tf.Variable(np.full([3, 2], value, np.float32)),
        "optimizer/0000": tf.Variable(np.int64(2**53 + value)),
        "optimizer/0001": tf.Variable(np.zeros([0, 2], np.float32)),
    }


def state(epoch, step=0, best=None):
    return {"epoch": epoch, "step": step, "best_weights": best}


class Messages(list):
    __call__ = list.append


@pytest.fixture
def messages():
    return Messages()


@pytest.fixture
def checkpoints(tmp_path, messages):
    return Checkpoints(tmp_path / "checkpoint", FINGERPRINT, messages)


def values(saved):
    found = variables(0)
    saved.restore(found)
    return saved.state["epoch"], float(found["weights/0000"][2, 1]), int(found["optimizer/0000"]) - 2**53


def files(checkpoints, kind):
    return sorted(path for path in checkpoints.folder.iterdir() if path.name.startswith(kind))


def test_what_was_saved_last_comes_back_exactly(checkpoints, messages):
    assert checkpoints.load() is None
    for epoch in (1, 2, 3):
        checkpoints.save(state(epoch), variables(epoch))
    assert values(checkpoints.load()) == (3, 3.0, 3)
    assert len(files(checkpoints, "state")) == 2
    assert messages == []


def test_steps_within_an_epoch_are_newer_than_its_beginning(checkpoints):
    for epoch, step in ((9, 0), (10, 0), (10, 99), (10, 1_000_000)):
        checkpoints.save(state(epoch, step), variables(step))
    assert checkpoints.load().state["step"] == 1_000_000


DAMAGES = {
    "truncated": lambda data: data[: len(data) // 2],
    "emptied": lambda data: b"",
    "bit flipped in an array": lambda data: flipped(data, data.index(np.float32(2).tobytes() * 3)),
    "bit flipped in the metadata": lambda data: flipped(data, data.index(b'"epoch": 2')),
    "bit flipped at the end": lambda data: flipped(data, len(data) - 1),
    "appended": lambda data: data + b"x",
}


def flipped(data, index):
    return data[:index] + bytes([data[index] ^ 1]) + data[index + 1 :]


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_checkpoint_is_noticed_and_the_one_before_it_used(checkpoints, messages, damage):
    for epoch in (1, 2):
        checkpoints.save(state(epoch), variables(epoch))
    newest = files(checkpoints, "state")[-1]
    newest.write_bytes(DAMAGES[damage](newest.read_bytes()))
    assert values(checkpoints.load()) == (1, 1.0, 1)
    assert len(messages) == 1 and "damaged" in messages[0] and newest.name in messages[0]
    # The next save replaces the damaged one, though that was of a later epoch.
    checkpoints.save(state(1, 5), variables(5))
    assert values(checkpoints.load()) == (1, 5.0, 5)


def test_when_all_are_damaged_training_starts_from_the_beginning_and_logs_it(checkpoints, messages):
    for epoch in (1, 2):
        checkpoints.save(state(epoch), variables(epoch))
    for path in files(checkpoints, "state"):
        path.write_bytes(b"")
    assert checkpoints.load() is None
    assert "starts from the beginning" in messages[-1] and len(messages) == 3
    assert not has_checkpoint(checkpoints.folder)


def test_a_checkpoint_of_other_settings_is_not_used_and_logged(checkpoints, messages):
    checkpoints.save(state(1), variables(1))
    assert Checkpoints(checkpoints.folder, FINGERPRINT | {"seed": 2}, messages).load() is None
    assert "other settings" in messages[0]


def test_a_checkpoint_of_another_format_is_not_used(checkpoints, messages, monkeypatch):
    checkpoints.save(state(1), variables(1))
    monkeypatch.setattr(module, "FORMAT", module.FORMAT + 1)
    assert checkpoints.load() is None
    assert "other settings" in messages[0]


def test_best_weights_stay_as_long_as_a_kept_state_refers_to_them(checkpoints):
    weights = {"weights/0000": variables(1)["weights/0000"]}
    names = {}
    for epoch, is_best in enumerate([True, True, False, True, False, False], start=1):
        if is_best:
            weights["weights/0000"].assign(tf.fill([3, 2], float(epoch)))
            best = checkpoints.save_best(epoch, weights)
            names[best] = epoch
        checkpoints.save(state(epoch + 1, best=best), variables(epoch))
        kept = {names[path.name] for path in files(checkpoints, "best")}
        assert kept == [{1}, {1, 2}, {2}, {2, 4}, {4}, {4}][epoch - 1]
    checkpoints.restore_best(best, weights)
    assert float(weights["weights/0000"][0, 0]) == 4.0


def test_best_weights_between_two_states_do_not_accumulate(checkpoints):
    first = checkpoints.save_best(1, variables(1))
    checkpoints.save(state(2, best=first), variables(1))
    names = [checkpoints.save_best(epoch, variables(epoch)) for epoch in (2, 3, 4)]
    assert [path.name for path in files(checkpoints, "best")] == [first, names[-1]]


def test_a_training_without_a_fingerprint_saves_only_the_best_weights(tmp_path):
    checkpoints = Checkpoints(tmp_path, None)
    names = [checkpoints.save_best(epoch, variables(epoch)) for epoch in (1, 2)]
    checkpoints.save(state(3, best=names[-1]), variables(3))
    assert [path.name for path in tmp_path.iterdir()] == names[1:]
    assert checkpoints.load() is None


def test_a_state_whose_best_weights_are_damaged_is_not_used(checkpoints, messages):
    weights = {"weights/0000": variables(1)["weights/0000"]}
    checkpoints.save(state(2, best=checkpoints.save_best(1, weights)), variables(1))
    weights["weights/0000"].assign(tf.ones([3, 2]) * 2)
    second = checkpoints.save_best(2, weights)
    checkpoints.save(state(3, best=second), variables(2))
    (checkpoints.folder / second).write_bytes(b"")
    assert checkpoints.load().state["epoch"] == 2
    assert second in messages[0]
    with pytest.raises(InputError, match="damaged"):
        checkpoints.restore_best(second, weights)


def test_best_weights_in_the_place_of_a_state_are_noticed_and_the_state_before_it_is_used(checkpoints, messages):
    checkpoints.save(state(1), variables(1))
    best = checkpoints.folder / checkpoints.save_best(2, variables(2))
    best.rename(best.with_name(best.name.replace("best-000002", "state-000002-000000")))
    checkpoints.save_best(4, variables(4))  # which looks at the states
    assert values(checkpoints.load()) == (1, 1.0, 1)
    assert "holds no state of a training" in messages[0]


def test_a_state_that_names_another_file_as_its_best_weights_is_not_used(checkpoints, messages):
    checkpoints.save(state(1), variables(1))
    checkpoints.save(state(2, best="../elsewhere.npz"), variables(2))
    assert values(checkpoints.load()) == (1, 1.0, 1)
    assert "names no file of best weights" in messages[0]


def test_other_arrays_or_shapes_are_refused(checkpoints):
    checkpoints.save(state(1), variables(1))
    saved = checkpoints.load()
    with pytest.raises(InputError, match="arrays are not those of this model"):
        saved.restore({"weights/0000": tf.Variable(np.zeros([3, 2], np.float32))})
    with pytest.raises(InputError, match="another shape"):
        saved.restore(variables(0) | {"weights/0000": tf.Variable(np.zeros([4, 2], np.float32))})


def test_a_failed_save_leaves_the_earlier_ones_and_no_part_file(checkpoints, monkeypatch):
    checkpoints.save(state(1), variables(1))
    before = sorted(path.name for path in checkpoints.folder.iterdir())

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(StorageError, match="No space left on device"):
        checkpoints.save(state(2), variables(2))
    assert sorted(path.name for path in checkpoints.folder.iterdir()) == before
    assert values(checkpoints.load()) == (1, 1.0, 1)


def test_part_files_of_a_killed_save_are_removed(checkpoints):
    checkpoints.save(state(1), variables(1))
    (checkpoints.folder / ".part-abc-state-000002-000000.npz").write_bytes(b"half")
    assert checkpoints.load().state["epoch"] == 1
    assert len(list(checkpoints.folder.iterdir())) == 1


def test_removing_checkpoints_leaves_other_files_alone(checkpoints):
    checkpoints.save(state(1), variables(1))
    checkpoints.save_best(1, variables(1))
    (checkpoints.folder / "best.weights.h5").write_bytes(b"weights")
    remove_checkpoints(checkpoints.folder)
    assert [path.name for path in checkpoints.folder.iterdir()] == ["best.weights.h5"]


def test_arrays_are_written_one_at_a_time(checkpoints, monkeypatch):
    """A variable is read only when those before it are in the file."""
    order = []

    class Watched:
        shape = (3,)

        def __init__(self, name):
            self.name = name

        def numpy(self):
            order.append(f"read {self.name}")
            return np.zeros(3)

    written = module.np.lib.format.write_array
    monkeypatch.setattr(
        module.np.lib.format, "write_array", lambda *args, **kw: (order.append("write"), written(*args, **kw))
    )
    checkpoints.save(state(1), {"a": Watched("a"), "b": Watched("b")})
    assert order == ["read a", "write", "read b", "write"]


@pytest.mark.parametrize("shape", [(), (0, 5), (4,), (5,), (7, 3), (2, 9), (3, 2, 2)])
def test_a_large_array_is_written_in_chunks_as_numpy_writes_the_whole(checkpoints, monkeypatch, shape):
    monkeypatch.setattr(module, "CHUNK_ELEMENTS", 4)
    values = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    checkpoints.save(state(1), {"a": tf.Variable(values), "b": keras.Variable(values)})
    expected = io.BytesIO()
    np.lib.format.write_array(expected, values)
    with zipfile.ZipFile(files(checkpoints, "state")[0]) as archive:
        assert archive.read("a.npy") == archive.read("b.npy") == expected.getvalue()


def test_no_more_than_a_chunk_of_an_array_is_copied_at_once(checkpoints, monkeypatch):
    monkeypatch.setattr(module, "CHUNK_ELEMENTS", 6)
    copied = []

    class Watched:
        shape = (7, 3)

        def __getitem__(self, rows):
            copied.append(np.zeros(self.shape, np.float32)[rows])
            return copied[-1]

    checkpoints.save(state(1), {"a": Watched()})
    assert [chunk.size for chunk in copied] == [6, 6, 6, 3]


def test_numpy_reads_a_checkpoint_without_pickle(checkpoints):
    checkpoints.save(state(1), variables(7))
    with np.load(files(checkpoints, "state")[0], allow_pickle=False) as stored:
        assert stored["weights/0000"].tolist() == [[7, 7]] * 3
        assert json.loads(stored["facts.json"])["state"]["epoch"] == 1
