"""The last predictions of the service: what they show together, and from which confidence on it answers for one."""

from collections import deque

from bacs.agreement import Estimate, Figures, Reference, estimate, observe
from bacs.predictive import Predictive, confidence_threshold, join

IMAGES = 512
"""Batches of a service may be of one image; figures and the threshold are of this many images instead."""


class RecentPredictions:
    """Predictions of the last images, batch by batch."""

    def __init__(self, *, coverage: float, accuracy: float | None) -> None:
        self._coverage, self._accuracy = coverage, accuracy
        self._parts: deque[Predictive] = deque()
        self.images = 0

    def add(self, predictive: Predictive) -> None:
        self._parts.append(predictive)
        self.images += len(predictive.probabilities)
        while len(self._parts) > 1 and self.images - len(self._parts[0].probabilities) >= IMAGES:
            self.images -= len(self._parts.popleft().probabilities)

    def clear(self) -> None:
        self._parts.clear()
        self.images = 0

    def threshold(self) -> float:
        """The least confidence of an answer that stands."""
        confidence = join(list(self._parts)).probabilities.max(dim=-1).values.numpy()
        return confidence_threshold(confidence, coverage=self._coverage, accuracy=self._accuracy)

    def figures(self) -> Figures:
        return observe(join(list(self._parts)))

    def estimate(self, figures: Figures, reference: Reference | None) -> Estimate | None:
        """Accuracy without labels; None for one member, which has nobody to agree with."""
        members = len(self._parts[0].labels) if self._parts else 0
        return None if members < 2 else estimate(figures, self.images, members, reference)

    def class_counts(self) -> list[int]:
        """How many of the last images are predicted to be of each class."""
        rows = join(list(self._parts)).probabilities
        return rows.argmax(dim=-1).bincount(minlength=rows.shape[1]).tolist()
