"""Jobs on a Ray cluster (`pip install bacs[ray]`). Paths in jobs must mean the same on every machine of it."""

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from bacs.engine.held import RayValue
from bacs.engine.outcome import Outcome, attempt, job_lost
from bacs.errors import RunError


def outcomes(
    function: Callable[[Any], Any],
    jobs: Sequence[Any],
    *,
    threads: int,
    gpus: float,
    address: str | None,
    attempts: int,
) -> Generator[Outcome, None, None]:
    """The outcome of every job as it arrives. Leaving the loop early cancels the rest."""
    with connect(address) as ray:
        # Ray itself would start a job again whose machine was lost, but after all that wait: perhaps a long one last.
        # Tasks of another scheduling strategy wait in a queue of their own, whose turn comes with the next free worker.
        how = {"num_cpus": threads, "num_gpus": gpus, "max_retries": 0}
        task, again = (ray.remote(_task).options(**how, scheduling_strategy=each) for each in ("DEFAULT", "SPREAD"))
        waiting = {task.remote(function, job, threads): index for index, job in enumerate(jobs)}
        started = [1] * len(jobs)
        try:
            while waiting:
                (done, *_), _ = ray.wait(list(waiting), num_returns=1)
                index = waiting.pop(done)
                try:
                    value, error = ray.get(done)
                except ray.exceptions.RayError as problem:
                    if started[index] < attempts and not isinstance(problem, ray.exceptions.RayTaskError):
                        started[index] += 1
                        waiting[again.remote(function, jobs[index], threads)] = index
                        continue
                    reason = str(problem).splitlines()[0] if str(problem) else type(problem).__name__
                    value, error = None, job_lost(started[index], reason)
                yield Outcome(index, value, error, started[index])
        finally:
            for reference in waiting:
                ray.cancel(reference, force=True)


@contextmanager
def connect(address: str | None) -> Iterator[Any]:
    """Ray for as long as the block lasts; a connection that is there already is used, and left as it is."""
    ray = _import()
    ours = not ray.is_initialized()
    if ours:
        _start(ray, address)
    try:
        yield ray
    finally:
        if ours:
            ray.shutdown()


def hold(value: Any) -> RayValue:
    """A value in the store of this machine, from where others fetch it; a job that is started again finds it there."""
    try:
        return RayValue(_import().put(value))
    except (TypeError, AttributeError) as error:  # what pickle raises
        raise RunError(f"{type(value).__name__} cannot be sent to other machines: {error}") from error


def capacity(*, threads: int, gpus: float) -> int:
    """How many jobs the machines that are there now can run at the same time; 1 if none could, which Ray waits for."""
    there = _import().cluster_resources()
    fit = there.get("CPU", 0) // threads
    return max(1, int(min(fit, there.get("GPU", 0) // gpus) if gpus else fit))


def _task(function: Callable[[Any], Any], job: Any, threads: int) -> tuple[Any, Exception | None]:
    import torch

    torch.set_num_threads(threads)
    return attempt(function, job)


def _start(ray: Any, address: str | None) -> None:
    try:
        ray.init(address=address, log_to_driver=False, include_dashboard=False if address is None else None)
    except (ConnectionError, RuntimeError, ValueError) as error:
        where = f"at {address}" if address else "on this machine"
        reason = f"{error} ({error.__cause__})" if error.__cause__ else str(error)  # such as a token that is missing
        raise RunError(f"no Ray cluster could be reached or started {where}: {reason}") from error


def _import() -> Any:
    try:
        import ray  # pyrefly: ignore[missing-import]
    except ImportError as error:
        raise RunError("engine 'ray' needs Ray: pip install 'bacs[ray]'") from error
    return ray
