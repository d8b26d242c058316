"""One HTML page of all chapters: it needs no network and no server, and runs no code but its own few lines."""

from collections import Counter
from collections.abc import Mapping, Sequence
from importlib.resources import files
from itertools import groupby
from typing import Any, NamedTuple

from bacs.errors import RunError
from bacs.methods.catalogue import METHODS, label_of
from bacs.report.contents import Chapter
from bacs.report.figure_style import colour
from bacs.report.names import quantity
from bacs.report.records import Sweep, images_per_shift
from bacs.report.tables import Column, ReportTable


class Section(NamedTuple):
    """A sweep on the page: its chapters, and their pictures as SVG by name."""

    sweep: Sweep
    name: str
    chapters: Sequence[Chapter]
    drawn: Mapping[str, str]


def page(sections: Sequence[Section]) -> str:
    """The page as text."""
    try:
        from jinja2 import Environment, StrictUndefined
        from markupsafe import Markup
    except ImportError as error:
        raise RunError("the page needs Jinja2: pip install 'bacs[report]'") from error
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    found = {record["method"] for section in sections for record in section.sweep.records}
    # A method alone and as ensemble is one to the filter.
    names = [name for name in METHODS if name in found] + sorted(found - METHODS.keys())
    labels = {name: label_of(name, "single").replace(" (MAP)", "") for name in names}
    titles = [section.sweep.title for section in sections]
    return environment.from_string(_asset("page.html")).render(
        title=titles[0] if len(titles) == 1 else f"Results of {len(titles)} sweeps",
        sections=sections,
        methods=[(name, label, colour(name)) for name, label in labels.items()],
        style=Markup(_asset("page.css")),
        script=Markup(_asset("page.js")),
        svg=lambda section, name: Markup(section.drawn[name]),
        facts=facts,
        header_groups=header_groups,
        blocks=blocks,
    )


def facts(sweep: Sweep) -> list[tuple[str, str]]:
    """What was run, as pairs of a word and its value."""
    records = sweep.records
    images = sorted({images_per_shift(record) for record in records})
    versions = Counter(tuple((record.get("versions") or {}).items()) for record in records)
    seconds = sum((record.get("seconds") or {}).get("total", 0) for record in records)
    found = [
        ("Run", str(sweep.run.get("name", "unnamed"))),
        ("Checksum", str(sweep.run.get("sha256", ""))[:16]),
        ("Members", str(sweep.run.get("members", len(records[0]["members"])))),
        ("Images per shift", "–".join(f"{number:,}" for number in dict.fromkeys((images[0], images[-1])))),
        ("Cells", f"{quantity(len(records), 'record')}, {len(sweep.failed)} failed, {len(sweep.missing)} missing"),
        ("Computing", _duration(seconds)),
        *(("Versions", ", ".join(f"{name} {number}" for name, number in each)) for each in versions if each),
    ]
    return [(word, value) for word, value in found if value]


def header_groups(columns: Sequence[Column]) -> list[tuple[str, int, str | None]]:
    """Headings over several columns: text, span, and the method if all of them are one method's."""
    groups = []
    for group, members in groupby(columns, key=lambda column: (column.group, column.method)):
        groups.append((group[0], len(list(members)), group[1]))
    return groups if any(text for text, _, _ in groups) else []


def blocks(table: ReportTable) -> list[list[Any]]:
    """The lines of a table by block."""
    return [list(lines) for _, lines in groupby(table.lines, key=lambda line: line.block)]


def _duration(seconds: float) -> str:
    if seconds < 1:
        return ""
    if seconds < 120:
        return f"{seconds:.0f} seconds"
    return f"{seconds / 60:.0f} minutes" if seconds < 7200 else f"{seconds / 3600:.1f} hours"


def _asset(name: str) -> str:
    return (files("bacs.report") / name).read_text(encoding="utf-8")
