"""Scores of probabilistic predictions: (probabilities [batch, classes], labels [batch]) -> float.

Predictions of equal confidence are exchangeable: where their order would matter, each counts as the average of its
group, so that no score depends on the order of the rows.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

Array = np.ndarray

ALEXNET_ERROR = {
    "gaussian_noise": 0.886428,
    "shot_noise": 0.894468,
    "impulse_noise": 0.922640,
    "defocus_blur": 0.819880,
    "glass_blur": 0.826268,
    "motion_blur": 0.785948,
    "zoom_blur": 0.798360,
    "snow": 0.866816,
    "frost": 0.826572,
    "fog": 0.819324,
    "brightness": 0.564592,
    "contrast": 0.853204,
    "elastic_transform": 0.646056,
    "pixelate": 0.717840,
    "jpeg_compression": 0.606500,
}
"""Error of AlexNet on ImageNet-C, mean over the five severities: what mCE divides by."""


def accuracy(probabilities: Tensor | Array, labels: Tensor | Array) -> float:
    """Share of rows whose most probable class is the label; among equals the first class counts as predicted."""
    p, y = _check(probabilities, labels)
    return float((p.argmax(axis=1) == y).mean())


def nll(probabilities: Tensor | Array, labels: Tensor | Array) -> float:
    """Mean of -log p(label), in nats; infinite if a label was given probability 0."""
    p, y = _check(probabilities, labels)
    with np.errstate(divide="ignore"):
        return float(-np.log(p[np.arange(len(y)), y]).mean())


def brier(probabilities: Tensor | Array, labels: Tensor | Array) -> float:
    """Mean over rows of sum_y (p(y|x) - [y = label])^2, from 0 to 2."""
    p, y = _check(probabilities, labels)
    return float(((p - np.eye(p.shape[1])[y]) ** 2).sum(axis=1).mean())


def ece(probabilities: Tensor | Array, labels: Tensor | Array, bins: int = 20) -> float:
    """Expected calibration error: 1/B sum_b |acc(b) - conf(b)| over B bins of equal count, by confidence.

    Counts differ by at most one if B does not divide the number of rows; with fewer rows than bins, each row is one.
    """
    return ece_of(*confidence_of(probabilities, labels), bins=bins)


def ece_of(confidence: Array, correct: Array, *, bins: int = 20) -> float:
    """The expected calibration error from the confidence of each prediction and whether it was right."""
    curve = reliability_of(confidence, correct, bins=bins)
    return float(np.abs(curve.accuracy - curve.confidence).mean())


def confidence_of(probabilities: Tensor | Array, labels: Tensor | Array) -> tuple[Array, Array]:
    """The probability of the predicted class, and whether it is the label, of each row."""
    p, y = _check(probabilities, labels)
    return p.max(axis=1), p.argmax(axis=1) == y


class ReliabilityCurve(NamedTuple):
    confidence: Array  # [bins], mean confidence, increasing
    accuracy: Array  # [bins], share of right predictions
    count: Array  # [bins], rows


def reliability_curve(probabilities: Tensor | Array, labels: Tensor | Array, bins: int = 20) -> ReliabilityCurve:
    """Confidence and accuracy in bins of equal count."""
    return reliability_of(*confidence_of(probabilities, labels), bins=bins)


def reliability_of(confidence: Array, correct: Array, *, bins: int = 20) -> ReliabilityCurve:
    """The reliability curve from the confidence of each prediction and whether it was right."""
    if bins < 1:
        raise ValueError(f"bins must be at least 1, got {bins}")
    confidence, correct = _sort_by_confidence(confidence, correct)
    parts = np.array_split(np.arange(len(confidence)), min(bins, len(confidence)))
    return ReliabilityCurve(
        np.array([confidence[part].mean() for part in parts]),
        np.array([correct[part].mean() for part in parts]),
        np.array([len(part) for part in parts]),
    )


class RiskCoverage(NamedTuple):
    coverage: Array  # [batch], 1/n .. 1
    risk: Array  # [batch], error among the most confident share


def risk_coverage(probabilities: Tensor | Array, labels: Tensor | Array) -> RiskCoverage:
    """Error among the most confident share of rows, for each share: what abstaining on the rest buys."""
    return risk_coverage_of(*confidence_of(probabilities, labels))


def risk_coverage_of(confidence: Array, correct: Array) -> RiskCoverage:
    """The risk-coverage curve from the confidence of each prediction and whether it was right."""
    confidence, correct = _sort_by_confidence(confidence, correct)
    kept = np.arange(1, len(confidence) + 1)
    return RiskCoverage(kept / len(confidence), np.cumsum(1 - correct[::-1]) / kept)


def aurc(probabilities: Tensor | Array, labels: Tensor | Array) -> float:
    """Area under the risk-coverage curve: the mean risk over all coverages; lower is better."""
    return float(risk_coverage(probabilities, labels).risk.mean())


def selective_accuracy(probabilities: Tensor | Array, labels: Tensor | Array, coverage: float) -> float:
    """Accuracy on the most confident share `coverage` of rows, at least one row."""
    if not 0 < coverage <= 1:
        raise ValueError(f"coverage must be above 0 and at most 1, got {coverage}")
    curve = risk_coverage(probabilities, labels)
    kept = max(1, int(np.floor(coverage * len(curve.risk) + 1e-9)))
    return float(1 - curve.risk[kept - 1])


def mce(errors: Mapping[str, Sequence[float]]) -> float:
    """Mean corruption error: 1/15 sum_c (mean error over the five severities / AlexNet's error on c), 1 for AlexNet.

    `errors`: corruption -> error at severities 1..5, for each of the 15 corruptions of ImageNet-C.
    """
    if errors.keys() != ALEXNET_ERROR.keys():
        wrong = sorted(errors.keys() ^ ALEXNET_ERROR.keys())
        raise ValueError(f"errors must have the 15 test corruptions; missing or unknown: {', '.join(wrong)}")
    for name, values in errors.items():
        if len(values) != 5 or not all(0 <= value <= 1 for value in values):
            raise ValueError(f"errors of {name} must be five shares 0..1, one per severity, got {list(values)}")
    return float(np.mean([np.mean(errors[name]) / baseline for name, baseline in ALEXNET_ERROR.items()]))


class Score(NamedTuple):
    """A score as tables, figures and searches know it."""

    label: str  # heading of its column
    function: Callable[..., float]  # of probabilities and labels
    percent: bool = False  # printed in percent with two digits, else as it is with four
    higher_is_better: bool = False

    @property
    def digits(self) -> int:
        return 2 if self.percent else 4

    @property
    def axis(self) -> str:
        """Its name beside a figure's axis."""
        return f"{self.label} (%)" if self.percent else self.label

    @property
    def direction(self) -> str:
        return "higher is better" if self.higher_is_better else "lower is better"

    @property
    def arrow(self) -> str:
        """The same as a sign behind a heading."""
        return "↑" if self.higher_is_better else "↓"

    def shown(self, value: float) -> float:
        """The number that is printed."""
        return 100 * value if self.percent else value

    def text(self, value: float) -> str:
        """The number as the paper prints it."""
        if np.isinf(value):
            return "∞"
        return f"{self.shown(value):.{self.digits}f}"

    def better(self, value: float, other: float) -> bool:
        """Whether the first is the better of two that differ."""
        return value > other if self.higher_is_better else value < other

    def best(self, values: Sequence[float]) -> float:
        """The best of several; NaN, which no method is to blame for, is left out."""
        known = [value for value in values if not np.isnan(value)]
        return (max if self.higher_is_better else min)(known)


SCORES: dict[str, Score] = {
    "accuracy": Score("Acc", accuracy, percent=True, higher_is_better=True),
    "nll": Score("NLL", nll),
    "brier": Score("Brier", brier),
    "ece": Score("ECE", ece),
}
"""The scores of every evaluation, record and table, in the order of the paper's columns."""
MCE = Score("mCE", mce, percent=True)  # of errors by corruption, not of one set of predictions


def scores_of(probabilities: Tensor | Array, labels: Tensor | Array) -> dict[str, float]:
    """Every score of one set of predictions, by name."""
    return {name: score.function(probabilities, labels) for name, score in SCORES.items()}


def mean_scores(scores: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Every score averaged over members, or over shifts."""
    return {name: float(np.mean([each[name] for each in scores])) for name in SCORES}


def _sort_by_confidence(confidence: Array, correct: Array) -> tuple[Array, Array]:
    """Confidence in increasing order, and beside it how often predictions of just that confidence were right."""
    _, group, sizes = np.unique(confidence, return_inverse=True, return_counts=True)
    share = np.bincount(group, weights=correct) / sizes
    order = np.argsort(confidence)
    return confidence[order], share[group][order]


def _check(probabilities: Tensor | Array, labels: Tensor | Array) -> tuple[Array, Array]:
    p = _as_array(probabilities).astype(np.float64)
    y = _as_array(labels)
    if p.ndim != 2 or p.shape[0] == 0 or p.shape[1] == 0:
        raise ValueError(f"probabilities must be [batch, classes] with at least one row, got shape {list(p.shape)}")
    if y.shape != (len(p),):
        raise ValueError(f"labels must be one class per row, shape [{len(p)}], got shape {list(y.shape)}")
    if y.dtype.kind not in "iu":
        raise ValueError(f"labels must be whole numbers, got {y.dtype}")
    if y.min() < 0 or y.max() >= p.shape[1]:
        raise ValueError(f"labels must be 0..{p.shape[1] - 1}, got {y.min()}..{y.max()}")
    sums = p.sum(axis=1)
    if not (np.isfinite(p).all() and p.min() >= 0 and np.allclose(sums, 1, atol=1e-2)):
        raise ValueError("probabilities must be finite, >= 0 and sum to 1 in each row; are these logits?")
    return p, y.astype(np.int64)


def _as_array(values: Tensor | Array) -> Array:
    if isinstance(values, Tensor):
        values = values.detach().cpu()
        return values.float().numpy() if values.dtype == torch.bfloat16 else values.numpy()
    return np.asarray(values)
