"""What `bacs tune` shows of a grid: its scores, the choice, and a heat map."""

from pathlib import Path

import numpy as np
from rich.console import Console

from bacs.benchmark import tune as tuning
from bacs.benchmark.tune import GridChoice, TuneRecipe
from bacs.errors import BacsError
from bacs.methods.catalogue import label_of
from bacs.metrics import SCORES
from bacs.progress import say
from bacs.report.choice_figures import heat_map
from bacs.report.comparison import setting_text
from bacs.report.tables import Column, Line, ReportTable, TableCell
from bacs.report.terminal import TerminalTable


def as_json(recipe: TuneRecipe, choice: GridChoice) -> dict[str, object]:
    """The choice and the grid for a program; null where a cell failed or a score is infinite."""
    scores = [score if np.isfinite(score) else None for score in choice.scores.ravel().tolist()]
    return {
        "criterion": recipe.criterion,
        "chosen": choice.settings,
        "score": choice.score if np.isfinite(choice.score) else None,
        "grid": [point | {"score": score} for point, score in zip(tuning.points(recipe), scores, strict=True)],
        "at_edge": choice.at_edge,
    }


def show(recipe: TuneRecipe, choice: GridChoice, out: Path, console: Console) -> None:
    """Prints the first two axes of the grid, the choice and how to use it."""
    plane, score = tuning.plane(recipe, choice), SCORES[recipe.criterion]
    (across, columns), (down, rows) = plane.columns, plane.rows
    heading = " \\ ".join(name.replace("_", " ") for name in (down, across) if name)
    best = [choice.settings.get(name) for name in (down, across)]
    lines = []
    for row, values in zip(rows, plane.scores, strict=True):
        texts = ["failed" if np.isnan(value) else score.text(value) for value in values]
        here = [[row if down else None, column] == best for column in columns]
        cells = tuple(TableCell(text, best=bold) for text, bold in zip(texts, here, strict=True))
        lines.append(Line(setting_text(row), cells))
    say(f"{score.axis}, {score.direction}", console)
    console.print(
        TerminalTable(ReportTable("", "", heading, tuple(Column(setting_text(each)) for each in columns), tuple(lines)))
    )
    if plane.others:
        say(best_over(plane.others), console)
    values = ", ".join(f"{name} = {setting_text(value)}" for name, value in choice.settings.items())
    say(f"chosen: {values}; bacs sweep ... --settings {out / 'chosen.toml'}", console)
    for name in choice.at_edge:
        say(
            f"{name} = {setting_text(choice.settings[name])} is at the edge of its grid: the best may lie beyond it",
            console,
        )
    if choice.scores.size == 1:
        say("the grid has one point: nothing was chosen, only measured", console)
    for name in tuning.axes_of_two_values(recipe):
        say(f"{name}: a grid of two values cannot show whether the best lies beyond them", console)


def best_over(names: list[str]) -> str:
    return f"At each place the best over {' and '.join(name.replace('_', ' ') for name in names)}."


def draw(recipe: TuneRecipe, choice: GridChoice, out: Path, console: Console) -> None:
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
