import pytest

from evaluation.running.jobs import local_slots
from evaluation.running.jobs.local_slots import num_slots


@pytest.fixture
def machine(monkeypatch):
    """Eight cores with 100 bytes of memory, no GPU."""
    monkeypatch.setattr(local_slots, "num_cores", lambda: 8)
    monkeypatch.setattr(local_slots, "available_memory", lambda: 100)
    monkeypatch.setattr(local_slots, "visible_gpus", list)
    monkeypatch.delenv("TF_NUM_INTRAOP_THREADS", raising=False)
    return monkeypatch


def test_there_are_never_more_slots_than_jobs(machine):
    assert num_slots(3, [10] * 5) == 3 and num_slots(3, [10] * 2) == 2 and num_slots(3, []) == 1


@pytest.mark.parametrize(
    ("memories", "expected"), [([10] * 9, 4), ([40, 50, 10, 10], 3), ([200, 10], 1), ([10], 1), ([], 1)]
)
def test_automatically_as_many_as_memory_and_cores_allow(machine, memories, expected):
    assert num_slots("auto", memories) == expected


def test_fewer_threads_leave_room_for_more_jobs(machine):
    machine.setenv("TF_NUM_INTRAOP_THREADS", "1")
    assert num_slots("auto", [10] * 9) == 8


def test_automatically_one_per_gpu(machine):
    machine.setattr(local_slots, "visible_gpus", lambda: ["0", "1", "5"])
    assert num_slots("auto", [1000] * 9) == 3
