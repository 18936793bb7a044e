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
