"""The Ray engine: against Ray itself where it is installed, and without it."""

import sys
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pytest

sys.path.insert(0, str(Path(__file__).parent))
import jobs

from bacs import engine
from bacs.errors import RunError


def test_without_ray_the_error_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(RunError, match=r"engine 'ray' needs Ray: pip install 'bacs\[ray\]'"):
        engine.run(jobs.square, [1], engine="ray")


class TwoQueues:
    """As much of Ray as the engine uses, without processes: tasks of strategy SPREAD go before others."""

    class exceptions:
        class RayError(Exception):
            pass

        class RayTaskError(RayError):
            pass

    def __init__(self, losses):
        self.losses, self.begun = Counter(losses), []

    def is_initialized(self):
        return True

    def remote(self, task):
        def options(*, scheduling_strategy, max_retries, num_cpus, num_gpus):
            assert (max_retries, num_cpus, num_gpus) == (0, 1, 0)
            return SimpleNamespace(remote=lambda *given: (scheduling_strategy == "DEFAULT", task, given, object()))

        return SimpleNamespace(options=options)

    def wait(self, references, *, num_returns):
        first = min(references, key=lambda reference: reference[0])
        return [first], [each for each in references if each is not first]

    def get(self, reference):
        _, task, given, _ = reference
        self.begun.append(given[1])
        if self.losses[given[1]]:
            self.losses[given[1]] -= 1
            raise self.exceptions.RayError("the node is dead\nand more")
        if given[1] == "sick":
            raise self.exceptions.RayTaskError("no such module")
        return task(*given)


def test_what_was_lost_begins_again_before_what_waits(monkeypatch):
    ray, heard = TwoQueues({"a": 1, "c": 2}), []
    monkeypatch.setitem(sys.modules, "ray", ray)
    assert engine.run(str.upper, ["a", "b", "c", "d"], engine="ray", on_result=heard.append) == ["A", "B", "C", "D"]
    assert ray.begun == ["a", "a", "b", "c", "c", "c", "d"]
    assert [(outcome.index, outcome.attempts) for outcome in heard] == [(0, 2), (1, 1), (2, 3), (3, 1)]


def test_what_is_lost_too_often_or_cannot_begin_is_given_up(monkeypatch):
    ray, heard = TwoQueues({"a": 3}), []
    monkeypatch.setitem(sys.modules, "ray", ray)
    with pytest.raises(RunError, match=r"2 of 3 jobs failed; .*died 3 times \(the node is dead\)"):
        engine.run(str.upper, ["a", "sick", "b"], engine="ray", on_result=heard.append)
    assert ray.begun == ["a", "a", "a", "sick", "b"]
    assert [outcome.attempts for outcome in heard] == [3, 1, 1]


@pytest.fixture(scope="module")
def cluster():
    import ray

    ray.init(
        num_cpus=2,
        include_dashboard=False,
        log_to_driver=False,
        runtime_env={"env_vars": {"PYTHONPATH": str(Path(__file__).parent)}},
    )
    yield
    ray.shutdown()


@pytest.mark.needs("ray")
@pytest.mark.filterwarnings("ignore")
def test_values_failures_and_lost_workers_are_as_on_local_processes(cluster, tmp_path):
    heard = []
    assert engine.run(jobs.square, [1, 2, 3], engine="ray", on_result=heard.append) == [1, 4, 9]
    assert sorted(outcome.value for outcome in heard) == [1, 4, 9]
    assert engine.run(jobs.die_the_first_time, [tmp_path / "a"], engine="ray") == ["a"]
    with pytest.raises(RunError, match="1 of 3 jobs failed; the first: ValueError: number must not be 2, got 2"):
        engine.run(jobs.fail_on_two, [1, 2, 3], engine="ray")
    with pytest.raises(RunError, match="the job failed: RunError: the job's process died 1 times"):
        engine.run(jobs.die, [1], engine="ray", attempts=1)
    assert engine.run(jobs.threads, [1], engine="ray", threads=2) == [2]


@pytest.mark.needs("ray")
@pytest.mark.filterwarnings("ignore")
def test_a_job_whose_worker_was_killed_is_not_the_last(cluster, tmp_path):
    files = [tmp_path / str(number) for number in range(40)]
    for file in files[1:]:
        file.write_text("")
    heard = []
    engine.run(jobs.die_the_first_time_or_rest, files, engine="ray", on_result=heard.append)
    assert {outcome.index: outcome.attempts for outcome in heard} == {0: 2} | dict.fromkeys(range(1, 40), 1)
    assert heard[-1].index != 0
