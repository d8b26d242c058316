"""Figures of choices of settings: of a grid that was tuned with labels, of a probe without."""

from textwrap import fill
from typing import TYPE_CHECKING

import numpy as np

from bacs.benchmark.tune import Plane
from bacs.control.choose import Choice
from bacs.metrics import Score
from bacs.report.comparison import setting_text
from bacs.report.figure_style import INK, colour, new_figure, plain

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LONG = 10
"""Letters from which on the names below the columns have to stand at an angle."""
LINE = 64
"""Letters of a heading that the narrowest figure has room for."""


def heat_map(plane: Plane, score: Score, *, heading: str) -> "Figure":
    """Scores as colours and figures, brighter is better; a frame marks the best, grey what failed."""
    scores = plane.scores
    columns, rows = (list(map(setting_text, values)) for _, values in (plane.columns, plane.rows))
    figure = new_figure(figsize=(max(5.0, 2.2 + len(columns)), 1.8 + 0.6 * len(rows)))
    axes = figure.add_subplot()
    goodness = np.where(np.isfinite(scores), scores if score.higher_is_better else -scores, np.nan)
    axes.set_facecolor("#d9d9d9")  # shows through where there is no colour
    axes.imshow(np.ma.masked_invalid(goodness), cmap="cividis", origin="lower", aspect="auto")
    middle = (np.nanmin(goodness) + np.nanmax(goodness)) / 2
    for (row, column), value in np.ndenumerate(scores):
        text = "failed" if np.isnan(value) else score.text(value)
        dark = not np.isfinite(value) or goodness[row, column] > middle
        axes.text(column, row, text, ha="center", va="center", fontsize=9, color="black" if dark else "white")
    best = np.unravel_index(np.nanargmax(goodness), goodness.shape)
    axes.add_patch(_frame(float(best[1]), float(best[0])))
    figure.suptitle("\n".join(fill(line, LINE) for line in heading.splitlines()), fontsize=9)
    axes.set(xlabel=plane.columns[0].replace("_", " "), ylabel=plane.rows[0].replace("_", " "))
    long = max(map(len, columns)) >= LONG
    angle, end = (20, "right") if long else (0, "center")
    axes.set_xticks(range(len(columns)), columns, rotation=angle, ha=end, rotation_mode="anchor")
    axes.set_yticks(range(len(rows)), rows)
    return figure


def _frame(column: float, row: float):
    from matplotlib.patches import Rectangle

    return Rectangle((column - 0.48, row - 0.48), 0.96, 0.96, fill=False, edgecolor="#d55e00", linewidth=3)


def choice_plot(choice: Choice) -> "Figure":
    """Agreement and score against the share r, with what was chosen; counted classes below them."""
    if not choice.candidates:
        raise ValueError(f"the choice has no candidates to draw: {choice.reasons[0]}")
    figure = new_figure(figsize=(5.2, 4.6))
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=(3, 1.4))
    shares = [row.batch_weight for row in choice.candidates]
    upper.plot(shares, [row.agreement for row in choice.candidates], "o--", color=INK, label="agreement", linewidth=1)
    scores = [row.score for row in choice.candidates]
    upper.plot(shares, scores, "o-", color=colour("auto"), label="score: agreement less collapse", linewidth=1.6)
    for axes in (upper, lower):
        axes.axvline(choice.batch_weight, color=colour("auto"), alpha=0.35, linewidth=6, zorder=0)
    upper.set_ylabel("share of images")
    upper.set_title(f"chosen: r = {choice.batch_weight:g}" + (", and weights" if choice.adapts else ""))
    upper.legend(frameon=False, fontsize=8.5, labelcolor=INK)
    lower.plot(shares, [row.counted_classes for row in choice.candidates], "s-", color=colour("bn"), linewidth=1.2)
    lower.set_ylim(bottom=0)
    lower.set(xlabel="share r of batch statistics", ylabel="counted classes")
    for axes in (upper, lower):
        plain(axes)
    return figure
