"""Puts tables that were made from records between their two marks in docs/corruptions.md."""

from pathlib import Path

DOCUMENT = Path(__file__).parent.parent / "docs" / "corruptions.md"


def write_table(title: str, lines: list[str]) -> None:
    """Replaces what stands between `<!-- table: title -->` and `<!-- end -->`."""
    text = DOCUMENT.read_text()
    start = f"<!-- table: {title} -->\n"
    before, found, rest = text.partition(start)
    if not found:
        raise SystemExit(f"{DOCUMENT.name} has no mark {start.strip()!r}")
    after = rest.partition("<!-- end -->")[2]
    DOCUMENT.write_text(before + start + "\n".join(lines) + "\n<!-- end -->" + after)
