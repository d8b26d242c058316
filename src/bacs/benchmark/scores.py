"""What a record keeps of predictions: scores, curves and the accuracy of each class.

Labels are met here, after the predictions have been made.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from torch import Tensor

from bacs import metrics
from bacs.metrics import SCORES, mean_scores, scores_of

CURVE = 50
"""Points that are kept of a risk-coverage curve."""


class Judged(NamedTuple):
    """Predictions that have met their labels: little more than a number for each image, however many classes."""

    scores: dict[str, float]
    confidence: np.ndarray  # [images]
    correct: np.ndarray  # [images]


def judge(probabilities: Tensor, labels: np.ndarray) -> Judged:
    """Scores of the predictions, and which of them are right."""
    return Judged(scores_of(probabilities, labels), *metrics.confidence_of(probabilities, labels))


def join(parts: Sequence[Judged]) -> Judged:
    """All images of several parts. A score is their mean over images, but for ECE, whose bins are of all images."""
    counts = [len(part.correct) for part in parts]
    confidence = np.concatenate([part.confidence for part in parts])
    correct = np.concatenate([part.correct for part in parts])
    means = {name: float(np.average([part.scores[name] for part in parts], weights=counts)) for name in SCORES}
    return Judged(means | {"ece": metrics.ece_of(confidence, correct)}, confidence, correct)


def summary(
    members: Sequence[dict[str, float]], ensemble: Judged, labels: np.ndarray, names: Sequence[str], classes: int
) -> dict[str, Any]:
    """The scores and curves of a record, from the scores of its members and what is known of their mean."""
    reliability = metrics.reliability_of(ensemble.confidence, ensemble.correct)
    risk = metrics.risk_coverage_of(ensemble.confidence, ensemble.correct)
    kept = np.unique(np.linspace(0, len(labels) - 1, CURVE).round().astype(int))
    by_class = [ensemble.correct[labels == number] for number in range(classes)]
    return {
        "members": list(members),
        "single": mean_scores(members),
        "ensemble": ensemble.scores,
        "class_names": list(names),
        "class_accuracy": [float(correct.mean()) if len(correct) else None for correct in by_class],
        "reliability": {"confidence": reliability.confidence.tolist(), "accuracy": reliability.accuracy.tolist()},
        "risk_coverage": {"coverage": risk.coverage[kept].tolist(), "risk": risk.risk[kept].tolist()},
    }
