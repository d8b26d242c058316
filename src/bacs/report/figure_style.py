"""How figures look, and how they become files: SVG that takes on light or dark, PNG on white.

They are drawn with matplotlib (`pip install bacs[report]`).
"""

import html
import io
import math
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal

from bacs.errors import RunError
from bacs.metrics import Score

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = {
    "vanilla": "#7f7f7f",
    "bn": "#0072b2",
    "tent": "#e69f00",
    "bacs": "#009e73",
    "bacs-no-posterior": "#cc79a7",
    "auto": "#56b4e9",
}
"""One colour for each method in every figure, from a palette that colour-blind readers can tell apart."""
OTHER_COLOUR = "#d55e00"
MARKERS = {"vanilla": "o", "bn": "s", "tent": "^", "bacs": "D", "bacs-no-posterior": "v", "auto": "P"}
INK = "#1b1b1a"
"""Text, axes and rules. In SVG it becomes the colour of the text around the figure."""
DASHES = ("-", "--", ":", "-.")
OF_METHOD = "method-"
"""Begins the id of what is of one method in a figure: in SVG it becomes an attribute, by which the page hides it."""
_DARK_INK = "#e7e4dd"
_THEME = f"<style>svg{{color:{INK}}}@media(prefers-color-scheme:dark){{svg{{color:{_DARK_INK}}}}}</style>"


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


def count_repeats(keys: Sequence[Any]) -> list[int]:
    """How many of those before it are like each: further rows of a method look different.

    >>> count_repeats(["bn", "bacs", "bn", "bn"])
    [0, 0, 1, 2]
    """
    return [list(keys[:place]).count(key) for place, key in enumerate(keys)]


def draw_line(
    axes: "Axes", x: Sequence[float], y: Sequence[float], label: str, method: str, *, repeats: int, markersize: float
) -> None:
    """The line of a row, coloured by its method; those of further rows of a method are dashed."""
    look = {"marker": MARKERS.get(method, "o"), "markersize": markersize, "linestyle": DASHES[repeats % len(DASHES)]}
    assign(axes.plot(x, y, linewidth=1.4, color=colour(method), label=text_of(label), **look), method)


def add_legend(holder: "Axes | Figure", methods: Sequence[str | None], **options: Any) -> None:
    """A legend without a frame, whose entries are of these methods, None for what is of no one."""
    legend = holder.legend(frameon=False, labelcolor=INK, **options)
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


def mark(method: str, kind: str, *, size: float, edge: float) -> dict[str, Any]:
    """How a point of a row looks: filled for ensembles, hollow for single models."""
    return {
        "marker": MARKERS.get(method, "o"),
        "markersize": size,
        "markerfacecolor": colour(method) if kind == "ensemble" else "none",
        "markeredgecolor": colour(method),
        "markeredgewidth": edge,
        "linestyle": "",
    }


def axis_value(score: Score, value: float) -> float:
    """The number that is drawn for a score; an infinite one has no place on an axis."""
    return score.shown(value) if math.isfinite(value) else math.nan


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


def inline_svg(figure: "Figure", name: str, description: str) -> str:
    """An `<svg>` element for a page: no background, ink in the colour of the text around it, ids of its own.

    What was assigned to a method has its name as `data-method`, which unlike an id may occur more than once.
    The same figure gives the same text: no date, no random ids.
    """
    import matplotlib

    out = io.StringIO()
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": name}):
        figure.savefig(out, format="svg", transparent=True, metadata={"Date": None})
    text = out.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
    text = text.replace(INK, "currentColor")
    text = re.sub(rf'\bid="{OF_METHOD}([^"]*)"', r'data-method="\1"', text)
    text = re.sub(r'\bid="', f'id="{name}-', text)
    text = re.sub(r'href="#', f'href="#{name}-', text)
    text = re.sub(r"url\(#", f"url(#{name}-", text)
    opening = re.match(r"<svg[^>]*>", text)
    assert opening is not None
    # Without a width of its own the picture takes that of its box; the view box keeps its proportions.
    head = re.sub(r'\s(width|height)="[^"]*"', "", opening[0])
    head = head[:-1] + f' role="img" aria-labelledby="{name}-title">'
    return f'{head}<title id="{name}-title">{html.escape(description, quote=False)}</title>{text[opening.end() :]}'


def svg_file(inline: str, size: tuple[float, float]) -> bytes:
    """An inline picture as a file of its own, `size` in inches, whose ink follows the reader's light or dark."""
    opening = inline.index(">") + 1
    head = inline[: opening - 1] + f' width="{72 * size[0]:g}pt" height="{72 * size[1]:g}pt">'
    return f'<?xml version="1.0" encoding="utf-8"?>\n{head}{_THEME}{inline[opening:]}'.encode()


def png_file(figure: "Figure") -> bytes:
    """The figure on white."""
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=160, facecolor="white", metadata={"Software": None})
    return out.getvalue()
