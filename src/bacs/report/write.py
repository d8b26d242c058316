"""Writes the tables, figures and page of one sweep or several into a folder."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bacs import files
from bacs.report.comparison import comparisons
from bacs.report.contents import Chapter, chapter
from bacs.report.figure_style import inline_svg, png_file, svg_file
from bacs.report.formats import FORMATS, comma_separated, markdown
from bacs.report.names import slug
from bacs.report.page import Section, page
from bacs.report.records import Sweep


@dataclass(frozen=True)
class Report:
    """What was written: the page first, then tables and figures; and the chapters of each sweep."""

    page: Path
    files: tuple[Path, ...]
    chapters: tuple[tuple[Chapter, ...], ...]


def write(sweeps: Sequence[Sweep], out: Path) -> Report:
    """The report of these sweeps in `out`: page.html, tables/ and figures/; of several sweeps each has its folder."""
    written: list[Path] = []
    sections = []
    for sweep, name in zip(sweeps, _folder_names(sweeps), strict=True):
        chapters = [chapter(comparison) for comparison in comparisons(sweep.records)]
        folder = out if len(sweeps) == 1 else out / name
        for each in chapters:
            for table in each.tables:
                for ending, formatter in FORMATS.items():
                    written.append(_write_file(folder / "tables" / f"{table.name}.{ending}", formatter(table).encode()))
            for table in each.numbers:
                written.append(_write_file(folder / "tables" / f"{table.name}.csv", comma_separated(table).encode()))
        written.append(_write_file(folder / "tables.md", _all_tables(sweep, chapters).encode()))
        drawn = {}
        for picture in (picture for each in chapters for picture in each.pictures):
            figure = picture.draw()
            figure.draw_without_rendering()
            figure.set_layout_engine("none")  # what has been laid out once need not be again for the next file
            drawn[picture.name] = inline_svg(figure, f"{name}-{picture.name}", picture.caption)
            vector = svg_file(drawn[picture.name], tuple(figure.get_size_inches()))
            written.append(_write_file(folder / "figures" / f"{picture.name}.svg", vector))
            written.append(_write_file(folder / "figures" / f"{picture.name}.png", png_file(figure)))
        sections.append(Section(sweep, name, chapters, drawn))
    html = _write_file(out / "page.html", page(sections).encode())
    return Report(html, tuple(written), tuple(tuple(section.chapters) for section in sections))


def _all_tables(sweep: Sweep, chapters: Sequence[Chapter]) -> str:
    """Every table but the numbers of curves and boxes, and the failed cells, as one Markdown page."""
    parts = [f"# {sweep.title}\n"]
    for each in chapters:
        parts.append(f"## {each.title}\n")
        parts += [markdown(table) for table in each.tables]
    if sweep.missing:
        parts.append(f"## Missing cells\n\n{sweep.missing_note}\n")
    if sweep.failed:
        failed = [f"- {r['shift']}, {r['method']}, {r['protocol']}: `{_on_one_line(r['error'])}`" for r in sweep.failed]
        parts.append("\n".join(["## Failed cells\n", *failed]) + "\n")
    return "\n".join(parts)


def _on_one_line(text: str) -> str:
    return " ".join(str(text).replace("`", "'").split())


def _folder_names(sweeps: Sequence[Sweep]) -> list[str]:
    """One name for each sweep, as part of file names and ids: that of its folder, numbered where two agree."""
    names: list[str] = []
    for sweep in sweeps:
        base = slug(sweep.folder.resolve().name) or "sweep"
        name, number = base, 2
        while name in names:
            name, number = f"{base}-{number}", number + 1
        names.append(name)
    return names


def _write_file(file: Path, data: bytes) -> Path:
    with files.explain_failure(file):
        files.write(file, data)
    return file
