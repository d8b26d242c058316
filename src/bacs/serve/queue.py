"""The queue before the stream: requests take places in the order in which they arrived, and leave it in batches.

A place is taken before its pictures are decoded, so that a small picture does not overtake a large one; the queue
counts images that wait, decoded or not, and is full beyond its limit.
"""

import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from threading import Condition
from typing import Any

import numpy as np

Views = tuple[np.ndarray, ...]
"""The images of a request, once for each geometry that the members ask for."""


PATIENCE = 5
"""Delays that a batch waits at most while requests come one after the other."""


class QueueFull(Exception):
    """There is no room for so many images now."""


class QueueClosed(Exception):
    """The service is about to end."""


@dataclass(eq=False)
class QueuePlace:
    """A request that waits. Its `answer` may be cancelled for as long as the worker has not begun with it."""

    images: int
    answer: Future[Any] = field(default_factory=Future)
    views: Views | None = None
    ready_at: float = 0.0

    @property
    def form(self) -> tuple[Any, ...]:
        """What images of one batch have in common."""
        assert self.views is not None
        return tuple((view.dtype.str, view.shape[1:]) for view in self.views)


@dataclass(eq=False)
class Action:
    """Something else that only the worker may do with the stream, between two batches."""

    run: Callable[[], Any]
    answer: Future[Any] = field(default_factory=Future)


class Queue:
    """Places and actions that wait for the worker. Every method may be called by any thread."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.images = 0
        self._places: deque[QueuePlace] = deque()
        self._actions: deque[Action] = deque()
        self._changed = Condition()
        self._hurried = False
        self._closed = False

    def reserve(self, images: int) -> QueuePlace:
        """The last place of the queue, to be filled or dropped."""
        with self._changed:
            if self._closed:
                raise QueueClosed
            if self.images + images > self.limit:
                raise QueueFull
            place = QueuePlace(images)
            self._places.append(place)
            self.images += images
            return place

    def fill(self, place: QueuePlace, views: Views) -> None:
        """The place is ready for a batch."""
        with self._changed:
            place.views, place.ready_at = views, time.monotonic()
            self._changed.notify_all()

    def drop(self, place: QueuePlace) -> None:
        """The request needs no answer any more; nothing happens if the worker has it already."""
        with self._changed:
            if place in self._places:
                self._places.remove(place)
                self.images -= place.images
                self._changed.notify_all()

    def ask(self, run: Callable[[], Any]) -> Future[Any]:
        """What `run` returns, called by the worker as soon as it is between two batches."""
        with self._changed:
            if self._closed:
                raise QueueClosed
            action = Action(run)
            self._actions.append(action)
            self._changed.notify_all()
            return action.answer

    def hurry(self) -> None:
        """No batch waits for more requests from now on."""
        with self._changed:
            self._hurried = True
            self._changed.notify_all()

    def close(self) -> None:
        """Takes nothing more; what is in it is still handed out."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def take(self, batch_size: int, delay: float) -> list[QueuePlace] | Action | None:
        """The next batch or action; None when the queue is closed and empty.

        A batch waits until it is full, or until `delay` seconds have passed in which no more requests came, counted
        from now on: clients whom the last batch answered come again, one after the other. It does not wait for longer
        than PATIENCE times the delay, and holds whole requests of one form.
        """
        began = time.monotonic()
        with self._changed:
            while True:
                if self._actions:
                    return self._actions.popleft()
                if self._closed and not self._places:
                    return None
                left = self._seconds_left(batch_size, delay, began)
                if left is not None and left <= 0:
                    return self._pop(batch_size)
                self._changed.wait(left)

    def _seconds_left(self, batch_size: int, delay: float, began: float) -> float | None:
        """How long the first batch may still grow; None if there is none yet."""
        if not self._places or self._places[0].views is None:
            return None
        first, last, total = self._places[0], self._places[0], 0
        for place in self._places:
            if place.views is None:
                break
            if place.form != first.form or total + place.images > batch_size:
                return 0.0
            last, total = place, total + place.images
        if total >= batch_size or self._hurried or self._closed:
            return 0.0
        at_most = max(first.ready_at, began) + PATIENCE * delay
        more_are_coming = self._places[-1].views is None
        until = at_most if more_are_coming else min(max(last.ready_at, began) + delay, at_most)
        return until - time.monotonic()

    def _pop(self, batch_size: int) -> list[QueuePlace]:
        batch = [self._places.popleft()]
        total = batch[0].images
        while self._places:
            place = self._places[0]
            if place.views is None or place.form != batch[0].form or total + place.images > batch_size:
                break
            batch.append(self._places.popleft())
            total += place.images
        self.images -= total
        return batch
