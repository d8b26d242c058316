"""Jobs on worker processes of this machine, each with a pipe of its own.

Pools share one queue and break as a whole when a worker is killed, without saying whose job it was. Here the pipe that
closes names the job: it alone is started again, on a new process.
"""

import os
import pickle
import signal
import threading
from collections import deque
from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from multiprocessing import connection, get_all_start_methods, get_context, parent_process
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any, NamedTuple

import torch

from bacs.engine.outcome import Outcome, attempt, job_lost, pack_outcome

# Workers fork from a small server that has only imported torch: they start at once, and inherit no thread of ours.
SERVED = "forkserver" in get_all_start_methods()
CONTEXT: Any = get_context("forkserver" if SERVED else "spawn")
PRELOADED = ["bacs", "torch._dynamo"]  # the latter is what torch imports when it makes an optimiser


class Worker(NamedTuple):
    process: BaseProcess
    pipe: Connection


def outcomes(
    function: Callable[[Any], Any], jobs: Sequence[Any], *, workers: int, threads: int, attempts: int
) -> Generator[Outcome, None, None]:
    """The outcome of every job as it arrives. Leaving the loop early stops the workers."""
    waiting = deque(range(len(jobs)))
    started = [0] * len(jobs)
    busy: dict[Connection, tuple[Worker, int]] = {}
    idle: list[Worker] = []
    try:
        while waiting or busy:
            while waiting and len(busy) < workers:
                index = waiting.popleft()
                worker = idle.pop() if idle else start(function, threads)
                busy[worker.pipe] = worker, index
                started[index] += 1
                _send(worker, jobs[index])
            for pipe in connection.wait(list(busy)):
                assert isinstance(pipe, Connection)
                worker, index = busy.pop(pipe)
                try:
                    value, error = pickle.loads(pipe.recv_bytes())
                except (EOFError, ConnectionError):
                    worker.process.join()
                    pipe.close()
                    if started[index] < attempts:
                        waiting.appendleft(index)
                    else:
                        reason = _describe_exit(worker.process.exitcode)
                        yield Outcome(index, None, job_lost(started[index], reason), started[index])
                    continue
                idle.append(worker)
                yield Outcome(index, value, error, started[index])
    finally:
        stop([*idle, *(worker for worker, _ in busy.values())])


def start(function: Callable[[Any], Any], threads: int) -> Worker:
    """A new worker process that waits for jobs."""
    if SERVED:
        CONTEXT.set_forkserver_preload(PRELOADED)
    ours, theirs = CONTEXT.Pipe()
    process = CONTEXT.Process(target=_work, args=(function, threads, theirs), daemon=True)
    process.start()
    theirs.close()  # else the pipe would not end with the process
    return Worker(process, ours)


def stop(workers: Sequence[Worker]) -> None:
    """Ends workers, whatever they are doing: a job keeps what it stored."""
    for worker in workers:
        worker.process.terminate()
    for worker in workers:
        worker.process.join(timeout=5)
        if worker.process.is_alive():
            worker.process.kill()
            worker.process.join()
        worker.pipe.close()


def _send(worker: Worker, job: Any) -> None:
    # If the process is gone already, waiting on its pipe will say so and count the attempt.
    with suppress(BrokenPipeError, ConnectionError):
        worker.pipe.send(job)


def _work(function: Callable[[Any], Any], threads: int, pipe: Connection) -> None:
    """The life of a worker: one job after another until the pipe closes or the parent dies."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the parent decides what to stop
    threading.Thread(target=_die_with_parent, daemon=True).start()
    torch.set_num_threads(threads)
    while True:
        try:
            job = pipe.recv()
        except (EOFError, ConnectionError):
            return
        pipe.send_bytes(pack_outcome(*attempt(function, job)))


def _die_with_parent() -> None:
    """Ends this process when its parent is gone: nobody would hear the result, and a second run may be started."""
    parent = parent_process()
    assert parent is not None
    connection.wait([parent.sentinel])
    os._exit(1)


def _describe_exit(exitcode: int | None) -> str:
    if exitcode is not None and exitcode < 0:
        return f"signal {signal.Signals(-exitcode).name}"
    return f"exit code {exitcode}"
