"""What the page and the metrics show: written by the worker, read by everyone else."""

import asyncio
import time
from collections import deque
from collections.abc import Sequence
from threading import Lock
from typing import Any, NamedTuple

import numpy as np

ROWS = 600
"""Points of each curve. Beyond, every second of the older half is left out: a long past stays, in less detail."""

SECONDS = 1.0
"""Between two points; what comes sooner takes the place of the last one."""

PICTURES = 12
LATENCIES = 512
DECISIONS = 200


class ShownPicture(NamedTuple):
    """A picture on the page and what was said of it."""

    number: int
    pixels: np.ndarray
    label: str
    confidence: float
    abstain: bool


class Display:
    """Curves, decisions, pictures and latencies, kept for whoever looks."""

    def __init__(self, *, pictures: bool = True) -> None:
        self._lock = Lock()
        self._rows: list[dict[str, Any]] = []
        self._row_number = 0
        self._last_row = 0.0
        self._decisions: deque[dict[str, Any]] = deque(maxlen=DECISIONS)
        self._pictures: deque[ShownPicture] = deque(maxlen=PICTURES)
        self._picture_number = 0
        self._latencies: deque[float] = deque(maxlen=LATENCIES)
        self._now: dict[str, Any] = {}
        self._listeners: dict[asyncio.Event, asyncio.AbstractEventLoop] = {}
        self.shows_pictures = pictures

    def is_due(self) -> bool:
        """Whether the next row would be a new point; only then are costly figures worth computing."""
        return time.monotonic() - self._last_row >= SECONDS

    def add_row(self, row: dict[str, Any]) -> None:
        """A point of the curves."""
        with self._lock:
            self._row_number += 1
            self._last_row = time.monotonic()
            self._rows.append(row | {"number": self._row_number, "time": time.time()})
            if len(self._rows) > ROWS:
                half = len(self._rows) // 2
                self._rows = self._rows[:half:2] + self._rows[half:]
        self.tell()

    def add_decision(self, step: int, what: dict[str, Any], reason: str, *, now: bool = True) -> None:
        """Something that was decided; `now` is False for those from before this process began."""
        with self._lock:
            event = {"step": step, "what": what, "reason": reason, "time": time.time() if now else None}
            self._decisions.append(event)
        self.tell()

    def add_latency(self, seconds: float) -> None:
        with self._lock:
            self._latencies.append(seconds)

    def add_pictures(self, pixels: np.ndarray, told: Sequence[dict[str, Any]]) -> None:
        """The last of a batch's pictures (uint8 NHWC), unless they are not to be shown."""
        with self._lock:
            if not self.shows_pictures:
                return
            for image, row in list(zip(pixels, told, strict=True))[-PICTURES:]:
                self._picture_number += 1
                label = row["class_name"] or str(row["class_index"])
                shown = ShownPicture(self._picture_number, image.copy(), label, row["confidence"], row["abstain"])
                self._pictures.append(shown)

    def show_pictures(self, shown: bool) -> None:
        """Shows the pictures to come, or none, and forgets those that are held."""
        with self._lock:
            self.shows_pictures = shown
            if not shown:
                self._pictures.clear()
        self.tell()

    def picture(self, number: int) -> np.ndarray | None:
        """The pixels of a picture that is still shown."""
        with self._lock:
            return next((shown.pixels for shown in self._pictures if shown.number == number), None)

    def set_now(self, **facts: Any) -> None:
        """What is true until it is said otherwise: frozen, step, counts."""
        with self._lock:
            self._now |= facts
        self.tell()

    def latencies(self) -> dict[str, float | None]:
        """Median and 99th percentile of the last requests, in seconds."""
        with self._lock:
            kept = np.array(self._latencies)
        return {f"p{share}": float(np.percentile(kept, share)) if len(kept) else None for share in (50, 99)}

    def snapshot(self, after: int = 0) -> dict[str, Any]:
        """All of it for the page; of the curves only points beyond number `after`."""
        latencies = self.latencies()
        with self._lock:
            return {
                "now": self._now | {"shows_pictures": self.shows_pictures},
                "rows": [row for row in self._rows if row["number"] > after],
                "decisions": list(self._decisions),
                "pictures": [
                    {name: value for name, value in shown._asdict().items() if name != "pixels"}
                    for shown in self._pictures
                ],
                "latency": latencies,
            }

    def listen(self) -> asyncio.Event:
        """An event of the running loop that is set whenever there is something new."""
        event = asyncio.Event()
        with self._lock:
            self._listeners[event] = asyncio.get_running_loop()
        return event

    def leave(self, event: asyncio.Event) -> None:
        with self._lock:
            self._listeners.pop(event, None)

    @property
    def watchers(self) -> int:
        return len(self._listeners)

    def tell(self) -> None:
        """Wakes those who listen. A loop that has ended meanwhile has nobody left to wake."""
        with self._lock:
            listeners = list(self._listeners.items())
        for event, loop in listeners:
            if not loop.is_closed():
                loop.call_soon_threadsafe(event.set)
