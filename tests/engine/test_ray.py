"""The Ray engine: against Ray itself where it is installed, and without it."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
import jobs

from bacs import engine
from bacs.errors import RunError


def test_without_ray_the_error_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(RunError, match=r"engine 'ray' needs Ray: pip install 'bacs\[ray\]'"):
        engine.run(jobs.square, [1], engine="ray")


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
