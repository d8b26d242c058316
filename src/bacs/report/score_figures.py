"""Figures of scores: boxes by severity, accuracy against NLL."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from bacs.metrics import SCORES
from bacs.report import figure_style as style
from bacs.report.comparison import Comparison, Entry
from bacs.report.corruption_tables import severity_scores

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

HATCHES = ("", "////", "....", "xxxx")


def severity_boxes(comparison: Comparison, kind: str) -> "Figure":
    """The spread of each score over corruptions, by severity: box 25-75 %, line at the median, white dot at the mean.

    Whiskers reach the minimum and the maximum, so that no corruption is hidden as an outlier.
    """
    entries = comparison.of_kind(kind)
    severities = comparison.severities
    figure = style.new_figure(figsize=(9, 10))
    panels = figure.subplots(len(SCORES), 1, sharex=True)
    width = 0.84 / len(entries)
    for axes, (name, score) in zip(panels, SCORES.items(), strict=True):
        for index, (entry, hatch) in enumerate(zip(entries, _hatches(entries), strict=True)):
            values = [
                [style.axis_value(score, v) for v in severity_scores(comparison, entry, severity, name)]
                for severity in severities
            ]
            finite = [[v for v in column if np.isfinite(v)] for column in values]
            places = np.arange(len(severities)) + (index - (len(entries) - 1) / 2) * width
            _boxes(axes, finite, places, 0.8 * width, entry.method, hatch)
        axes.set_ylabel(f"{score.axis} {score.arrow}")
        style.plain(axes, "y")
    panels[-1].set_xticks(np.arange(len(severities)), [str(severity) for severity in severities])
    panels[-1].set_xlim(-0.55, len(severities) - 0.45)
    panels[-1].set_xlabel("severity")
    _legend_above(figure, entries)
    return figure


def accuracy_against_nll(comparison: Comparison) -> "Figure":
    """One point per row, filled for ensembles; on the right without the rows that no adaptation leaves far behind."""
    figure = style.new_figure(figsize=(9, 4.4))
    adapting = [entry for entry in comparison.entries if entry.method != "vanilla"]
    views = [("all rows", comparison.entries), ("without vanilla", adapting)]
    if len(adapting) in (0, len(comparison.entries)):
        views = views[:1]
    panels = figure.subplots(1, len(views), squeeze=False)[0]
    across, up = ((name, SCORES[name]) for name in ("accuracy", "nll"))
    for axes, (title, entries) in zip(panels, views, strict=True):
        for entry, hatch in zip(entries, _hatches(entries), strict=True):
            point = axes.plot(
                *(style.axis_value(score, entry.mean(comparison.common, name)) for name, score in (across, up)),
                **style.mark(entry.method, entry.kind, size=5.5 if hatch else 8, edge=1.6),
                label=style.text_of(entry.label),
            )
            style.assign(point, entry.method)
        beside = [f"{score.axis}, {score.direction}" for _, score in (across, up)]
        axes.set(xlabel=beside[0], ylabel=beside[1], title=title)
        axes.margins(0.12)
        style.plain(axes)
    handles, _ = panels[0].get_legend_handles_labels()
    methods = [entry.method for entry in comparison.entries]
    style.add_legend(figure, methods, handles=handles, loc="outside right center", fontsize=8.5)
    return figure


def _boxes(
    axes: "Axes", values: Sequence[Sequence[float]], places: np.ndarray, width: float, method: str, hatch: str
) -> None:
    line = {"color": style.INK, "linewidth": 0.8}
    drawn = axes.boxplot(
        values,
        positions=places,
        widths=width,
        whis=(0, 100),
        showfliers=False,
        showmeans=True,
        patch_artist=True,
        manage_ticks=False,
        medianprops=line | {"linewidth": 1.3},
        whiskerprops=line,
        capprops=line,
        boxprops={"facecolor": style.colour(method), "edgecolor": style.INK, "linewidth": 0.8},
        meanprops={"marker": "o", "markerfacecolor": "white", "markeredgecolor": style.INK, "markersize": 4},
    )
    for box in drawn["boxes"]:
        box.set_hatch(hatch)
    for artists in drawn.values():
        style.assign(artists, method)


def _hatches(entries: Sequence[Entry]) -> list[str]:
    """No hatching for the first row of a method and kind, one for each further."""
    return [HATCHES[count % len(HATCHES)] for count in style.count_repeats([(e.method, e.kind) for e in entries])]


def _legend_above(figure: "Figure", entries: Sequence[Entry]) -> None:
    from matplotlib.patches import Patch

    handles = [
        Patch(
            facecolor=style.colour(entry.method),
            hatch=hatch,
            edgecolor="white",
            linewidth=0,
            label=style.text_of(entry.label),
        )
        for entry, hatch in zip(entries, _hatches(entries), strict=True)
    ]
    columns = style.legend_columns(len(entries), most=4)
    methods = [entry.method for entry in entries]
    style.add_legend(figure, methods, handles=handles, loc="outside upper center", ncols=columns, fontsize=9)
