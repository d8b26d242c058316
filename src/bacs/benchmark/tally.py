"""What was scored of a long stream: windows as they fill up, and for each image a line of numbers in a file.

Memory holds the window that is filling and the scores of the others. What is in the files beyond the state that was
saved last is cut off when a stream goes on, and made again.
"""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from torch import Tensor

from bacs import files
from bacs.benchmark import scores
from bacs.benchmark.follow import score_window, window_bounds
from bacs.benchmark.scores import Judged
from bacs.data import World
from bacs.data.streams.worlds import CLEAN
from bacs.drivers import kept
from bacs.errors import CheckpointError
from bacs.methods import Stream

LINES = "judged.bin"


class Bound(NamedTuple):
    """A window: what is met in it, and its images."""

    shift: str
    first: int
    end: int
    severity: float  # the mean


def bounds_of(world: World, window: int, data: str) -> Iterator[Bound]:
    """The windows of a world, none of which spans two segments."""
    for part in world.parts():
        for start, end in window_bounds(part.images, window):
            severities = part.segment.severity_at(part.begin + np.arange(start, end))
            severity = 0.0 if part.segment.name == CLEAN else round(float(severities.mean()), 3)
            yield Bound(f"{data}/{part.segment.name}", part.first + start, part.first + end, severity)


class Tally:
    """Takes in the members' predictions batch by batch; `images` says how many it has."""

    def __init__(self, folder: Path, bounds: Sequence[Bound], members: int) -> None:
        self._folder, self._bounds, self._count = folder, bounds, members
        # Of each image its label, and of each member and their mean how sure it was and whether it was right.
        columns = [("label", "<i4"), ("confidence", "<f8", (members + 1,)), ("correct", "?", (members + 1,))]
        self._line = np.dtype(columns)
        self.images, self._classes = 0, 0
        self._windows: list[dict[str, Any]] = []
        self._members: list[list[dict[str, float]]] = []  # scores by window and member
        self._rows = torch.empty(members, 0, 0, dtype=torch.float64)  # of the window that is filling
        self._labels = np.empty(0, np.int64)

    def add(self, rows: Sequence[Tensor], labels: np.ndarray) -> None:
        """Takes in the members' probabilities of the next images."""
        arrived = torch.stack(list(rows))
        self._rows = torch.cat([self._rows, arrived], dim=1) if len(self._labels) else arrived
        self._labels = np.concatenate([self._labels, labels])
        self.images, self._classes = self.images + len(labels), arrived.shape[2]
        while len(self._windows) < len(self._bounds) and self._bounds[len(self._windows)].end <= self.images:
            self._finish(self._bounds[len(self._windows)])

    def _finish(self, bound: Bound) -> None:
        size = bound.end - bound.first
        labels = self._labels[:size]
        scored = score_window(bound.shift, bound.first, list(self._rows[:, :size]), labels)
        self._windows.append(scored.window | {"severity": bound.severity})
        self._members.append([member.scores for member in scored.members])
        lines = np.empty(size, self._line)
        lines["label"] = labels
        for place, judged in enumerate([*scored.members, scored.mean]):
            lines["confidence"][:, place], lines["correct"][:, place] = judged.confidence, judged.correct
        with (self._folder / LINES).open("ab") as file:
            file.write(lines.tobytes())
        self._rows, self._labels = self._rows[:, size:].clone(), self._labels[size:]

    def save(self, running: Stream, beside: dict[str, Any]) -> None:
        """Keeps the stream and all that was scored, in one moment."""
        pending = self._pending
        if len(self._labels):
            tensors = {"rows": self._rows.contiguous(), "labels": torch.from_numpy(self._labels)}
            files.write(pending, save_tensors(tensors))
        if self._windows:
            with (self._folder / LINES).open("ab") as file:
                os.fsync(file.fileno())
        own = {"images": self.images, "windows": self._windows, "members": self._members, "classes": self._classes}
        running.beside = beside | {"tally": own}
        kept.write(self._folder, running)
        for stale in self._folder.glob("pending-*"):
            if stale != pending:
                stale.unlink(missing_ok=True)

    def resume(self, running: Stream) -> None:
        """Takes over what `save` kept with this stream, and cuts off what came later."""
        own = running.beside["tally"]
        self.images, self._classes = own["images"], own["classes"]
        self._windows, self._members = own["windows"], own["members"]
        if self.images > self._judged:
            pending = load_tensors(self._pending.read_bytes())
            self._rows, self._labels = pending["rows"], pending["labels"].numpy()
        size, file = self._judged * self._line.itemsize, self._folder / LINES
        file.touch()
        if file.stat().st_size < size:
            raise CheckpointError(f"{file} is damaged: it lacks lines; remove {self._folder} and its cell begins anew")
        os.truncate(file, size)

    @property
    def _judged(self) -> int:
        """Images of the windows that are full."""
        return self._bounds[len(self._windows) - 1].end if self._windows else 0

    @property
    def _pending(self) -> Path:
        """The file of the window that is filling; its name says which state it belongs to."""
        return self._folder / f"pending-{self.images}"

    def summary(self, names: Sequence[str]) -> dict[str, Any]:
        """The scores, curves and windows of a record; the stream is at its end."""
        lines = np.fromfile(self._folder / LINES, self._line)

        def judged(place: int, own: Sequence[dict[str, float]]) -> Judged:
            parts = [
                Judged(each, lines["confidence"][first:end, place], lines["correct"][first:end, place])
                for each, (_, first, end, _) in zip(own, self._bounds, strict=True)
            ]
            return scores.join(parts)

        whole = [judged(place, [each[place] for each in self._members]).scores for place in range(self._count)]
        mean = judged(self._count, [window["ensemble"] for window in self._windows])
        return scores.summary(whole, mean, lines["label"], names, self._classes) | {"windows": self._windows}
