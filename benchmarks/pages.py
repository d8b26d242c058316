"""Puts tables that were made from records between their two marks in a page."""

from pathlib import Path

ROOT = Path(__file__).parents[1]


def with_table(text: str, title: str, lines: list[str]) -> str:
    """The text with new lines between `<!-- table: title -->` and the next `<!-- end -->`."""
    start, end = f"<!-- table: {title} -->\n", "<!-- end -->"
    before, found, rest = text.partition(start)
    if not found:
        raise SystemExit(f"the page has no mark {start.strip()!r}")
    return before + start + "\n".join([*lines, end]) + rest.partition(end)[2]


def write_table(page: str, title: str, lines: list[str]) -> None:
    """Makes one table of a page anew; the page is named from the root, such as docs/adapt.md."""
    file = ROOT / page
    file.write_text(with_table(file.read_text(), title, lines))
