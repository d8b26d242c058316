"""`bacs sweep`: the cells of a benchmark recipe."""

import json as json_format
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from bacs.cli import INCOMPLETE
from bacs.cli.arguments import Flag, takes
from bacs.cli.place import HERE, Where
from bacs.progress import say

if TYPE_CHECKING:
    from rich.console import Console

    from bacs.benchmark.cell import Cell
    from bacs.benchmark.sweep import SweepSummary


def sweep(
    recipe: Annotated[Path, tyro.conf.Positional, takes("RECIPE")],
    *,
    run: Annotated[Path, takes("RUN")],
    out: Annotated[Path, takes("DIR")],
    settings: Annotated[Path | None, takes("FILE")] = None,
    limit: Annotated[int | None, takes("N")] = None,
    where: tyro.conf.OmitArgPrefixes[Where] = HERE,
    data_dir: Annotated[Path | None, takes("DIR")] = None,
    download: Flag = False,
    compile: Flag = False,
    dry_run: Flag = False,
    json: Flag = False,
) -> int:
    """Run every method of a recipe on every shift. The same command goes on with what was interrupted.

    Example: bacs sweep cifar10-c-small --run runs/cifar10 --out results/cifar10-c

    Args:
        recipe: Which methods meet which shifts: the name of one that bacs recipes lists, or a TOML file.
        run: Folder of a training run or a saved ensemble.
        out: Folder of the records; bacs report makes tables and figures of it.
        settings: TOML file with [method.<name>] tables that go before the recipe's, such as bacs tune writes.
        limit: The first images of each shift only; goes before the recipe's.
        data_dir: Folder of the data sets; by default the environment variable BACS_DATA.
        download: Fetch data sets that are missing.
        compile: Adapt through torch.compile: faster steps after a minute of compiling, once for all cells.
        dry_run: List what would run, and do nothing.
        json: Print what was done (or would be) as JSON to standard output.
    """
    from rich.console import Console

    from bacs.benchmark import recipe as recipes
    from bacs.benchmark import store
    from bacs.benchmark.plan import plan
    from bacs.benchmark.sweep import about, run_cells
    from bacs.files import check_folder

    console = Console(stderr=True)
    chosen = recipes.read(recipe, settings=settings, limit=limit)
    cells, described = plan(chosen), about(chosen.as_json(), run)
    if dry_run:
        return show_plan(cells, store.check(out, described, cells), json=json)
    check_folder("out", out)
    began = time.monotonic()
    try:
        how: dict[str, Any] = {"data_dir": data_dir, "download": download, "compile": compile}
        summary = run_cells(cells, described, run, out, place=where.place(), console=console, **how)
    except KeyboardInterrupt:
        return say_how_to_go_on(out, console)
    if json:
        print(json_format.dumps(summary._asdict() | {"out": str(out), "seconds": round(time.monotonic() - began, 3)}))
    say(f"{describe_cells(summary)}: {out}", console)
    if summary.skipped + summary.finished:
        say(f"tables and figures: bacs report {out}", console)
    if summary.failed:
        say(f"failed, and tried again by the same command: {', '.join(summary.failed)}", console)
    if not summary.failed:
        return 0
    return INCOMPLETE if summary.skipped + summary.finished else 1


def describe_cells(summary: "SweepSummary") -> str:
    """How many cells there are, were skipped, are new or failed."""
    done = summary.skipped + summary.finished
    text = f"{done} of {summary.cells} cells are finished"
    return f"{text}, {summary.finished} of them now" if summary.skipped and summary.finished else text


def show_plan(cells: "list[Cell]", finished: list[str], *, json: bool) -> int:
    """Prints the cells with what would become of them."""
    known = set(finished)
    rows: list[dict[str, Any]] = [cell.identity() | {"finished": cell.id in known} for cell in cells]
    if json:
        print(json_format.dumps(rows))
        return 0
    for cell in cells:
        print(f"{'finished' if cell.id in known else 'to do   '}  {cell}")
    left = [cell for cell in cells if cell.id not in known]
    passes = sum(cell.cost for cell in left)
    print(
        f"{len(left)} of {len(cells)} cells to do: {passes} forward passes over the images of a shift, by every member"
    )
    return 0


def say_how_to_go_on(out: Path, console: "Console") -> int:
    """What Ctrl-C leaves behind, and the exit code."""
    say(
        f"\nStopped. Finished cells are in {out}; the same command goes on:\n  {' '.join(['bacs', *sys.argv[1:]])}",
        console,
    )
    return 130
