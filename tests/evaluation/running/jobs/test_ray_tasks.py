"""Jobs on a Ray cluster of two nodes, which are processes of this machine."""

import sys

import pytest

from aprec_like.errors import InputError
from evaluation.running.jobs.ray_tasks import RayTasks, connect
from tests.evaluation.running.jobs.small_jobs import ROOT, Recorder, small_job


def test_without_ray_one_line_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(InputError, match=r'pip install "aprec_like\[cluster\]"'):
        connect("auto")


def test_an_address_where_nothing_listens_is_refused_at_once():
    pytest.importorskip("ray")
    with pytest.raises(InputError, match=r"no Ray cluster at '127\.0\.0\.1:1'"):
        connect("127.0.0.1:1")


class FakeRay:
    """A cluster of two nodes that are there and a large one that is gone."""

    def __init__(self, num_gpus=0):
        self.all = {"CPU": 12.0, "memory": 1e9} | ({"GPU": num_gpus} if num_gpus else {})

    def cluster_resources(self):
        return self.all

    def nodes(self):
        return [{"Alive": cpus < 64, "Resources": {"CPU": cpus}} for cpus in (4.0, 8.0, 64.0)]


@pytest.mark.parametrize(
    ("threads", "num_gpus", "cpus", "slots"),
    [("", 0, 1, 12), ("4", 0, 4, 3), ("16", 0, 8, 1), ("4", 2, 1, 2)],
)
def test_a_task_has_as_many_cpus_as_threads_unless_it_has_a_gpu(monkeypatch, threads, num_gpus, cpus, slots):
    monkeypatch.setenv("TF_NUM_INTRAOP_THREADS", threads)
    tasks = RayTasks.__new__(RayTasks)
    tasks.ray = FakeRay(num_gpus)
    assert (tasks.cpus_per_task(), tasks.num_slots()) == (cpus, slots)


@pytest.mark.slow
def test_jobs_of_a_node_that_dies_run_again_elsewhere(tmp_path, monkeypatch):
    """Two nodes with a CPU each; one is removed while both run, and the job that it had waits for nothing then."""
    cluster_utils = pytest.importorskip("ray.cluster_utils")
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    cluster = cluster_utils.Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    second = cluster.add_node(num_cpus=1)
    cluster.wait_for_nodes()
    try:
        recorder = Recorder()
        executor = RayTasks(cluster.address, tmp_path, recorder)
        folders = [tmp_path / name for name in "abcd"]
        for folder in folders:
            folder.mkdir()
        jobs = [small_job(folder, folder.name, waits_for=["go"]) for folder in folders[:2]]
        jobs += [small_job(folder, folder.name) for folder in folders[2:]]
        codes = []
        is_killed = False
        for result in _with_events(executor, jobs, folders, cluster, second):
            codes.append((result.job.title, result.code))
            is_killed = True
        assert is_killed and sorted(codes) == [("a", 0), ("b", 0), ("c", 0), ("d", 0)]
        assert recorder.running == set()
    finally:
        cluster.shutdown()


def _with_events(executor, jobs, folders, cluster, second):
    """Run jobs; once both waiting ones have started, remove a node and let them go."""
    started = []
    on_wait = executor.observer.on_wait

    def remove_node() -> None:
        on_wait()
        if not started and all((folder / folder.name).exists() for folder in folders[:2]):
            started.append(True)
            cluster.remove_node(second)
            for folder in folders[:2]:
                (folder / "go").write_text("")

    executor.observer.on_wait = remove_node
    yield from executor.run(jobs)
    assert started
