"""The heat map of a grid of settings."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from bacs.metrics import Score
from bacs.report.figures import new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def heat_map(
    scores: np.ndarray,
    columns: Sequence[float],
    rows: Sequence[float],
    *,
    heading: str,
    score: Score,
    labels: tuple[str, str] = ("learning rate", "posterior weight"),
) -> "Figure":
    """Scores [rows, columns] as colours and figures, brighter is better; a frame marks the best, grey what failed."""
    figure = new_figure(figsize=(2.2 + 1.0 * len(columns), 1.6 + 0.6 * len(rows)))
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
    axes.set(xlabel=labels[0], title=heading)
    axes.set_xticks(range(len(columns)), [f"{value:g}" for value in columns])
    if np.isnan(rows[0]):
        axes.set_yticks([])
    else:
        axes.set_yticks(range(len(rows)), [f"{value:g}" for value in rows])
        axes.set_ylabel(labels[1])
    return figure


def _frame(column: float, row: float):
    from matplotlib.patches import Rectangle

    return Rectangle((column - 0.48, row - 0.48), 0.96, 0.96, fill=False, edgecolor="#d55e00", linewidth=3)
