"""Members side by side: each has a thread of its own, and as many run at a time as torch has threads.

Threads that share the work on one member wait for each other at every layer; members never wait. A member on one
thread also gives the same bits on every machine, however many cores it has.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from threading import Event, Lock
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

OnBatch = Callable[[int], None]
Item = TypeVar("Item")
Result = TypeVar("Result")


class _Stopped(Exception):
    """Ends members whose results nobody waits for any more."""


def side_by_side(
    function: Callable[[Item, OnBatch], Result],
    items: Sequence[Item],
    *,
    on_batch: OnBatch = lambda count: None,
    allowed: bool = True,
) -> Iterator[Result]:
    """`function(item, on_batch)` of each item, in order; at most as many results wait as items run at a time.

    `on_batch` is called by one thread at a time. It is also where members stop early, after an error or Ctrl-C, so a
    function should call the one that it is given after every batch.
    """
    threads = torch.get_num_threads()
    workers = min(threads, len(items))
    if not allowed or workers < 2 or torch.is_autocast_enabled("cpu"):  # autocast is known to its own thread alone
        for item in items:
            yield function(item, on_batch)
        return
    stop, turn = Event(), Lock()

    def hear(count: int) -> None:
        if stop.is_set():
            raise _Stopped
        with turn:
            on_batch(count)

    # Set here too: threads that are yet to begin take the number of the one that was set last.
    torch.set_num_threads(threads // workers)
    pool = ThreadPoolExecutor(workers, initializer=torch.set_num_threads, initargs=(threads // workers,))
    rest = iter(items)
    waiting: deque[Future[Result]] = deque(pool.submit(function, item, hear) for item in islice(rest, workers))
    try:
        while waiting:
            result = waiting.popleft().result()
            waiting.extend(pool.submit(function, item, hear) for item in islice(rest, 1))
            yield result
    finally:
        stop.set()
        pool.shutdown(cancel_futures=True)
        torch.set_num_threads(threads)


def safe(images: Any, models: Sequence[nn.Module], device: torch.device | str | None = None) -> bool:
    """Whether threads may share these: arrays, unlike a caller's Dataset, and models on the CPU, no two the same."""
    tensors = [next(iter((*model.parameters(), *model.buffers())), None) for model in models]
    places = {"cpu" if tensor is None else tensor.device.type for tensor in tensors}
    if device is not None:
        places = {torch.device(device).type}
    return isinstance(images, (Tensor, np.ndarray)) and places == {"cpu"} and len(set(models)) == len(models)
