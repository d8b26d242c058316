"""Members side by side: each has a thread of its own, and as many run at a time as torch has threads.

Threads that share the work on one member wait for each other at every layer; members never wait. A member on one
thread also gives the same bits on every machine, however many cores it has.

Where members do not divide evenly among the threads, they take turns, a batch each: five members on two threads are
done after two and a half times what one takes, not three.

A pool belongs to whoever made it: a call for as long as it lasts, a stream for its life. Torch's number of threads is a
property of each thread and of threads yet to begin; a pool sets it for its own threads and for nobody else.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from threading import Barrier, Event, Lock
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from bacs.inputs import PerMember

OnBatch = Callable[[int], None]
Item = TypeVar("Item")
Result = TypeVar("Result")

_STARTING = Lock()


class _Stopped(Exception):
    """Ends members whose results nobody waits for any more."""


class _Turns:
    """So many places to work at, for more threads than that: who waited longest is next."""

    def __init__(self, places: int) -> None:
        self._free = places
        self._waiting: deque[Event] = deque()
        self._lock = Lock()

    def __enter__(self) -> "_Turns":
        with self._lock:
            if self._free:
                self._free -= 1
                return self
            turn = self._queue()
        turn.wait()
        return self

    def __exit__(self, *details: object) -> None:
        with self._lock:
            if self._waiting:
                self._waiting.popleft().set()
            else:
                self._free += 1

    def pass_on(self) -> None:
        """Lets the next one work, if one waits, and waits at the end of the line."""
        with self._lock:
            if not self._waiting:
                return
            turn = self._queue()
            self._waiting.popleft().set()
        turn.wait()

    def _queue(self) -> Event:
        turn = Event()
        self._waiting.append(turn)
        return turn


class Threads:
    """A pool for up to `items` pieces of work at a time; without `allowed`, the caller's own thread does them all."""

    def __init__(self, items: int, *, allowed: bool = True) -> None:
        self.items, self.allowed = items, allowed
        self._pool: ThreadPoolExecutor | None = None
        self._split = (1, 1)  # how many work at a time, and the threads of torch that each has

    def __enter__(self) -> "Threads":
        return self

    def __exit__(self, *details: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the threads; the next piece of work would begin new ones."""
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
            self._pool = None

    def map(self, function: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
        """`function(item)` of each item, in order, after all have come to an end; the first error is raised."""
        pool = self._pool_for(len(items))
        if pool is None:
            return [function(item) for item in items]
        turns = _Turns(self._split[0])

        def work(item: Item) -> Result:
            with turns:
                return function(item)

        waiting = [pool.submit(work, item) for item in items]
        errors = [error for error in (future.exception() for future in waiting) if error is not None]
        if errors:
            raise errors[0]
        return [future.result() for future in waiting]

    def imap(
        self,
        function: Callable[[Item, OnBatch], Result],
        items: Sequence[Item],
        *,
        on_batch: OnBatch = lambda count: None,
    ) -> Iterator[Result]:
        """`function(item, on_batch)` of each item, in order; at most twice as many are at hand as run at a time.

        `on_batch` is called by one thread at a time. It is also where members stop early, after an error or Ctrl-C, so
        a function should call the one that it is given after every batch.
        """
        pool = self._pool_for(len(items))
        if pool is None:
            for item in items:
                yield function(item, on_batch)
            return
        stop, hearing, turns = Event(), Lock(), _Turns(self._split[0])

        def hear(count: int) -> None:
            turns.pass_on()
            if stop.is_set():
                raise _Stopped
            with hearing:
                on_batch(count)

        def work(item: Item) -> Result:
            with turns:
                return function(item, hear)

        rest = iter(items)
        waiting: deque[Future[Result]] = deque()
        waiting.extend(pool.submit(work, item) for item in islice(rest, 2 * self._split[0]))
        try:
            while waiting:
                result = waiting.popleft().result()
                waiting.extend(pool.submit(work, item) for item in islice(rest, 1))
                yield result
        finally:
            stop.set()
            for future in waiting:
                if not future.cancel():
                    future.exception()  # waits for its end

    def _pool_for(self, count: int) -> ThreadPoolExecutor | None:
        """The pool for so many items, made anew if the caller's thread has another number of torch's threads now."""
        threads = torch.get_num_threads()
        workers = min(threads, self.items)
        # Autocast is known to its own thread alone.
        if not self.allowed or min(workers, count) < 2 or torch.is_autocast_enabled("cpu"):
            return None
        split = workers, threads // workers
        if self._pool is None or split != self._split:
            self.close()
            together = workers + self.items % workers  # these take turns, so that all are done at the same time
            self._pool, self._split = _start_pool(together, split[1]), split
        return self._pool


def _start_pool(workers: int, threads: int) -> ThreadPoolExecutor:
    """A pool whose threads have all begun, each with so many of torch's."""
    begun = Barrier(workers + 1)

    def begin() -> None:
        torch.get_num_threads()  # the first question makes a thread take over the common number: not later, then
        torch.set_num_threads(threads)
        begun.wait()

    with _STARTING:
        own = torch.get_num_threads()
        pool = ThreadPoolExecutor(workers, thread_name_prefix="bacs-member", initializer=begin)
        for _ in range(workers):  # a pool begins a thread with each piece of work, as long as none is idle
            pool.submit(int)
        begun.wait()
        torch.set_num_threads(own)  # threads that are yet to begin take the number that was set last
    return pool


def can_share(images: Any, models: Sequence[nn.Module], device: torch.device | str | None = None) -> bool:
    """Whether threads may share these: arrays, unlike a caller's Dataset, and models on the CPU, no two the same."""
    tensors = [next(iter((*model.parameters(), *model.buffers())), None) for model in models]
    places = {"cpu" if tensor is None else tensor.device.type for tensor in tensors}
    if device is not None:
        places = {torch.device(device).type}
    views = images if isinstance(images, PerMember) else (images,)
    arrays = all(isinstance(view, (Tensor, np.ndarray)) for view in views)
    return arrays and places == {"cpu"} and len(set(models)) == len(models)
