"""The work of `bacs demo`: trains a small ensemble, then sweeps its methods over shifts and reports on the records."""

import dataclasses
import json as json_format
import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

import bacs
from bacs.benchmark import plan, sweep
from bacs.benchmark import recipe as recipes
from bacs.cli.work.report import show
from bacs.errors import RunError
from bacs.report.comparison import Comparison, comparisons
from bacs.report.contents import chapter
from bacs.report.corruption_tables import corruption_tables
from bacs.report.names import of_corruption
from bacs.report.records import Sweep, read
from bacs.report.terminal import TerminalTable
from bacs.report.write import write
from bacs.training.recipe import TrainingRecipe
from bacs.training.train import train

SEVERITY = 5
# The paper's, but for smaller batches: 2,000 images would make only 16 steps of 128.
SETTINGS = {"batch_size": 64, "learning_rate": 1e-3, "posterior_weight": 1e-4}
RECIPE = TrainingRecipe(
    data="fashion-mnist-part",
    model={"name": "resnet26", "width": 16, "blocks": 1, "stem_stride": 2},
    epochs=8,
    members=5,
    batch_size=64,
    collect_from=0.5,
    collections_per_epoch=4,
    augment={"name": "none"},
)


def run(out: Path, shifts: tuple[str, ...], *, verbose: bool, json: bool) -> None:
    """Everything that the demo shows and writes."""
    console = Console(stderr=json)
    began = time.monotonic()
    console.print("[bold]1. Training five small networks with their posteriors[/bold]")
    train(RECIPE, out / "ensemble", console=console)
    console.print("[bold]2. Adapting to shifted images, without labels[/bold]")
    found = measure(out, shifts, with_clean=verbose, console=console)
    if json:
        print(json_format.dumps(found.records))
    else:
        show_tables(found, console, verbose=verbose)
    try:
        console.print(f"\nFigures: {write([found], out / 'report').page}", highlight=False, soft_wrap=True)
    except RunError as error:
        console.print(f"\n{error}", highlight=False)
    corrupted = comparisons([record for record in found.records if record["corruption"]])[0]
    console.print(
        f"It took {time.monotonic() - began:.0f} seconds.\n\n{outlook(corrupted, out)}", highlight=False, soft_wrap=True
    )


def measure(out: Path, shifts: Sequence[str], *, with_clean: bool, console: Console) -> Sweep:
    """Every method on every shift as a sweep, and what it has of these shifts; cells of an earlier call stay as are."""
    names = [f"{RECIPE.data}-c/{shift}/{SEVERITY}" for shift in shifts]
    table = {"title": "bacs demo", "methods": list(bacs.METHODS), "limit": RECIPE.limit, **SETTINGS}
    recipe = recipes.parse(table | {"shifts": [*([f"{RECIPE.data}/clean"] if with_clean else []), *names]})
    failed = sweep(recipe, out / "ensemble", out / "sweep", console=console).failed
    if failed:
        cell, error = next(iter(failed.items()))
        raise RunError(f"{len(failed)} cells of the demo failed, the first {cell}: {error}")
    found, asked = read(out / "sweep"), {cell.id for cell in plan(recipe)}
    return dataclasses.replace(found, records=tuple(record for record in found.records if record["id"] in asked))


def show_tables(found: Sweep, console: Console, *, verbose: bool) -> None:
    """The mean over the shifts; each shift, and no shift at all, if asked for."""
    compared = comparisons(found.records)
    show(found, tuple(map(chapter, compared)), console, titled=False)
    corruptions = ", ".join(of_corruption(name) for each in compared for name in each.corruptions)
    console.print(f"Corruptions: {corruptions}.", style="dim", highlight=False, soft_wrap=True)
    for table in (table for each in compared for table in corruption_tables(each)) if verbose else ():
        console.print(f"\n{table.title}", style="bold", highlight=False, soft_wrap=True)
        console.print(TerminalTable(table))


def outlook(comparison: Comparison, out: Path) -> str:
    """Two lines: what was seen, and what to try next."""
    rows = {
        entry.method: {name: entry.mean(comparison.common, name) for name in ("accuracy", "nll")}
        for entry in comparison.combined
    }
    ours = rows["auto"]

    def against(name: str, other: dict[str, float]) -> str:
        gain = 100 * (ours["accuracy"] - other["accuracy"])
        return f"{gain:+.1f} points of accuracy and {ours['nll'] - other['nll']:+.3f} NLL against {name}"

    seen = f"Seen: on shifted images auto reached {100 * ours['accuracy']:.1f} %, " + "; ".join(
        (against("no adaptation", rows["vanilla"]), against("BN", rows["bn"]), against("BACS", rows["bacs"]))
    )
    following = f'adapted = bacs.adapt(bacs.load("{out}/ensemble"), your_images, "auto")'
    return f"{seen}.\nNext: {following}; adapted.predict(your_images)"
