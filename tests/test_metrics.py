"""Scores against scikit-learn, torchmetrics and plain loops."""

import math

import numpy as np
import pytest
import torch
from sklearn.metrics import accuracy_score, log_loss
from torchmetrics.functional.classification import multiclass_calibration_error

from bacs import metrics
from bacs.corruptions import TEST

SCORES = [metrics.accuracy, metrics.nll, metrics.brier, metrics.ece, metrics.aurc]


def predictions(n=1000, classes=7, seed=0):
    generator = np.random.default_rng(seed)
    p = generator.dirichlet(np.full(classes, 0.5), size=n)
    labels = np.array([generator.choice(classes, p=0.7 * row + 0.3 / classes) for row in p])
    return p, labels


def plain_ece(p, labels, bins):
    """Sort, cut, average: written out."""
    rows = sorted((max(row), float(np.argmax(row) == label)) for row, label in zip(p, labels, strict=True))
    size = len(rows) // bins
    parts = [rows[i * size : (i + 1) * size] for i in range(bins)]
    return sum(abs(sum(c for _, c in b) / size - sum(f for f, _ in b) / size) for b in parts) / bins


def test_accuracy_and_nll_equal_scikit_learn():
    p, labels = predictions()
    assert metrics.accuracy(p, labels) == pytest.approx(accuracy_score(labels, p.argmax(axis=1)))
    assert metrics.nll(p, labels) == pytest.approx(log_loss(labels, p, labels=range(7)), rel=1e-9)


def test_brier_is_the_sum_over_classes():
    p, labels = predictions()
    onehot = np.zeros_like(p)
    onehot[np.arange(len(p)), labels] = 1
    assert metrics.brier(p, labels) == pytest.approx(
        np.mean([((a - b) ** 2).sum() for a, b in zip(p, onehot, strict=True)])
    )
    assert metrics.brier(np.array([[0.0, 1.0]]), np.array([0])) == 2


def test_ece_equals_the_plain_loop():
    p, labels = predictions()
    assert metrics.ece(p, labels) == pytest.approx(plain_ece(p, labels, 20), rel=1e-12)
    assert metrics.ece(p, labels, bins=8) == pytest.approx(plain_ece(p, labels, 8), rel=1e-12)


def test_ece_with_one_bin_equals_torchmetrics_with_one_bin():
    """Equal count and equal width agree when there is a single bin."""
    p, labels = predictions()
    expected = multiclass_calibration_error(torch.tensor(p), torch.tensor(labels), 7, n_bins=1)
    assert metrics.ece(p, labels, bins=1) == pytest.approx(expected.item(), rel=1e-5)


@pytest.mark.parametrize("n", [1, 7, 19, 21, 39, 1003])
def test_ece_uses_every_row_when_bins_do_not_divide_the_count(n):
    p, labels = predictions(n)
    curve = metrics.reliability_curve(p, labels)
    assert curve.count.sum() == n
    assert curve.count.max() - curve.count.min() <= 1
    assert len(curve.count) == min(n, 20)
    assert (curve.confidence * curve.count).sum() == pytest.approx(p.max(axis=1).sum())
    assert (curve.accuracy * curve.count).sum() == pytest.approx(metrics.accuracy(p, labels) * n)


@pytest.mark.parametrize("score", SCORES)
def test_no_score_depends_on_the_order_of_rows_even_with_ties(score):
    p, labels = predictions(200)
    p = np.round(p, 1)
    p[:, 0] += 1 - p.sum(axis=1)
    p = np.clip(p, 0.02, None)
    p /= p.sum(axis=1, keepdims=True)
    order = np.random.default_rng(1).permutation(200)
    assert score(p, labels) == pytest.approx(score(p[order], labels[order]), rel=1e-12)


def test_equal_confidences_everywhere_give_the_gap_itself():
    p = np.tile([0.7, 0.3], (50, 1))
    labels = np.array([0] * 20 + [1] * 30)
    assert metrics.ece(p, labels) == pytest.approx(0.7 - 0.4)
    assert metrics.aurc(p, labels) == pytest.approx(0.6)


def test_one_class_is_always_right():
    p, labels = np.ones((30, 1)), np.zeros(30, dtype=int)
    assert [score(p, labels) for score in SCORES] == [1, 0, 0, 0, 0]


def test_probability_zero_for_the_label_is_an_infinite_nll_and_nothing_else_breaks():
    p, labels = np.array([[1.0, 0.0], [0.5, 0.5]]), np.array([1, 0])
    assert metrics.nll(p, labels) == math.inf
    assert metrics.brier(p, labels) == pytest.approx((2 + 0.5) / 2)
    assert math.isfinite(metrics.ece(p, labels))


