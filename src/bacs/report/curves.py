"""Reliability and risk-coverage of ensembles over all shifts of a comparison, as curves and as tables."""

import numpy as np

from bacs.report.comparison import Comparison, Entry
from bacs.report.names import of_data
from bacs.report.summary import stem
from bacs.report.tables import Cell, Column, Line, Table

Curves = dict[str, dict[str, list[float]]]  # label -> axis -> values

COVERAGE = np.linspace(0.02, 1, 50)


def reliability_curves(comparison: Comparison) -> Curves:
    """Confidence and accuracy of each bin of equal count, averaged over shifts: bin b is the b-th of every shift."""
    curves: Curves = {}
    lengths = [len(record["reliability"]["confidence"]) for record in comparison.records if record.get("reliability")]
    for entry in comparison.combined:
        found = [record["reliability"] for record in _records(comparison, entry) if record.get("reliability")]
        # A shift of fewer images than bins has fewer bins, which are not those of the others.
        found = [curve for curve in found if len(curve["confidence"]) == max(lengths)]
        if found:
            means = {axis: np.mean([curve[axis] for curve in found], axis=0) for axis in ("confidence", "accuracy")}
            curves[entry.label] = {axis: mean.tolist() for axis, mean in means.items()}
    return curves


def risk_curves(comparison: Comparison) -> Curves:
    """Risk at each coverage, averaged over shifts; between the stored points a straight line."""
    curves: Curves = {}
    for entry in comparison.combined:
        found = [record["risk_coverage"] for record in _records(comparison, entry) if record.get("risk_coverage")]
        if found:
            risks = [np.interp(COVERAGE, curve["coverage"], curve["risk"]) for curve in found]
            curves[entry.label] = {"coverage": COVERAGE.tolist(), "risk": np.mean(risks, axis=0).tolist()}
    return curves


def reliability_table(comparison: Comparison) -> Table | None:
    """The numbers of the reliability diagram."""
    curves = reliability_curves(comparison)
    if not curves:
        return None
    methods = _methods(comparison)
    columns = [Column(axis, label, methods[label]) for label in curves for axis in ("confidence", "accuracy")]
    bins = len(next(iter(curves.values()))["confidence"])
    lines = tuple(
        Line(str(b + 1), tuple(_cell(c[axis][b]) for c in curves.values() for axis in ("confidence", "accuracy")))
        for b in range(bins)
    )
    title = f"{of_data(comparison.data)}, {comparison.protocol}: reliability of ensembles"
    note = "Predictions of each shift in bins of equal count, by confidence; then the mean over shifts of each bin."
    return Table(f"{stem(comparison)}-reliability", title, "Bin", tuple(columns), lines, (note,))


def risk_table(comparison: Comparison) -> Table | None:
    """The numbers of the risk-coverage plot."""
    curves = risk_curves(comparison)
    if not curves:
        return None
    methods = _methods(comparison)
    columns = tuple(Column(label, method=methods[label]) for label in curves)
    lines = tuple(
        Line(f"{coverage:.2f}", tuple(_cell(curve["risk"][index]) for curve in curves.values()))
        for index, coverage in enumerate(COVERAGE)
    )
    title = f"{of_data(comparison.data)}, {comparison.protocol}: risk at coverage, ensembles; lower is better"
    note = "Error among the most confident share of predictions of each shift; then the mean over shifts."
    return Table(f"{stem(comparison)}-risk-coverage", title, "Coverage", columns, lines, (note,))


def _records(comparison: Comparison, entry: Entry) -> list[dict]:
    return [entry.records[shift.name] for shift in comparison.common]


def _methods(comparison: Comparison) -> dict[str, str]:
    return {entry.label: entry.method for entry in comparison.entries}


def _cell(value: float) -> Cell:
    return Cell(f"{value:.4f}", value)
