"""Jobs in this process and on worker processes."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parent))  # worker processes find the jobs by it, too
import jobs

from bacs import engine
from bacs.errors import RunError


def test_one_worker_is_this_process_and_keeps_its_number_of_threads():
    before = torch.get_num_threads()
    assert engine.run(jobs.where, [0]) == [os.getpid()]
    assert engine.run(jobs.threads, [0, 1], threads=2) == [2, 2]
    assert torch.get_num_threads() == before


def test_values_come_back_in_the_order_of_the_jobs_and_are_heard_as_they_finish():
    heard = []
    values = engine.run(jobs.slow_if_first, [0, 1, 2], workers=2, on_result=lambda outcome: heard.append(outcome.value))
    assert values == [0, 1, 2]
    assert sorted(heard) == [0, 1, 2]
    assert heard[-1] == 0


def test_a_job_whose_process_is_killed_is_started_again_and_only_that_one(tmp_path):
    outcomes = []
    dying = [tmp_path / "a", tmp_path / "b"]
    dying[1].write_text("")  # this one has died before
    values = engine.run(jobs.die_the_first_time, dying, workers=2, on_result=outcomes.append)
    assert values == ["a", "b"]
    assert {outcome.index: outcome.attempts for outcome in outcomes} == {0: 2, 1: 1}


def test_a_job_that_always_dies_is_given_up_and_reported():
    with pytest.raises(RunError, match=r"2 of 2 jobs failed; the first: .*died 1 times \(signal SIGKILL\)"):
        engine.run(jobs.die, [1, 2], workers=2, attempts=1)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_failure_is_raised_after_all_others_have_finished(workers):
    outcomes = []
    with pytest.raises(
        RunError, match="1 of 3 jobs failed; the first: ValueError: number must not be 2, got 2"
    ) as info:
        engine.run(jobs.fail_on_two, [1, 2, 3], workers=workers, on_result=outcomes.append)
    assert sorted(outcome.value for outcome in outcomes if outcome.error is None) == [1, 3]
    assert isinstance(info.value.__cause__, ValueError)
    assert "in fail_on_two" in info.value.__cause__.__notes__[0]


def test_what_cannot_be_sent_back_is_an_error_and_not_a_hang():
    with pytest.raises(RunError, match="returned a value that cannot be sent back"):
        engine.run(jobs.unpicklable, [1, 2], workers=2)


def test_workers_end_with_the_process_that_started_them(tmp_path):
    code = (
        f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        "import jobs; from bacs import engine\n"
        "if __name__ == '__main__': engine.run(jobs.write_and_wait, sys.argv[1:], workers=2)\n"
    )
    script = tmp_path / "script.py"
    script.write_text(code)
    files = [tmp_path / "a", tmp_path / "b"]
    parent = subprocess.Popen([sys.executable, str(script), *map(str, files)])
    pids = [wait_for(lambda file=file: file.exists() and int(file.read_text() or 0)) for file in files]
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    for pid in pids:
        wait_for(lambda pid=pid: not running(pid))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"engine": "rey"}, r"engine must be one of local, ray; got 'rey' \(did you mean 'ray'\?\)"),
        ({"workers": 0}, "workers must be at least 1, got 0"),
        ({"attempts": 0}, "attempts must be at least 1, got 0"),
    ],
)
def test_wrong_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        engine.run(jobs.square, [1], **arguments)


def test_no_jobs_give_no_values():
    assert engine.run(jobs.square, []) == []
    assert engine.run(jobs.square, [], workers=2) == []


def wait_for(condition, seconds=60):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if value := condition():
            return value
        time.sleep(0.05)
    raise AssertionError("waited in vain")


def running(pid):
    """Whether a process exists and is not merely waiting to be reaped."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False
