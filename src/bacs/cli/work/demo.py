"""The work of `bacs demo`: train, adapt to shifted images, show tables and draw."""

import json as json_format
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

import bacs
from bacs import engine, metrics
from bacs.checkpoints import replace
from bacs.corruptions import corrupt
from bacs.errors import RunError
from bacs.methods.catalogue import label_of
from bacs.report.calibration import reliability_diagram, risk_coverage_plot
from bacs.report.figure_style import new_figure
from bacs.report.rows import table
from bacs.report.terminal import terminal_table
from bacs.training.recipe import TrainingRecipe
from bacs.training.train import train

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SEVERITY = 5
# The paper's, but for smaller batches: 2,000 images would make only 16 steps of 128.
SETTINGS = {"batch_size": 64, "learning_rate": 1e-3, "posterior_weight": 1e-4, "epochs": 1}
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
    records = evaluate_all(out, ("clean", *shifts) if verbose else shifts, console)
    replace(out / "records.json", (json_format.dumps(records, indent=1) + "\n").encode())
    if json:
        print(json_format.dumps(records))
    else:
        show_tables(records, console, verbose=verbose)
    try:
        written = draw(records, out)
        console.print(f"\nFigures: {', '.join(str(file) for file in written)}", highlight=False, soft_wrap=True)
    except RunError as error:
        console.print(f"\n{error}", highlight=False)
    console.print(
        f"It took {time.monotonic() - began:.0f} seconds.\n\n{closing(records, out)}", highlight=False, soft_wrap=True
    )


def evaluate_all(out: Path, shifts: tuple[str, ...], console: Console) -> list[dict[str, Any]]:
    """One record for each shift and method, made on all cores."""
    cells = [(str(out / "ensemble"), shift, method) for shift in shifts for method in bacs.METHODS]
    columns = TextColumn("shift x method"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("", total=len(cells))
        return engine.run(
            evaluate_cell, cells, workers=os.cpu_count() or 1, on_result=lambda outcome: progress.advance(task)
        )


def evaluate_cell(cell: tuple[str, str, str]) -> dict[str, Any]:
    """The record of one method on one shift."""
    run, shift, method = cell
    test = bacs.data.load(RECIPE.data, split="test")
    images = shifted(np.asarray(test.images), shift)
    assert test.labels is not None
    used = (*bacs.METHODS[method].uses, "epochs")
    settings: dict[str, Any] = {name: value for name, value in SETTINGS.items() if name in used}
    result = bacs.evaluate(bacs.load(run), images, test.labels, method, **settings)
    return {
        "shift": shift,
        "method": method,
        "settings": settings,
        "single": result.single,
        "ensemble": result.ensemble,
        "members": result.members,
        "predictions": result.probabilities.argmax(dim=1).tolist(),
        "confidence": result.probabilities.max(dim=1).values.tolist(),
    }


def shifted(images: np.ndarray, shift: str) -> np.ndarray:
    """The images under a corruption; `clean` leaves them as they are."""
    return images if shift == "clean" else corrupt(images, shift, SEVERITY)


def show_tables(records: list[dict[str, Any]], console: Console, *, verbose: bool) -> None:
    """The mean over the shifts; each shift, and no shift at all, if asked for."""
    on_shifts = [record for record in records if record["shift"] != "clean"]
    names = list(dict.fromkeys(record["shift"] for record in on_shifts))
    titled = {f"Mean over {', '.join(spoken(name) for name in names)} at severity {SEVERITY}": on_shifts}
    for shift in ("clean", *names) if verbose else ():
        titled[spoken(shift)] = [record for record in records if record["shift"] == shift]
    for title, chosen in titled.items():
        console.print(f"\n[bold]{title}[/bold]", soft_wrap=True)
        console.print(terminal_table(table(chosen)))


def spoken(shift: str) -> str:
    return "no shift at all" if shift == "clean" else shift.replace("_", " ")


def draw(records: list[dict[str, Any]], out: Path) -> list[Path]:
    """Writes the reliability diagram, the risk-coverage plot and the strip of pictures."""
    test = bacs.data.load(RECIPE.data, split="test")
    labels, images = test.labels, np.asarray(test.images)
    assert labels is not None
    reliability, risk = {}, {}
    methods = {label_of(method, "ensemble"): method for method in bacs.METHODS}
    for label, method in methods.items():
        chosen = [r for r in records if r["method"] == method and r["shift"] != "clean"]
        confidence = np.concatenate([r["confidence"] for r in chosen])
        right = np.concatenate([np.array(r["predictions"]) == labels for r in chosen])
        reliability[label] = metrics.reliability_of(confidence, right)._asdict()
        risk[label] = metrics.risk_coverage_of(confidence, right)._asdict()
    examples = np.array([np.flatnonzero(labels == number)[3] for number in range(len(test.classes))])
    after = {r["shift"]: np.array(r["predictions"])[examples] for r in records if r["method"] == "auto"}
    drawn = {
        "reliability.png": reliability_diagram(reliability, methods),
        "risk-coverage.png": risk_coverage_plot(risk, methods),
        "pictures.png": picture_strip(
            {shift: shifted(images, shift)[examples] for shift in after},
            [[test.classes[number] for number in predicted] for predicted in after.values()],
            np.stack([predicted == labels[examples] for predicted in after.values()]),
        ),
    }
    for name, figure in drawn.items():
        figure.savefig(out / name, dpi=130)
    return [out / name for name in drawn]


def picture_strip(rows: Mapping[str, np.ndarray], captions: Sequence[Sequence[str]], right: np.ndarray) -> "Figure":
    """Example pictures, one row a shift, each with the caption below it, green where it is right.

    `rows`: shift -> uint8 [pictures, height, width, channels]; `captions` and `right` are by row and picture.
    """
    count = len(next(iter(rows.values())))
    figure = new_figure(figsize=(1.25 * count, 1.55 * len(rows)))
    grid = figure.subplots(len(rows), count, squeeze=False)
    for i, (name, pictures) in enumerate(rows.items()):
        for j, picture in enumerate(pictures):
            axes = grid[i][j]
            axes.imshow(picture.squeeze(), cmap="gray", vmin=0, vmax=255, interpolation="nearest")
            axes.set(xticks=[], yticks=[])
            for spine in axes.spines.values():
                spine.set_visible(False)
            axes.set_xlabel(captions[i][j], fontsize=8, color="#00704f" if right[i][j] else "#b3261e", labelpad=2)
        grid[i][0].set_ylabel(name.replace("_", " "), fontsize=8)
    return figure


def closing(records: list[dict[str, Any]], out: Path) -> str:
    """Two lines: what was seen, and what to try next."""
    rows = {
        row.method: row.scores for row in table([r for r in records if r["shift"] != "clean"]) if row.kind == "ensemble"
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
