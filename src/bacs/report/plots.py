"""Figures of scores: bars by corruption, boxes by severity, accuracy against NLL."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from bacs.metrics import SCORES, Score
from bacs.report.breakdown import BY_CORRUPTION, severity_scores
from bacs.report.comparison import Comparison, Entry
from bacs.report.figures import INK, MARKERS, colour, new_figure, plain
from bacs.report.names import of_corruption

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

HATCHES = ("", "////", "....", "xxxx")


def corruption_bars(comparison: Comparison, kind: str) -> "Figure":
    """Accuracy and NLL of every corruption that all rows have, a bar a row, mean over severities."""
    entries = comparison.of_kind(kind)
    corruptions = comparison.corruptions
    figure = new_figure(figsize=(9, 6))
    panels = figure.subplots(len(BY_CORRUPTION), 1, sharex=True)
    width = 0.84 / len(entries)
    for axes, name in zip(panels, BY_CORRUPTION, strict=True):
        for index, (entry, hatch) in enumerate(zip(entries, _hatches(entries), strict=True)):
            heights = [
                _shown(SCORES[name], entry.mean([s for s in comparison.common if s.corruption == corruption], name))
                for corruption in corruptions
            ]
            places = np.arange(len(corruptions)) + (index - (len(entries) - 1) / 2) * width
            axes.bar(
                places,
                heights,
                width,
                color=colour(entry.method),
                hatch=hatch,
                edgecolor="white",
                linewidth=0,
            )
        axes.set_ylabel(SCORES[name].axis)
        plain(axes, "y")
        axes.tick_params(axis="x", length=0)
    names = [of_corruption(corruption) for corruption in corruptions]
    panels[-1].set_xticks(np.arange(len(names)), names, rotation=38, ha="right", rotation_mode="anchor")
    panels[-1].set_xlim(-0.6, len(names) - 0.4)
    _legend_above(figure, entries)
    return figure


def severity_boxes(comparison: Comparison, kind: str) -> "Figure":
    """The spread of each score over corruptions, by severity: box 25-75 %, line at the median, white dot at the mean.

    Whiskers reach the minimum and the maximum, so that no corruption is hidden as an outlier.
    """
    entries = comparison.of_kind(kind)
    severities = comparison.severities
    figure = new_figure(figsize=(9, 10))
    panels = figure.subplots(len(SCORES), 1, sharex=True)
    width = 0.84 / len(entries)
    for axes, (name, score) in zip(panels, SCORES.items(), strict=True):
        for index, (entry, hatch) in enumerate(zip(entries, _hatches(entries), strict=True)):
            values = [
                [_shown(score, v) for v in severity_scores(comparison, entry, severity, name)]
                for severity in severities
            ]
            finite = [[v for v in column if np.isfinite(v)] for column in values]
            places = np.arange(len(severities)) + (index - (len(entries) - 1) / 2) * width
            _boxes(axes, finite, places, 0.8 * width, colour(entry.method), hatch)
        axes.set_ylabel(f"{score.axis} {score.arrow}")
        plain(axes, "y")
    panels[-1].set_xticks(np.arange(len(severities)), [str(severity) for severity in severities])
    panels[-1].set_xlim(-0.55, len(severities) - 0.45)
    panels[-1].set_xlabel("severity")
    _legend_above(figure, entries)
    return figure


def accuracy_against_nll(comparison: Comparison) -> "Figure":
    """One point a row, filled for ensembles; on the right without the rows that no adaptation leaves far behind."""
    figure = new_figure(figsize=(9, 4.4))
    adapting = [entry for entry in comparison.entries if entry.method != "vanilla"]
    views = [("all rows", comparison.entries), ("without vanilla", adapting)]
    if len(adapting) in (0, len(comparison.entries)):
        views = views[:1]
    panels = figure.subplots(1, len(views), squeeze=False)[0]
    across, up = ((name, SCORES[name]) for name in ("accuracy", "nll"))
    for axes, (title, entries) in zip(panels, views, strict=True):
        for entry, hatch in zip(entries, _hatches(entries), strict=True):
            axes.plot(
                *(_shown(score, entry.mean(comparison.common, name)) for name, score in (across, up)),
                marker=MARKERS.get(entry.method, "o"),
                markersize=8 if not hatch else 5.5,
                markerfacecolor=colour(entry.method) if entry.kind == "ensemble" else "none",
                markeredgecolor=colour(entry.method),
                markeredgewidth=1.6,
                linestyle="",
                label=_label(entry),
            )
        beside = [f"{score.axis}, {score.direction}" for _, score in (across, up)]
        axes.set(xlabel=beside[0], ylabel=beside[1], title=title)
        axes.margins(0.12)
        plain(axes)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right center", frameon=False, fontsize=8.5, labelcolor=INK)
    return figure


def _boxes(
    axes: "Axes", values: Sequence[Sequence[float]], places: np.ndarray, width: float, fill: str, hatch: str
) -> None:
    line = {"color": INK, "linewidth": 0.8}
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
        boxprops={"facecolor": fill, "edgecolor": INK, "linewidth": 0.8},
        meanprops={"marker": "o", "markerfacecolor": "white", "markeredgecolor": INK, "markersize": 4},
    )
    for box in drawn["boxes"]:
        box.set_hatch(hatch)


def _hatches(entries: Sequence[Entry]) -> list[str]:
    """No hatching for the first row of a method and kind, one for each further."""
    seen: dict[tuple[str, str], int] = {}
    hatches = []
    for entry in entries:
        key = entry.method, entry.kind
        seen[key] = seen.get(key, -1) + 1
        hatches.append(HATCHES[seen[key] % len(HATCHES)])
    return hatches


def _label(entry: Entry) -> str:
    """The label as it is: a dollar sign would begin a formula, a leading underscore would hide it."""
    return entry.label.replace("$", r"\$").lstrip("_")


def _shown(score: Score, value: float) -> float:
    """The number that is drawn; an infinite NLL has no place on an axis."""
    return score.shown(value) if np.isfinite(value) else float("nan")


def _legend_above(figure: "Figure", entries: Sequence[Entry]) -> None:
    from matplotlib.patches import Patch

    handles = [
        Patch(facecolor=colour(entry.method), hatch=hatch, edgecolor="white", linewidth=0, label=_label(entry))
        for entry, hatch in zip(entries, _hatches(entries), strict=True)
    ]
    figure.legend(
        handles=handles,
        loc="outside upper center",
        ncols=min(len(entries), 4),
        frameon=False,
        fontsize=9,
        labelcolor=INK,
    )
