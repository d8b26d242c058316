"""`bacs tune`: settings of a method, chosen on the validation corruptions."""

import json as json_format
from pathlib import Path
from typing import Annotated, Any

import tyro

from bacs.cli import INCOMPLETE
from bacs.cli.arguments import Flag, takes
from bacs.cli.place import HERE, Where
from bacs.errors import unknown_name
from bacs.progress import say

CRITERIA = ("accuracy", "nll", "brier", "ece")


def tune(
    recipe: Annotated[Path, tyro.conf.Positional, takes("RECIPE")],
    *,
    run: Annotated[Path, takes("RUN")],
    out: Annotated[Path, takes("DIR")],
    criterion: Annotated[str | None, takes("|".join(CRITERIA))] = None,
    limit: Annotated[int | None, takes("N")] = None,
    where: tyro.conf.OmitArgPrefixes[Where] = HERE,
    data_dir: Annotated[Path | None, takes("DIR")] = None,
    download: Flag = False,
    compile: Flag = False,
    dry_run: Flag = False,
    json: Flag = False,
) -> int:
    """Choose settings of a method on the validation corruptions. The same command goes on.

    Example: bacs tune cifar10-tune-small --run runs/cifar10 --out results/tune

    Writes OUT/chosen.toml, for bacs sweep --settings, and OUT/heat-map.png and .svg.

    Args:
        recipe: The grid (learning rate, posterior weight and others that the method uses): the name of one that bacs
            recipes lists, or a TOML file.
        run: Folder of a training run or a saved ensemble.
        out: Folder of the records.
        criterion: Score of the ensemble that decides; goes before the recipe's. Another one needs no new records.
        limit: The first images of each shift only; goes before the recipe's.
        data_dir: Folder of the data sets; by default the environment variable BACS_DATA.
        download: Fetch data sets that are missing.
        compile: Adapt through torch.compile: faster steps after a minute of compiling, once for all cells.
        dry_run: List what would run, and do nothing.
        json: Print the choice and the whole grid as JSON to standard output.
    """
    if criterion is not None and criterion not in CRITERIA:
        raise unknown_name("criterion", criterion, CRITERIA)
    from rich.console import Console

    from bacs.benchmark import store
    from bacs.benchmark import tune as tuning
    from bacs.benchmark.sweep import about, run_cells
    from bacs.cli.sweep import describe_cells, say_how_to_go_on, show_plan
    from bacs.cli.work.tune import as_json, draw, show
    from bacs.files import check_folder, write

    console = Console(stderr=True)
    chosen = tuning.read(recipe, limit=limit, criterion=criterion)
    cells, described = tuning.cells(chosen), about(chosen.as_json(), run, kind="tune")
    varied = tuple(chosen.grid)
    if dry_run:
        return show_plan(cells, store.check(out, described, cells, varied=varied), json=json)
    check_folder("out", out)
    try:
        how: dict[str, Any] = {"data_dir": data_dir, "download": download, "compile": compile, "varied": varied}
        summary = run_cells(cells, described, run, out, place=where.place(), console=console, **how)
    except KeyboardInterrupt:
        return say_how_to_go_on(out, console)
    say(f"{describe_cells(summary)}: {out}", console)
    choice = tuning.choose(chosen, store.records(out))
    write(out / "chosen.toml", tuning.fragment(chosen, choice).encode())
    if json:
        print(json_format.dumps(as_json(chosen, choice)))
    show(chosen, choice, out, console)
    draw(chosen, choice, out, console)
    # Settings under which a model diverges are a finding; any other failure leaves a hole in the grid.
    return 0 if all(error.startswith("DivergenceError") for error in summary.failed.values()) else INCOMPLETE
