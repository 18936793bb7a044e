"""Jobs as tasks of submitit, whose local executor runs them as processes of this machine; there is no Slurm here."""

import contextlib
import signal
import sys
import time

import pytest

from aprec_like.errors import InputError
from evaluation.running.jobs import slurm_tasks
from evaluation.running.jobs.slurm_tasks import SlurmTask, SlurmTasks, parse_slurm_options
from tests.evaluation.running.jobs.small_jobs import ROOT, Recorder, small_job


@pytest.fixture
def interruptible():
    """Let tasks be interrupted also where pytest runs in the background of a script, which ignores SIGINT."""
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, previous)


@pytest.fixture
def jobs_in(tmp_path, monkeypatch, interruptible):
    """Make jobs that have a folder each."""
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))

    def make(**options_by_name):
        for name in options_by_name:
            (tmp_path / name).mkdir()
        return [small_job(tmp_path / name, name, **options) for name, options in options_by_name.items()]

    return make


def local(folder, recorder, **options):
    pytest.importorskip("submitit")
    return SlurmTasks(folder, recorder, options, cluster="local")


def test_every_job_is_a_task_whose_code_and_lines_come_back(tmp_path, jobs_in):
    recorder = Recorder()
    jobs = jobs_in(a={}, b={"code": 1}, c={"signal": 9})
    found = {result.job.title: result.code for result in local(tmp_path, recorder).run(jobs)}
    assert found == {"a": 0, "b": 1, "c": -9}
    assert sorted(recorder.lines) == ["a starts", "b starts", "c starts"] and recorder.running == set()
    assert (tmp_path / ".slurm").is_dir()  # the logs, as not all went well


def test_leaving_early_lets_the_tasks_save_and_removes_nothing_of_theirs(tmp_path, jobs_in):
    recorder = Recorder()
    jobs = jobs_in(a={}, b={"waits_for": ["never"]})
    with contextlib.closing(local(tmp_path, recorder).run(jobs)) as results:
        assert next(results).job.title == "a"
        while not (tmp_path / "b" / "b").exists():
            time.sleep(0.05)
    assert "b saved" in recorder.lines and recorder.running == set()


def test_a_task_whose_node_is_taken_away_saves_and_is_queued_again(tmp_path, jobs_in, monkeypatch):
    """As submitit does it before the time is over: `checkpoint` while the task runs, then the task again."""
    submitit = pytest.importorskip("submitit")
    (job,) = jobs_in(a={"waits_for": ["go"]})
    task = SlurmTask(job, {})
    started = []

    def interrupt(seconds):
        if (job.folder / "a").exists() and not started:
            started.append(task.checkpoint())

    monkeypatch.setattr("evaluation.running.jobs.remote_task.time.sleep", interrupt)
    _, lines = task()
    assert lines == ["a starts", "a saved"] and isinstance(started[0], submitit.helpers.DelayedSubmission)
    (job.folder / "go").write_text("")
    assert started[0].function() == (0, ["a starts"])


def test_a_task_is_queued_again_however_often_its_time_is_over(tmp_path, jobs_in, monkeypatch):
    """Of submitit's own accord it would be three times."""
    submitit = pytest.importorskip("submitit")
    made = []

    class Executor(submitit.AutoExecutor):
        def __init__(self, *arguments, **options):
            super().__init__(*arguments, **options)
            made.append(options)

    monkeypatch.setattr(submitit, "AutoExecutor", Executor)
    assert [result.code for result in local(tmp_path, Recorder()).run(jobs_in(a={}))] == [0]
    assert made == [{"slurm_max_num_timeout": slurm_tasks.MAX_TIMEOUTS}] and slurm_tasks.MAX_TIMEOUTS > 100


def test_options_are_those_of_submitit_or_sbatch():
    assert parse_slurm_options(["partition=gpu", "timeout_min=720"]) == {"partition": "gpu", "timeout_min": 720}
    with pytest.raises(InputError, match="Received: gpu"):
        parse_slurm_options(["gpu"])


def test_an_unknown_option_is_one_line(tmp_path, jobs_in):
    with pytest.raises(InputError, match="local_colour"):
        next(local(tmp_path, Recorder(), local_colour=1).run(jobs_in(a={})))


def test_without_submitit_or_slurm_one_line_says_what_is_missing(tmp_path, monkeypatch):
    pytest.importorskip("submitit")
    monkeypatch.setattr(slurm_tasks.shutil, "which", lambda name: None)
    with pytest.raises(InputError, match="needs the command sbatch"):
        SlurmTasks(tmp_path, Recorder(), {})
    monkeypatch.setitem(sys.modules, "submitit", None)
    with pytest.raises(InputError, match=r'pip install "aprec_like\[slurm\]"'):
        SlurmTasks(tmp_path, Recorder(), {})
