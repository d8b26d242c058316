"""Figures of gains: how far rows are from BN Adapt, on a scale that tells those that adapt apart.

On an axis that begins at 0, or that reaches as far as the unadapted model, all of them look the same.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bacs.methods.catalogue import label_of
from bacs.metrics import SCORES, Score
from bacs.report import figure_style as style
from bacs.report.comparison import Comparison, Entry
from bacs.report.gains import baseline, gains, shifts_by_corruption, without_baseline
from bacs.report.names import of_corruption

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH = 4.6
"""Inches: half a page, and all of a telephone."""
SIZE, EDGE = 5, 1.3
"""Of marks, in points."""
HOW_TO_READ = (
    "The shaded side is the better one. Vanilla does not set the scale; arrows at the edge point to what is beyond it."
)


def gains_plot(comparison: Comparison, name: str) -> "Figure":
    """A line for each row: the mean difference to BN Adapt of its kind, and its interval."""
    blocks = [gains(comparison, kind, name) for kind in comparison.kinds]
    shown = [gain for block in blocks for gain in block]
    figure = style.new_figure(figsize=(WIDTH, 1.1 + 0.28 * (len(shown) + len(blocks) - 1)))
    axes = figure.add_subplot()
    ends = {gain.entry.label: [style.axis_value(SCORES[name], end) for end in gain[1:]] for gain in shown}
    scale = _scale([gain.entry for gain in shown], ends)
    _prepare(axes, comparison, SCORES[name], _with_room(scale, [mean for mean, _, _ in ends.values()]))
    places: list[int] = []
    for block in blocks:
        first = places[-1] + 2 if places else 0  # a line is left free between kinds
        places += range(first, first + len(block))
    for gain, place in zip(shown, places, strict=True):
        _draw_gain(axes, gain.entry, ends[gain.entry.label], place, SCORES[name])
    axes.set_yticks(places, [style.text_of(gain.entry.label) for gain in shown])
    axes.set_ylim(places[-1] + 0.6, -0.6)
    style.plain(axes)
    axes.tick_params(axis="y", length=0)
    for label, gain in zip(axes.get_yticklabels(), shown, strict=True):
        style.assign([label], gain.entry.method)
    return figure


def corruption_plot(comparison: Comparison, kind: str, name: str) -> "Figure":
    """A point for each row and corruption: its difference to BN Adapt, whose own score stands at the right."""
    entries, score, groups = without_baseline(comparison.of_kind(kind)), SCORES[name], shifts_by_corruption(comparison)
    base = baseline(comparison.of_kind(kind))
    differences = {
        entry.label: [
            style.axis_value(score, entry.mean(shifts, name) - base.mean(shifts, name)) for shifts in groups.values()
        ]
        for entry in entries
    }
    columns = style.legend_columns(len(entries), most=2)
    figure = style.new_figure(figsize=(WIDTH, 1.0 + 0.3 * len(groups) + 0.18 * -(-len(entries) // columns)))
    axes = figure.add_subplot()
    _prepare(axes, comparison, score, _scale(entries, differences))
    methods = [entry.method for entry in entries]
    for index, (entry, repeats) in enumerate(zip(entries, style.count_repeats(methods), strict=True)):
        places = np.arange(len(groups)) + 0.7 * ((index + 0.5) / len(entries) - 0.5)
        look = style.mark(entry.method, entry.kind, size=SIZE * 0.65**repeats, edge=EDGE)
        _draw_points(axes, entry, np.array(differences[entry.label]), places, look)
    axes.set_yticks(range(len(groups)), [style.text_of(of_corruption(group)) for group in groups])
    axes.set_ylim(len(groups) - 0.5, -0.5)
    style.plain(axes)
    axes.grid(visible=False, axis="y")
    axes.tick_params(axis="y", length=0)
    for place in range(1, len(groups)):
        axes.axhline(place - 0.5, color=style.INK, alpha=0.14, linewidth=0.6)
    _write_baseline(axes, base, [base.mean(shifts, name) for shifts in groups.values()], score)
    style.add_legend(figure, methods, loc="outside upper center", ncols=columns, fontsize=8.5, handletextpad=0.3)
    return figure


def _draw_gain(axes: "Axes", entry: Entry, ends: Sequence[float], place: int, score: Score) -> None:
    """The interval and its middle, or where that lies beyond the scale an arrow to it and the number."""
    (mean, low, high), (least, most) = ends, axes.get_xlim()
    drawn: list[Artist] = []
    if least <= mean <= most:
        drawn += axes.plot([low, high], [place, place], color=style.colour(entry.method), linewidth=1.6)
        drawn += axes.plot(mean, place, **style.mark(entry.method, entry.kind, size=SIZE, edge=EDGE))
    elif np.isfinite(mean):
        below = mean < least
        number = f"{mean:+.{score.digits}f}".replace("-", "−")
        drawn.append(
            axes.annotate(
                f" ◂ {number}" if below else f"{number} ▸ ",
                (least if below else most, place),
                ha="left" if below else "right",
                va="center",
                fontsize=8.5,
                color=style.INK,
            )
        )
    style.assign(drawn, entry.method)


def _draw_points(axes: "Axes", entry: Entry, values: np.ndarray, places: np.ndarray, look: dict[str, Any]) -> None:
    """A point for each value; an arrow at the edge for those beyond the scale."""
    least, most = axes.get_xlim()
    within = np.where((least <= values) & (values <= most), values, np.nan)
    drawn = axes.plot(within, places, label=style.text_of(entry.label), **look)
    for beyond, edge, arrow in ((values < least, least, "<"), (values > most, most, ">")):
        there = np.flatnonzero(beyond)
        pointing = look | {"marker": arrow, "markersize": 4, "clip_on": False}
        drawn += axes.plot(np.full(len(there), edge), places[there], **pointing)
    style.assign(drawn, entry.method)


def _prepare(axes: "Axes", comparison: Comparison, score: Score, scale: tuple[float, float]) -> None:
    """The axis, the line at BN Adapt, and the side on which a row is better."""
    axes.set_xlim(*scale)
    axes.axvline(0, color=style.INK, linewidth=0.9)
    better = (0, scale[1]) if score.higher_is_better else (scale[0], 0)
    axes.axvspan(*better, color=style.INK, alpha=0.06, linewidth=0)
    unit = "in points, " if score.percent else ""
    way = f"{unit}better →" if score.higher_is_better else f"← {unit}better"
    axes.set_xlabel(f"{score.label} minus {label_of(baseline(comparison.entries).method, 'single')}\n{way}")
    axes.locator_params(axis="x", nbins=5)


def _write_baseline(axes: "Axes", base: Entry, values: Sequence[float], score: Score) -> None:
    """The baseline's own scores in a column at the right."""
    beside = {"transform": axes.get_yaxis_transform(), "fontsize": 8, "color": style.INK}
    texts = [axes.text(1.03, -0.55, label_of(base.method, "single"), ha="left", va="bottom", **beside)]
    for place, value in enumerate(values):
        texts.append(axes.text(1.03, place, score.text(value), ha="left", va="center", **beside))
    style.assign(texts, base.method)


def _scale(entries: Sequence[Entry], numbers: Mapping[str, Sequence[float]]) -> tuple[float, float]:
    """The ends of an axis that has 0 on it and the numbers of all rows that adapt, by label, with a margin."""
    adapting = [entry for entry in entries if entry.method != "vanilla"] or entries
    known = [0.0, *(number for entry in adapting for number in numbers[entry.label] if np.isfinite(number))]
    margin = 0.07 * (max(known) - min(known)) or 1.0
    return min(known) - margin, max(known) + margin


def _with_room(scale: tuple[float, float], means: Sequence[float]) -> tuple[float, float]:
    """The scale with room for numbers at each edge beyond which there are some."""
    room = 0.3 * (scale[1] - scale[0])
    return (
        scale[0] - room * any(mean < scale[0] for mean in means),
        scale[1] + room * any(mean > scale[1] for mean in means),
    )
