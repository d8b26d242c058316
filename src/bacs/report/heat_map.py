"""The heat map of a grid of settings."""

from textwrap import fill
from typing import TYPE_CHECKING

import numpy as np

from bacs.benchmark.tune import Plane
from bacs.metrics import Score
from bacs.report.comparison import spelt
from bacs.report.figures import new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LONG = 10
"""Letters from which on the names below the columns have to stand at an angle."""
LINE = 64
"""Letters of a heading that the narrowest figure has room for."""


def heat_map(plane: Plane, score: Score, *, heading: str) -> "Figure":
    """Scores as colours and figures, brighter is better; a frame marks the best, grey what failed."""
    scores, columns, rows = plane.scores, list(map(spelt, plane.columns[1])), list(map(spelt, plane.rows[1]))
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
