"""Ctrl-C and SIGTERM as a request to stop after the present batch."""

import signal
from types import FrameType, TracebackType
from typing import Any


class Signals:
    """Notes Ctrl-C and SIGTERM while it is entered, so that the batch is finished. A second one ends at once."""

    def __init__(self) -> None:
        self.heard: int | None = None
        self._before: dict[int, Any] = {}

    def __enter__(self) -> "Signals":
        self._before = {number: signal.signal(number, self._hear) for number in (signal.SIGINT, signal.SIGTERM)}
        return self

    def _hear(self, number: int, frame: FrameType | None) -> None:
        self.heard = number
        signal.signal(number, self._before[number])

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)

    def stopped(self) -> bool:
        return self.heard is not None
