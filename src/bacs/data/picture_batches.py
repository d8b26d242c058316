"""Pictures as they arrive, decoded batch by batch: what is held is one batch."""

import os
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import islice
from typing import NamedTuple

import numpy as np

from bacs.data.listing import Encoded
from bacs.data.pictures import Failure, check_fit, decode_or_fail
from bacs.inputs import next_batch_size
from bacs.preprocessing import Preprocessing, geometry


class PictureBatch(NamedTuple):
    """Pictures for a step; the last batch may be empty, and say only what could not be read after the others."""

    index: np.ndarray  # their places among the arrivals, those that cannot be read counted
    paths: tuple[str, ...]
    views: tuple[np.ndarray, ...]  # for each preprocessing: uint8 NHWC at its size
    failures: tuple[Failure, ...]  # among the arrivals up to the last of this batch
    end: int  # arrivals that are done with once this batch is


def picture_batches(
    arriving: Iterable[Encoded],
    *preprocessings: Preprocessing | None,
    batch_size: int,
    ends: bool = True,
) -> Iterator[PictureBatch]:
    """Batches of so many pictures that can be read, in the order of their arrival.

    Where arrivals end by themselves (`ends`), two pictures are read ahead, so that the last batch is not of one alone.
    Where they go on until they are stopped, every batch comes when it is full, and at the end what has come, but for
    one picture alone, which has no statistics.
    """
    fits = check_fits(preprocessings)
    distinct = {geometry(fit): fit for fit in fits}
    decode = partial(decode_or_fail, fits=list(distinct.values()))
    arrivals, ahead = iter(arriving), 2 if ends else 0
    ready: list[tuple[Encoded, list[np.ndarray]]] = []
    failures: list[tuple[int, Failure]] = []
    end, over = 0, False
    with ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as pool:
        while True:
            while not over and len(ready) < batch_size + ahead:
                chunk = list(islice(arrivals, batch_size + ahead - len(ready)))
                over = not chunk
                for item, views in zip(chunk, pool.map(decode, chunk), strict=True):
                    end = item.index + 1
                    if isinstance(views, Failure):
                        failures.append((item.index, views))
                    else:
                        ready.append((item, views))
            size = next_batch_size(len(ready), batch_size) if ends or len(ready) > 1 or not over else 0
            taken, ready = ready[:size], ready[size:]
            if taken:
                last = taken[-1][0].index + 1
                yield _join(taken, fits, list(distinct), [f for index, f in failures if index < last], last)
                failures = [(index, failure) for index, failure in failures if index >= last]
            if over and not ready and failures:
                yield PictureBatch(np.empty(0, np.int64), (), (), tuple(failure for _, failure in failures), end)
            if over and (not ready or not taken):
                return


def check_fits(preprocessings: Sequence[Preprocessing | None]) -> list[Preprocessing]:
    """The preprocessings, if each says which size pictures are brought to: those to come may have any."""
    fits = [check_fit(fit) for fit in preprocessings]
    if any(fit.size is None for fit in fits):
        raise ValueError("size must say what the models take, the checkpoint does not: pictures to come may have any")
    return fits


def _join(
    taken: Sequence[tuple[Encoded, list[np.ndarray]]],
    fits: Sequence[Preprocessing],
    geometries: Sequence[tuple],
    failures: Sequence[Failure],
    end: int,
) -> PictureBatch:
    """One batch; equal geometries share one view."""
    items, views = zip(*taken, strict=True)
    stacked = dict(zip(geometries, (np.stack(own) for own in zip(*views, strict=True)), strict=True))
    index = np.array([item.index for item in items])
    paths = tuple(item.name for item in items)
    return PictureBatch(index, paths, tuple(stacked[geometry(fit)] for fit in fits), tuple(failures), end)
