"""Figures of calibration, abstention and example pictures, drawn with matplotlib (`pip install bacs[report]`)."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bacs.errors import RunError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLOURS = {
    "vanilla": "#7f7f7f",
    "bn": "#0072b2",
    "tent": "#e69f00",
    "bacs": "#009e73",
    "bacs-no-posterior": "#cc79a7",
}
"""One colour a method in every figure, from a palette that colour-blind readers can tell apart."""


def new_figure(**options: Any) -> "Figure":
    """A figure that needs no screen and touches no global state of pyplot."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise RunError("figures need matplotlib: pip install 'bacs[report]'") from error
    return Figure(layout="constrained", **options)


def reliability_diagram(curves: Mapping[str, Mapping[str, Sequence[float]]], labels: Mapping[str, str]) -> "Figure":
    """Accuracy against confidence in bins of equal count, one line a method; the diagonal is perfect honesty.

    `curves`: method -> {"confidence": [...], "accuracy": [...]}.
    """
    figure = new_figure(figsize=(5, 4.6))
    axes = figure.add_subplot()
    axes.plot([0, 1], [0, 1], color="black", linewidth=0.8, linestyle=":", label="perfectly honest")
    for method, curve in curves.items():
        axes.plot(
            curve["confidence"],
            curve["accuracy"],
            marker="o",
            markersize=3.5,
            linewidth=1.4,
            color=COLOURS.get(method),
            label=labels.get(method, method),
        )
    axes.set(xlabel="confidence", ylabel="accuracy", xlim=(0, 1.02), ylim=(0, 1.02), title="Reliability of ensembles")
    axes.grid(alpha=0.25)
    axes.legend(frameon=False, loc="upper left", fontsize=9)
    return figure


def risk_coverage_plot(curves: Mapping[str, Mapping[str, Sequence[float]]], labels: Mapping[str, str]) -> "Figure":
    """Error among the most confident share of predictions, one line a method; lower is better.

    `curves`: method -> {"coverage": [...], "risk": [...]}.
    """
    figure = new_figure(figsize=(5, 4.6))
    axes = figure.add_subplot()
    for method, curve in curves.items():
        axes.plot(
            curve["coverage"], curve["risk"], linewidth=1.6, color=COLOURS.get(method), label=labels.get(method, method)
        )
    axes.set(
        xlabel="share of images answered, most confident first",
        ylabel="error among them",
        xlim=(0, 1),
        title="What abstaining buys",
    )
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.25)
    axes.legend(frameon=False, loc="upper left", fontsize=9)
    return figure


def picture_strip(rows: Mapping[str, np.ndarray], captions: Sequence[Sequence[str]], right: np.ndarray) -> "Figure":
    """Example pictures, one row a shift, each with the caption below it, green where it is right.

    `rows`: shift -> uint8 [pictures, height, width, channels]; `captions` and `right` are by row and picture.
    """
    count = len(next(iter(rows.values())))
    figure = new_figure(figsize=(1.25 * count, 1.55 * len(rows)))
    grid = figure.subplots(len(rows), count, squeeze=False)
    for i, (name, pictures) in enumerate(rows.items()):
        for j, picture in enumerate(pictures):
            axes = grid[i][j]
            axes.imshow(picture.squeeze(), cmap="gray", vmin=0, vmax=255, interpolation="nearest")
            axes.set(xticks=[], yticks=[])
            for spine in axes.spines.values():
                spine.set_visible(False)
            axes.set_xlabel(captions[i][j], fontsize=8, color="#00704f" if right[i][j] else "#b3261e", labelpad=2)
        grid[i][0].set_ylabel(name.replace("_", " "), fontsize=8)
    return figure
