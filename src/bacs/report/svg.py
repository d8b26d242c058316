"""Figures as files: SVG that takes on light or dark, PNG on white."""

import io
import re
from typing import TYPE_CHECKING

from bacs.report.figures import INK, OF_METHOD

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_DARK_INK = "#e7e4dd"
_THEME = f"<style>svg{{color:{INK}}}@media(prefers-color-scheme:dark){{svg{{color:{_DARK_INK}}}}}</style>"


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
    return f'{head}<title id="{name}-title">{_escaped(description)}</title>{text[opening.end() :]}'


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


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
