"""`bacs tune`: settings of a method, chosen on the validation corruptions."""

import json as json_format
from pathlib import Path
from typing import Annotated

import numpy as np
import tyro
from rich.console import Console
from rich.table import Table

from bacs.benchmark import store
from bacs.benchmark import tune as tuning
from bacs.benchmark.sweep import about, run_cells
from bacs.benchmark.tune import Choice, TuneRecipe
from bacs.checkpoints import replace
from bacs.cli.sweep import closing, say, say_how_to_go_on, show_plan
from bacs.engine import HERE, Place
from bacs.errors import BacsError, unknown_name
from bacs.methods.catalogue import label_of
from bacs.metrics import SCORES
from bacs.report.comparison import spelt
from bacs.report.heat_map import heat_map
from bacs.writable import check_writable


def tune(
    recipe: Annotated[Path, tyro.conf.Positional],
    *,
    run: Path,
    out: Path,
    criterion: Annotated[str | None, tyro.conf.arg(metavar="|".join(SCORES))] = None,
    limit: int | None = None,
    place: tyro.conf.OmitArgPrefixes[Place] = HERE,
    data_dir: Path | None = None,
    download: bool = False,
    compile: bool = False,
    dry_run: bool = False,
    json: bool = False,
) -> int:
    """Choose settings of a method on the validation corruptions. The same command goes on.

    Example: bacs tune cifar10-tune-small --run runs/cifar10 --out results/tune

    Writes OUT/chosen.toml, for bacs sweep --settings, and OUT/heat-map.png and .svg.

    Args:
        recipe: TOML file with the grid: learning rate, posterior weight and others that the method uses.
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
    if criterion is not None and criterion not in SCORES:
        raise unknown_name("criterion", criterion, list(SCORES))
    console = Console(stderr=True)
    chosen = tuning.read(recipe, limit=limit, criterion=criterion)
    cells, described = tuning.cells(chosen), about(chosen.as_json(), run, kind="tune")
    varied = tuple(chosen.grid)
    if dry_run:
        return show_plan(cells, store.check(out, described, cells, varied=varied), json=json)
    check_writable("out", out)
    try:
        summary = run_cells(
            cells,
            described,
            run,
            out,
            varied=varied,
            place=place,
            data_dir=data_dir,
            download=download,
            compile=compile,
            console=console,
        )
    except KeyboardInterrupt:
        return say_how_to_go_on(out, console)
    say(f"{closing(summary)}: {out}", console)
    choice = tuning.choose(chosen, store.records(out))
    replace(out / "chosen.toml", tuning.fragment(chosen, choice).encode())
    if json:
        print(json_format.dumps(as_json(chosen, choice)))
    show(chosen, choice, out, console)
    draw(chosen, choice, out, console)
    # Settings under which a model diverges are a finding; any other failure leaves a hole in the grid.
    return 0 if all(error.startswith("DivergenceError") for error in summary.failed.values()) else 1


def as_json(recipe: TuneRecipe, choice: Choice) -> dict[str, object]:
    """The choice and the grid for a program; null where a cell failed or a score is infinite."""
    scores = [score if np.isfinite(score) else None for score in choice.scores.ravel().tolist()]
    return {
        "criterion": recipe.criterion,
        "chosen": choice.settings,
        "score": choice.score if np.isfinite(choice.score) else None,
        "grid": [point | {"score": score} for point, score in zip(tuning.points(recipe), scores, strict=True)],
        "at_edge": choice.at_edge,
    }


def show(recipe: TuneRecipe, choice: Choice, out: Path, console: Console) -> None:
    """Prints the first two axes of the grid, the choice and how to use it."""
    plane, score = tuning.plane(recipe, choice), SCORES[recipe.criterion]
    (across, columns), (down, rows) = plane.columns, plane.rows
    heading = " \\ ".join(name.replace("_", " ") for name in (down, across) if name)
    shown = Table(heading, *map(spelt, columns), title=score.axis)
    best = [choice.settings.get(name) for name in (down, across)]
    for row, values in zip(rows, plane.scores, strict=True):
        texts = ["failed" if np.isnan(value) else score.text(value) for value in values]
        here = [[row if down else None, column] == best for column in columns]
        shown.add_row(spelt(row), *(f"[bold]{t}[/bold]" if bold else t for t, bold in zip(texts, here, strict=True)))
    console.print(shown)
    if plane.others:
        say(best_over(plane.others), console)
    values = ", ".join(f"{name} = {spelt(value)}" for name, value in choice.settings.items())
    say(f"chosen: {values}; bacs sweep ... --settings {out / 'chosen.toml'}", console)
    for name in choice.at_edge:
        say(f"{name} = {spelt(choice.settings[name])} is at the edge of its grid: the best may lie beyond it", console)
    for name in tuning.two_valued(recipe):
        say(f"{name}: a grid of two values cannot show whether the best lies beyond them", console)


def best_over(names: list[str]) -> str:
    return f"At each place the best over {' and '.join(name.replace('_', ' ') for name in names)}."


def draw(recipe: TuneRecipe, choice: Choice, out: Path, console: Console) -> None:
    """Draws the heat map; without matplotlib one line says how to get it."""
    plane, score = tuning.plane(recipe, choice), SCORES[recipe.criterion]
    heading = f"{score.axis} of {label_of(recipe.method, 'ensemble')}, mean over validation shifts"
    try:
        figure = heat_map(
            plane, score, heading="\n".join([heading, *([best_over(plane.others)] if plane.others else [])])
        )
    except BacsError as error:
        say(str(error), console)
        return
    for suffix in ("png", "svg"):
        figure.savefig(out / f"heat-map.{suffix}", dpi=130, metadata={"Date": None} if suffix == "svg" else None)
    say(f"heat map: {out / 'heat-map.png'}", console)
