"""Reliability and risk-coverage of ensembles over all shifts of a comparison: curves, their tables, their figures."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from bacs.report.comparison import Comparison, Entry, stem
from bacs.report.figure_style import INK, add_legend, count_repeats, draw_line, new_figure, plain
from bacs.report.tables import Column, Line, ReportTable, TableCell

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

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


def reliability_table(comparison: Comparison) -> ReportTable | None:
    """The numbers of the reliability diagram."""
    curves = reliability_curves(comparison)
    if not curves:
        return None
    columns = [
        Column(axis, label, comparison.methods[label]) for label in curves for axis in ("confidence", "accuracy")
    ]
    bins = len(next(iter(curves.values()))["confidence"])
    lines = tuple(
        Line(str(b + 1), tuple(_cell(c[axis][b]) for c in curves.values() for axis in ("confidence", "accuracy")))
        for b in range(bins)
    )
    title = f"{comparison.name}: reliability of ensembles"
    note = "Predictions of each shift in bins of equal count, by confidence; then the mean over shifts of each bin."
    return ReportTable(f"{stem(comparison)}-reliability", title, "Bin", tuple(columns), lines, (note,))


def risk_table(comparison: Comparison) -> ReportTable | None:
    """The numbers of the risk-coverage plot."""
    curves = risk_curves(comparison)
    if not curves:
        return None
    columns = tuple(Column(label, method=comparison.methods[label]) for label in curves)
    lines = tuple(
        Line(f"{coverage:.2f}", tuple(_cell(curve["risk"][index]) for curve in curves.values()))
        for index, coverage in enumerate(COVERAGE)
    )
    title = f"{comparison.name}: risk at coverage, ensembles; lower is better"
    note = "Error among the most confident share of predictions of each shift; then the mean over shifts."
    return ReportTable(f"{stem(comparison)}-risk-coverage", title, "Coverage", columns, lines, (note,))


def reliability_diagram(curves: Mapping[str, Mapping[str, Sequence[float]]], methods: Mapping[str, str]) -> "Figure":
    """Accuracy against confidence in bins of equal count, one line per row; the diagonal is perfect honesty.

    `curves`: label of a row -> {"confidence": [...], "accuracy": [...]}; `methods`: label -> the row's method.
    """
    figure = new_figure(figsize=(4.6, 4.8))
    axes = figure.add_subplot()
    axes.plot([0, 1], [0, 1], color=INK, linewidth=0.8, linestyle=":", label="perfectly honest")
    _draw_lines(axes, curves, ("confidence", "accuracy"), methods, markersize=3.5)
    axes.set(xlabel="confidence", ylabel="accuracy", xlim=(0, 1.02), ylim=(0, 1.02), title="Reliability of ensembles")
    return figure


def risk_coverage_plot(curves: Mapping[str, Mapping[str, Sequence[float]]], methods: Mapping[str, str]) -> "Figure":
    """Error among the most confident share of predictions, one line per row; lower is better.

    `curves`: label of a row -> {"coverage": [...], "risk": [...]}; `methods`: label -> the row's method.
    """
    figure = new_figure(figsize=(4.6, 4.8))
    axes = figure.add_subplot()
    _draw_lines(axes, curves, ("coverage", "risk"), methods, markersize=0)
    axes.set(
        xlabel="share of images answered, most confident first",
        ylabel="error among them",
        xlim=(0, 1),
        title="What abstaining buys",
    )
    axes.set_ylim(bottom=0)
    return figure


def _draw_lines(
    axes: "Axes",
    curves: Mapping[str, Mapping[str, Sequence[float]]],
    keys: tuple[str, str],
    methods: Mapping[str, str],
    *,
    markersize: float,
) -> None:
    """One line per row, with its legend."""
    others = [None] * len(axes.lines)  # drawn before, of no method
    of = [methods[label] for label in curves]
    for (label, curve), method, repeats in zip(curves.items(), of, count_repeats(of), strict=True):
        x, y = (curve[key] for key in keys)
        draw_line(axes, x, y, label, method, repeats=repeats, markersize=markersize)
    plain(axes)
    add_legend(axes, [*others, *of], loc="upper left", fontsize=8.5)


def _records(comparison: Comparison, entry: Entry) -> list[dict]:
    return [entry.records[shift.name] for shift in comparison.common]


def _cell(value: float) -> TableCell:
    return TableCell(f"{value:.4f}", value)
