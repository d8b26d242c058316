"""`bacs report`: the paper's tables and figures, and a page, from the records of sweeps."""

import json as json_format
from pathlib import Path
from typing import Annotated

import tyro

from bacs.cli.arguments import Flag, takes
from bacs.progress import say


def report(
    folders: Annotated[tuple[Path, ...], tyro.conf.Positional, takes("DIR ...", required=True)],
    *,
    out: Annotated[Path | None, takes("DIR")] = None,
    json: Flag = False,
) -> int:
    """Make the paper's tables and figures, and a page to look at, from the records of sweeps.

    Example: bacs report results/cifar10-c

    Reads records only, also while a sweep is running. Tables are written as Markdown, LaTeX (booktabs) and CSV,
    figures as SVG and PNG, and page.html has them all: it needs no network and no server.

    Args:
        folders: Folders that bacs sweep filled; several make one page.
        out: Folder to write into; by default report/ in the folder, or in the one that all of them lie in.
        json: Print the files and the mean scores as JSON instead of tables.
    """
    if not folders:
        raise ValueError("folders must name at least one folder of a sweep, got none")
    from rich.console import Console

    from bacs.cli.work.report import as_json, common_folder, show
    from bacs.files import check_folder
    from bacs.report.records import read
    from bacs.report.write import write

    sweeps = [read(folder) for folder in folders]
    into = out or common_folder(folders) / "report"
    check_folder("out", into)
    console = Console(stderr=json)
    with Console(stderr=True).status("drawing"):
        written = write(sweeps, into)
    if json:
        print(json_format.dumps(as_json(sweeps, written), indent=1))
    else:
        for sweep, chapters in zip(sweeps, written.chapters, strict=True):
            show(sweep, chapters, console, titled=len(sweeps) > 1)
    say(f"\npage: {written.page}", console)
    say(f"tables and figures: {into}", console)
    return 0
