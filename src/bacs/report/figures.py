"""Figures of calibration, abstention and example pictures, drawn with matplotlib (`pip install bacs[report]`)."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from bacs.errors import RunError

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.legend import Legend

COLOURS = {
    "vanilla": "#7f7f7f",
    "bn": "#0072b2",
    "tent": "#e69f00",
    "bacs": "#009e73",
    "bacs-no-posterior": "#cc79a7",
    "auto": "#56b4e9",
}
"""One colour a method in every figure, from a palette that colour-blind readers can tell apart."""
OTHER_COLOUR = "#d55e00"
MARKERS = {"vanilla": "o", "bn": "s", "tent": "^", "bacs": "D", "bacs-no-posterior": "v", "auto": "P"}
INK = "#1b1b1a"
"""Text, axes and rules. In SVG it becomes the colour of the text around the figure."""
DASHES = ("-", "--", ":", "-.")
OF_METHOD = "method-"
"""Begins the id of what is of one method in a figure: in SVG it becomes an attribute, by which the page hides it."""


def new_figure(**options: Any) -> "Figure":
    """A figure that needs no screen and touches no global state of pyplot."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise RunError("figures need matplotlib: pip install 'bacs[report]'") from error
    return Figure(layout="constrained", **options)


def colour(method: str) -> str:
    return COLOURS.get(method, OTHER_COLOUR)


def assign(artists: Iterable["Artist"], method: str) -> None:
    """Says that these parts of a figure are of one method."""
    for artist in artists:
        artist.set_gid(f"{OF_METHOD}{method}")


def assign_legend(legend: "Legend", methods: Sequence[str | None]) -> None:
    """Says of each entry of a legend which method it is of, None if of no one."""
    for handle, text, method in zip(legend.legend_handles, legend.get_texts(), methods, strict=True):
        if handle is not None and method is not None:
            assign((handle, text), method)


def legend_columns(entries: int, most: int) -> int:
    """The columns of a legend, `most` at most, such that no entry stands alone in the last row.

    >>> [legend_columns(entries, most=4) for entries in (1, 4, 5, 6, 9)]
    [1, 4, 3, 3, 3]
    """
    rows = -(-entries // most)
    balanced = -(-entries // rows)
    return next(columns for columns in range(balanced, 0, -1) if columns == 1 or entries % columns != 1)


def text_of(label: str) -> str:
    """A label as it is: a dollar sign would begin a formula, a leading underscore would hide it."""
    return label.replace("$", r"\$").lstrip("_")


def plain(axes: "Axes", grid: Literal["both", "y"] = "both") -> None:
    """Two spines, a faint grid behind the data, everything in one ink."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(INK)
    axes.tick_params(colors=INK, labelcolor=INK, labelsize=9)
    axes.set_axisbelow(True)
    axes.grid(axis=grid, color=INK, alpha=0.14, linewidth=0.6)
    for text in (axes.title, axes.xaxis.label, axes.yaxis.label):
        text.set_color(INK)
        text.set_fontsize(10)


def reliability_diagram(curves: Mapping[str, Mapping[str, Sequence[float]]], methods: Mapping[str, str]) -> "Figure":
    """Accuracy against confidence in bins of equal count, one line per row; the diagonal is perfect honesty.

    `curves`: label of a row -> {"confidence": [...], "accuracy": [...]}; `methods`: label -> the row's method.
    """
    figure = new_figure(figsize=(4.6, 4.8))
    axes = figure.add_subplot()
    axes.plot([0, 1], [0, 1], color=INK, linewidth=0.8, linestyle=":", label="perfectly honest")
    _lines(axes, curves, ("confidence", "accuracy"), methods, markersize=3.5)
    axes.set(xlabel="confidence", ylabel="accuracy", xlim=(0, 1.02), ylim=(0, 1.02), title="Reliability of ensembles")
    return figure


def risk_coverage_plot(curves: Mapping[str, Mapping[str, Sequence[float]]], methods: Mapping[str, str]) -> "Figure":
    """Error among the most confident share of predictions, one line per row; lower is better.

    `curves`: label of a row -> {"coverage": [...], "risk": [...]}; `methods`: label -> the row's method.
    """
    figure = new_figure(figsize=(4.6, 4.8))
    axes = figure.add_subplot()
    _lines(axes, curves, ("coverage", "risk"), methods, markersize=0)
    axes.set(
        xlabel="share of images answered, most confident first",
        ylabel="error among them",
        xlim=(0, 1),
        title="What abstaining buys",
    )
    axes.set_ylim(bottom=0)
    return figure


def _lines(
    axes: "Axes",
    curves: Mapping[str, Mapping[str, Sequence[float]]],
    keys: tuple[str, str],
    methods: Mapping[str, str],
    *,
    markersize: float,
) -> None:
    """One line per row, coloured by method; further rows of a method are dashed."""
    seen: dict[str, int] = {}
    for label, curve in curves.items():
        method = methods[label]
        number = seen[method] = seen.get(method, -1) + 1
        drawn = axes.plot(
            curve[keys[0]],
            curve[keys[1]],
            marker=MARKERS.get(method, "o"),
            markersize=markersize,
            linewidth=1.4,
            linestyle=DASHES[number % len(DASHES)],
            color=colour(method),
            label=text_of(label),
        )
        assign(drawn, method)
    plain(axes)
    legend = axes.legend(frameon=False, loc="upper left", fontsize=8.5, labelcolor=INK)
    others = len(axes.lines) - len(curves)  # drawn before, of no method
    assign_legend(legend, [*[None] * others, *(methods[label] for label in curves)])


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
