"""`run`: the one way to start independent jobs, wherever they run."""

from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from typing import Any

import torch

from bacs.engine import processes, ray
from bacs.engine.outcome import Outcome, attempt
from bacs.errors import RunError, unknown_name

ENGINES = ("local", "ray")


def run(
    function: Callable[[Any], Any],
    jobs: Sequence[Any],
    *,
    engine: str = "local",
    workers: int = 1,
    threads: int = 1,
    gpus: float = 0,
    address: str | None = None,
    attempts: int = 3,
    on_result: Callable[[Outcome], None] = lambda outcome: None,
) -> list[Any]:
    """`[function(job) for job in jobs]`, computed in any order; `on_result` hears each outcome as it arrives.

    A job whose process dies is started again, up to `attempts` times in all, so a job that takes long should
    go on from what it has stored. A job that raises is not repeated. All other jobs run to their end first; then
    the failures are raised as one RunError.

    Args:
        function: importable by name, as are the jobs' types: other processes have to find them.
        engine: `local` for processes on this machine (one worker: this very process), `ray` for a Ray cluster.
        workers: how many jobs run at a time on this machine; a Ray cluster decides by its resources.
        threads: how many threads torch may use in a job; Ray reserves as many CPUs.
        gpus: what Ray reserves for a job.
        address: of the Ray cluster; None takes one that is running, else starts one here.
    """
    if engine not in ENGINES:
        raise unknown_name("engine", engine, ENGINES)
    for name, value in (("workers", workers), ("threads", threads), ("attempts", attempts)):
        if value < 1:
            raise ValueError(f"{name} must be at least 1, got {value}")
    outcomes: Generator[Outcome, None, None]
    if engine == "ray":
        outcomes = ray.outcomes(function, jobs, threads=threads, gpus=gpus, address=address, attempts=attempts)
    elif workers == 1:
        outcomes = _run_here(function, jobs, threads=threads)
    else:
        outcomes = processes.outcomes(
            function, jobs, workers=min(workers, len(jobs)), threads=threads, attempts=attempts
        )
    values: list[Any] = [None] * len(jobs)
    failures: list[Outcome] = []
    with closing(outcomes):  # an error in on_result, or Ctrl-C, stops the workers at once
        for outcome in outcomes:
            on_result(outcome)
            values[outcome.index] = outcome.value
            if outcome.error is not None:
                failures.append(outcome)
    if failures:
        first = failures[0]
        count = f"{len(failures)} of {len(jobs)} jobs failed; the first" if len(jobs) > 1 else "the job failed"
        raise RunError(f"{count}: {type(first.error).__name__}: {first.error}") from first.error
    return values


def _run_here(function: Callable[[Any], Any], jobs: Sequence[Any], *, threads: int) -> Generator[Outcome, None, None]:
    """The outcome of every job in order, in this process; torch has its own number of threads again afterwards."""
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        for index, job in enumerate(jobs):
            yield Outcome(index, *attempt(function, job), attempts=1)
    finally:
        torch.set_num_threads(before)
