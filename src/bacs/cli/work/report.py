"""What `bacs report` prints: tables for people, the same for programs, and where files go."""

import math
import os
from pathlib import Path
from typing import Any

from rich.console import Console

from bacs.progress import say
from bacs.report.contents import Chapter
from bacs.report.records import Sweep
from bacs.report.terminal import TerminalTable, fit_to_width
from bacs.report.write import Report


def common_folder(folders: tuple[Path, ...]) -> Path:
    """The folder itself, or the nearest one that holds all of several."""
    if len(folders) == 1:
        return folders[0]
    return Path(os.path.commonpath([folder.resolve().parent for folder in folders]))


def show(sweep: Sweep, chapters: tuple[Chapter, ...], console: Console, *, titled: bool) -> None:
    """Prints the main table of every chapter with its notes, and the cells that failed."""
    if titled:
        console.rule(sweep.title, align="left", style="")
    for chapter in chapters:
        table = fit_to_width(chapter.summary, console.width)
        console.print(
            f"\n{table.title}", style="bold", markup=False, highlight=False, soft_wrap=not console.is_terminal
        )
        console.print(TerminalTable(table))
        for note in table.notes:
            console.print(note, style="dim", markup=False, highlight=False)
    if sweep.missing:
        console.print(sweep.missing_note, style="bold", markup=False, highlight=False, soft_wrap=True)
    for record in sweep.failed:
        cell = f"{record['shift']} {record['method']} {record['protocol']}"
        say(f"failed: {cell}: {record['error']}", console)


def as_json(sweeps: list[Sweep], written: Report) -> dict[str, Any]:
    """Files and mean scores for a program; accuracy in percent as printed, an infinite NLL as "inf"."""
    return {
        "page": str(written.page),
        "files": [str(file) for file in written.files],
        "sweeps": [
            {
                "folder": str(sweep.folder),
                "title": sweep.title,
                "tables": [_table_json(chapter) for chapter in chapters],
                "missing": list(sweep.missing),
                "failed": [
                    {key: record[key] for key in ("shift", "method", "protocol", "error")} for record in sweep.failed
                ],
            }
            for sweep, chapters in zip(sweeps, written.chapters, strict=True)
        ],
    }


def _table_json(chapter: Chapter) -> dict[str, Any]:
    table = chapter.summary
    headings = [f"{column.group} {column.heading}".removeprefix("here").strip() for column in table.columns]
    rows = [
        {"label": line.label, "method": line.method, "kind": line.block}
        | {heading: _number(cell.value) for heading, cell in zip(headings, line.cells, strict=True)}
        for line in table.lines
    ]
    return {"title": table.title, "rows": rows, "notes": list(table.notes)}


def _number(value: float | None) -> float | str | None:
    return "inf" if value is not None and math.isinf(value) else value