def test_risk_coverage_is_the_error_among_the_most_confident():
    p = np.array([[0.9, 0.1], [0.2, 0.8], [0.7, 0.3], [0.4, 0.6]])
    labels = np.array([0, 0, 0, 1])
    curve = metrics.risk_coverage(p, labels)
    np.testing.assert_allclose(curve.coverage, [0.25, 0.5, 0.75, 1.0])
    np.testing.assert_allclose(curve.risk, [0, 1 / 2, 1 / 3, 1 / 4])
    assert metrics.aurc(p, labels) == pytest.approx((0 + 1 / 2 + 1 / 3 + 1 / 4) / 4)
    assert metrics.selective_accuracy(p, labels, 0.25) == 1
    assert metrics.selective_accuracy(p, labels, 1.0) == 0.75


def test_perfect_calibration_has_a_small_ece_and_overconfidence_a_large_one():
    generator = np.random.default_rng(0)
    p = generator.dirichlet(np.ones(5), size=20000)
    labels = np.array([generator.choice(5, p=row) for row in p])
    assert metrics.ece(p, labels) < 0.015
    sharpened = p**4 / (p**4).sum(axis=1, keepdims=True)
    assert metrics.ece(sharpened, labels) > 0.2


def test_tensors_of_every_kind_are_read():
    p, labels = predictions(100)
    for dtype, tolerance in ((torch.float64, 1e-12), (torch.float32, 1e-5), (torch.bfloat16, 2e-2)):
        actual = metrics.brier(torch.tensor(p, dtype=dtype, requires_grad=True), torch.tensor(labels))
        assert actual == pytest.approx(metrics.brier(p, labels), rel=tolerance)


@pytest.mark.parametrize(
    ("p", "labels", "message"),
    [
        (np.zeros((0, 3)), np.zeros(0, dtype=int), r"at least one row, got shape \[0, 3\]"),
        (np.full(3, 1 / 3), np.zeros(3, dtype=int), r"must be \[batch, classes\]"),
        (np.full((2, 2), 0.5), np.zeros(3, dtype=int), r"shape \[2\], got shape \[3\]"),
        (np.full((2, 2), 0.5), np.zeros(2), "whole numbers, got float64"),
        (np.full((2, 2), 0.5), np.array([0, 2]), r"labels must be 0..1, got 0..2"),
        (np.array([[3.0, -1.0]]), np.array([0]), "are these logits"),
        (np.array([[np.nan, 1.0]]), np.array([0]), "must be finite"),
    ],
)
def test_bad_input_is_named(p, labels, message):
    for score in SCORES:
        with pytest.raises(ValueError, match=message):
            score(p, labels)


def test_bad_bins_and_coverage_are_named():
    p, labels = predictions(30)
    with pytest.raises(ValueError, match="bins must be at least 1, got 0"):
        metrics.ece(p, labels, bins=0)
    with pytest.raises(ValueError, match="coverage must be above 0 and at most 1, got 1.5"):
        metrics.selective_accuracy(p, labels, 1.5)


def test_a_score_is_printed_as_in_the_paper():
    assert metrics.SCORES["accuracy"].text(0.87771) == "87.77"
    assert metrics.SCORES["nll"].text(0.42604) == "0.4260"
    assert metrics.SCORES["nll"].text(np.inf) == "∞"
    assert metrics.MCE.text(0.4678) == "46.78"


def test_accuracy_alone_is_better_when_it_is_higher():
    best = {name: score.best([0.2, np.nan, 0.3]) for name, score in metrics.SCORES.items()}
    assert best == {"accuracy": 0.3, "nll": 0.2, "brier": 0.2, "ece": 0.2}
    assert metrics.MCE.best([0.2, 0.3]) == 0.2
    for name, score in metrics.SCORES.items():
        assert score.better(0.3, 0.2) == (name == "accuracy")
        assert not score.better(0.3, 0.3)


def test_mce_is_one_for_alexnet_and_averages_severities_before_it_divides():
    errors = {name: [error] * 5 for name, error in metrics.ALEXNET_ERROR.items()}
    assert metrics.mce(errors) == pytest.approx(1)
    assert metrics.mce(errors | {"fog": [0.0] * 5}) == pytest.approx(14 / 15)
    mean_of_these = 0.4
    by_hand = (14 + mean_of_these / 0.564592) / 15
    assert metrics.mce(errors | {"brightness": [0.0, 0.2, 0.4, 0.6, 0.8]}) == pytest.approx(by_hand)


def test_mce_knows_the_corruptions_of_the_catalogue():
    assert tuple(metrics.ALEXNET_ERROR) == TEST


def test_mce_refuses_what_is_not_all_15_by_5():
    errors = {name: [0.5] * 5 for name in metrics.ALEXNET_ERROR}
    with pytest.raises(ValueError, match="missing or unknown: fog"):
        metrics.mce({name: values for name, values in errors.items() if name != "fog"})
    with pytest.raises(ValueError, match="errors of snow must be five shares"):
        metrics.mce(errors | {"snow": [0.5] * 4})
    with pytest.raises(ValueError, match="errors of snow must be five shares"):
        metrics.mce(errors | {"snow": [50.0] * 5})
