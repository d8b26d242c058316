"""How streams of several shifts went: the accuracy of each window, in the order in which the images arrived."""

import json
from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bacs.benchmark.cell import parts
from bacs.metrics import SCORES
from bacs.report.comparison import Comparison, Entry, Shift, stem
from bacs.report.decisions import decisions, mark_decisions
from bacs.report.figure_style import INK, add_legend, count_repeats, draw_line, legend_columns, new_figure, plain
from bacs.report.names import of_corruption, quantity, slug
from bacs.report.tables import Column, Line, ReportTable, cell_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SCORE = "accuracy"
SLANTED = 20
"""Corruptions up to which names are slanted; more stand upright, smaller, or they would run into one another."""

MARKED = 60
"""Windows up to which each has a mark; more would run into one another."""


class Window(NamedTuple):
    first: int
    images: int
    shift: str
    severity: float | None  # the mean over the window, where it changes on the way

    @property
    def middle(self) -> float:
        return self.first + self.images / 2

    @property
    def corruption(self) -> str:
        """What is met; of a world's segment that is no shift of one severity, its name."""
        return of_corruption(parts(self.shift)[1] or self.shift.partition("/")[2] or self.shift)

    @property
    def name(self) -> str:
        """The corruption with its severity, where it has one."""
        return self.corruption if self.severity is None else f"{self.corruption}, severity {self.severity:g}"


def streams(comparison: Comparison) -> list[Shift]:
    """The streams of a comparison that have windows."""
    return [shift for shift in comparison.shifts if any(scores_over_time(e, shift) for e in comparison.entries)]


def scores_over_time(entry: Entry, shift: Shift) -> dict[Window, float]:
    """The accuracy of each window of a stream."""
    found: dict[Window, float] = {}
    for each in entry.records.get(shift.name, {}).get("windows", ()):
        severity = each.get("severity", parts(each["shift"])[2])
        found[Window(each["first"], each["images"], each["shift"], severity)] = each[entry.kind][SCORE]
    return dict(sorted(found.items()))


def name_of(comparison: Comparison, shift: Shift) -> str:
    """The stem of the files of one stream."""
    own = shift.severity or slug(shift.name.rpartition("/")[2])
    level = f"-{own}" if len(streams(comparison)) > 1 else ""
    return f"{stem(comparison)}-over-time{level}"


def caption(comparison: Comparison, shift: Shift) -> str:
    """What the figure shows."""
    windows = _windows(comparison, shift)
    size = quantity(max(window.images for window in windows), "image")
    resets = any(json.loads(entry.variant.settings).get("reset_every") for entry in comparison.combined)
    unbroken = "" if resets else ", without a reset"
    text = f"Accuracy of ensembles in windows of {size}, in the order of their arrival{unbroken}."
    if any(decisions(entry, shift) for entry in comparison.combined):
        text += " Triangles on the axis: decisions, listed below."
    if len({window.severity for window in windows}) > 1:
        return f"{text} Thin lines: the next corruption begins. Below: its severity."
    return f"{text} Thin lines: the next corruption begins, at severity {windows[0].severity or 0:g}."


def windows_table(comparison: Comparison, shift: Shift) -> ReportTable:
    """The numbers of the figure."""
    entries = comparison.combined
    scores = [scores_over_time(entry, shift) for entry in entries]
    lines = tuple(
        Line(
            f"{window.first + 1}–{window.first + window.images}: {window.name}",
            tuple(cell_of(SCORES[SCORE], own.get(window, np.nan)) for own in scores),
            block=window.corruption,
        )
        for window in _windows(comparison, shift)
    )
    columns = tuple(Column(entry.label, method=entry.method) for entry in entries)
    level = f" at severity {shift.severity}" if shift.severity else ""
    what = f"{SCORES[SCORE].label} of ensembles over time; {SCORES[SCORE].direction}"
    heading = f"{comparison.name}{level}: {what}"
    return ReportTable(name_of(comparison, shift), heading, "Images", columns, lines)


def over_time(comparison: Comparison, shift: Shift) -> "Figure":
    """Accuracy against images seen, a line for each row; where severities vary they are drawn below."""
    entries = [entry for entry in comparison.combined if scores_over_time(entry, shift)]
    windows = _windows(comparison, shift)
    varied = len({window.severity for window in windows}) > 1
    figure = new_figure(figsize=(9, 5.2 if varied else 4.6))
    above, *below = np.atleast_1d(
        figure.subplots(2 if varied else 1, sharex=True, height_ratios=(6, 1) if varied else None)
    )
    _draw_lines(above, entries, shift)
    above.set_ylabel(f"{SCORES[SCORE].axis}, {SCORES[SCORE].direction}")
    plain(above, "y")
    for axes in below:
        ends = [windows[0].first, *(window.first + window.images for window in windows)]
        axes.stairs([window.severity or 0 for window in windows], ends, fill=True, color=INK, alpha=0.35)
        axes.set(ylabel="severity", ylim=(0, 5), yticks=(1, 3, 5))
        plain(axes, "y")
    mark_decisions(above, entries, shift)
    begins = [(next(group).first, name) for name, group in groupby(windows, key=lambda window: window.corruption)]
    for first, corruption in begins:
        _mark_begin([above, *below], first, corruption, crowded=len(begins) > SLANTED)
    last = (below or [above])[-1]
    last.set_xlim(0, windows[-1].first + windows[-1].images)
    last.set_xlabel("images seen")
    last.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    methods = [entry.method for entry in entries]
    add_legend(figure, methods, loc="outside lower center", ncols=legend_columns(len(entries), most=5), fontsize=9)
    return figure


def _draw_lines(axes: "Axes", entries: Sequence[Entry], shift: Shift) -> None:
    for entry, repeats in zip(entries, count_repeats([entry.method for entry in entries]), strict=True):
        scores = scores_over_time(entry, shift)
        places, values = [window.middle for window in scores], [SCORES[SCORE].shown(score) for score in scores.values()]
        look = {"repeats": repeats, "markersize": 3.5 if len(scores) <= MARKED else 0}
        draw_line(axes, places, values, entry.label, entry.method, **look)


def _mark_begin(panels: Sequence["Axes"], first: int, corruption: str, *, crowded: bool) -> None:
    """A thin line where a corruption begins, and its name above."""
    for axes in panels if first else ():
        axes.axvline(first, color=INK, alpha=0.35, linewidth=0.7)
    panels[0].annotate(
        corruption,
        (first, 1),
        xycoords=("data", "axes fraction"),
        xytext=(1, 4) if crowded else (4, 4),
        textcoords="offset points",
        rotation=90 if crowded else 38,
        rotation_mode="anchor",
        verticalalignment="top" if crowded else "baseline",
        fontsize=6.5 if crowded else 8.5,
        color=INK,
    )


def _windows(comparison: Comparison, shift: Shift) -> list[Window]:
    """The windows of a stream, of whichever row has them."""
    return sorted({window for entry in comparison.entries for window in scores_over_time(entry, shift)})
