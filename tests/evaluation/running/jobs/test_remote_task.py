import pytest

from aprec_like.errors import InputError
from evaluation.running.jobs import remote_task
from evaluation.running.jobs.remote_task import run_task
from tests.evaluation.running.jobs.small_jobs import ROOT, small_job


def test_a_task_returns_the_code_and_lines_of_its_process(tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    job = small_job(tmp_path, "a", code=1)
    assert run_task(job.module, job.argument, str(job.folder), {}) == (1, ["a starts"])


def test_a_second_task_waits_for_the_lock_of_the_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr("evaluation.running.lock.SECONDS_TO_WAIT", 0.1)
    monkeypatch.setattr(remote_task, "SECONDS_TO_WAIT_FOR_LOCK", 0.2)
    job = small_job(tmp_path, "a")
    with remote_task.RunLock(tmp_path / ".task-lock"), pytest.raises(InputError, match="in use by another run"):
        run_task(job.module, job.argument, str(job.folder), {})
    assert not (tmp_path / "a").exists()
