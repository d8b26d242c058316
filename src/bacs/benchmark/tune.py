"""Settings of a method, chosen together on the validation corruptions.

The 15 test corruptions are refused: a choice made on them would be reported as if it had been made without them.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bacs.benchmark.cell import Cell, tag_of
from bacs.benchmark.recipe import check_corrupted, check_list, settings_for
from bacs.corruptions import VALIDATION
from bacs.drivers.evaluate import PROTOCOLS
from bacs.errors import RecipeError, RunError, unknown_name
from bacs.methods.catalogue import METHODS
from bacs.metrics import SCORES
from bacs.toml import as_tuples, check_keys, check_recipe, check_types
from bacs.toml import read as toml_table

NUMBERS = ("learning_rate", "posterior_weight", "objective_temperature", "temperature", "batch_weight", "momentum")
GRID = (*NUMBERS, "objective")
"""Settings that a grid may vary; values of the last are names and have no order."""


@dataclass(frozen=True)
class TuneRecipe:
    """A grid of settings for one method on the validation corruptions; the other keys are as in a sweep's recipe.

    A setting stands in the grid or beside it.
    """

    data: str
    grid: dict[str, Any]
    title: str = ""
    method: str = "bacs"
    protocol: str = "offline"
    epochs: int = 1
    criterion: str = "nll"
    corruptions: tuple[str, ...] = VALIDATION
    severities: tuple[int, ...] = (5,)
    published: bool = False
    seed: int = 0
    limit: int | None = None
    batch_size: int = 128
    learning_rate: float = 1e-3
    posterior_weight: float = 1e-4
    momentum: float = 0.9
    optimizer: str = "sgd"
    posterior_step: str = "proximal"
    min_variance: float = 1e-12
    objective: str | None = None
    objective_temperature: float = 1.0
    batch_weight: float | None = None
    statistics: str = "source"
    view: str = "mirrored"
    temperature: float | str | None = None

    def axis(self, name: str) -> list[Any]:
        """The values of one side of the grid."""
        return [float(value) if name in NUMBERS else value for value in self.grid[name]]

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


class GridChoice(NamedTuple):
    settings: dict[str, Any]  # the best values
    score: float  # their mean over the shifts
    scores: np.ndarray  # [..., second axis of the grid, first axis]; NaN where a cell failed
    at_edge: list[str]  # settings whose best value is the first or last of several: the optimum may lie outside


class Plane(NamedTuple):
    """The first two axes of a grid, each a name and its values; of one axis the rows have neither."""

    scores: np.ndarray  # [rows, columns], the best over the other axes at each place
    columns: tuple[str, list[Any]]
    rows: tuple[str, list[Any]]
    others: list[str]  # names of the other axes


def read(path: str | Path, *, limit: int | None = None, criterion: str | None = None) -> TuneRecipe:
    """The recipe in a TOML file."""
    table = toml_table(path, "tune")
    try:
        recipe = parse(table)
        return check_tune_recipe(
            replace(recipe, limit=recipe.limit if limit is None else limit, criterion=criterion or recipe.criterion)
        )
    except RecipeError as error:
        raise RecipeError(f"{path}: {error}") from None


def parse(table: dict[str, Any]) -> TuneRecipe:
    """The recipe of a table, with every value checked."""
    check_recipe(table, TuneRecipe)
    for name in table["grid"]:
        if name in table:
            raise RecipeError(f"{name} must stand in the grid or beside it, not both")
    return check_tune_recipe(TuneRecipe(**as_tuples(table)))


def check_tune_recipe(recipe: TuneRecipe) -> TuneRecipe:
    """The recipe, after its values have been looked at."""
    for key, value, known in (
        ("method", recipe.method, list(METHODS)),
        ("protocol", recipe.protocol, list(PROTOCOLS)),
        ("criterion", recipe.criterion, list(SCORES)),
    ):
        if value not in known:
            raise RecipeError(str(unknown_name(key, value, known)))
    check_corrupted(recipe.data, recipe.corruptions, recipe.severities, published=recipe.published)
    for name in recipe.corruptions:
        if name not in VALIDATION:
            raise RecipeError(
                f"corruptions must be among {', '.join(VALIDATION)}; got {name}, which is kept for the test"
            )
    for name, value, least in (("epochs", recipe.epochs, 1), ("limit", recipe.limit, 1)):
        if value is not None and value < least:
            raise RecipeError(f"{name} must be at least {least}, got {value}")
    axes = [name for name in GRID if name in METHODS[recipe.method].uses]
    if not axes:
        raise RecipeError(f"method must be one with settings to tune, got {recipe.method}, which chooses for itself")
    if not recipe.grid:
        raise RecipeError(f"grid must have one setting or more, of {', '.join(axes)}")
    check_keys("grid", recipe.grid, axes, required=[])
    kinds = {name: tuple[float, ...] if name in NUMBERS else tuple[str, ...] for name in axes}
    check_types(recipe.grid, kinds, prefix="grid.")
    for name, values in recipe.grid.items():
        check_list(f"grid.{name}", tuple(values))
        if name in NUMBERS and sorted(values) != list(values):
            raise RecipeError(f"grid.{name} must be in increasing order, got {list(values)}")
    cells(recipe)  # raises for a value that adaptation would refuse
    return recipe


def cells(recipe: TuneRecipe) -> list[Cell]:
    """Every point of the grid on every validation shift, shift by shift."""
    return [cell_at(recipe, shift, point) for shift in shift_names(recipe) for point in points(recipe)]


def shift_names(recipe: TuneRecipe) -> list[str]:
    version = "@published" if recipe.published else ""
    return [f"{recipe.data}/{name}/{level}{version}" for name in recipe.corruptions for level in recipe.severities]


def points(recipe: TuneRecipe) -> list[dict[str, Any]]:
    """The points of the grid; its first axis changes fastest."""
    axes = [recipe.axis(name) for name in recipe.grid]
    return [dict(zip(recipe.grid, reversed(values), strict=True)) for values in product(*reversed(axes))]


def cell_at(recipe: TuneRecipe, shift: str, point: dict[str, Any]) -> Cell:
    """One point of the grid on one shift. Its name does not depend on the order of the axes."""
    offline = recipe.epochs if METHODS[recipe.method].adapts else 0
    return Cell(
        shift,
        recipe.method,
        recipe.protocol,
        offline if recipe.protocol == "offline" else 1,
        settings_for(recipe.method, vars(recipe) | point, protocol=recipe.protocol),
        recipe.seed,
        recipe.limit,
        tag=tag_of({name: point[name] for name in GRID if name in point}),
    )


def choose(recipe: TuneRecipe, records: Sequence[dict[str, Any]]) -> GridChoice:
    """The point whose ensembles score best by the criterion, averaged over the shifts.

    A point with a failed cell is out: settings that diverge on one corruption are no settings. Of equal points the
    first counts, the one of the smallest values.
    """
    finished = {r["id"]: r["ensemble"][recipe.criterion] for r in records if r["error"] is None}
    means = []
    for point in points(recipe):
        ids = [cell_at(recipe, shift, point).id for shift in shift_names(recipe)]
        means.append(float(np.mean([finished.get(each, np.nan) for each in ids])))
    if not np.isfinite(means).any():
        raise RunError("no point of the grid has a finite score on every shift, so there is nothing to choose from")
    best = means.index(SCORES[recipe.criterion].best(means))
    settings = points(recipe)[best]
    axes = {name: recipe.axis(name) for name in recipe.grid}
    long = [name for name, values in axes.items() if name in NUMBERS and len(values) > 2]
    at_edge = [name for name in long if settings[name] in (axes[name][0], axes[name][-1])]
    shape = [len(values) for values in reversed(axes.values())]
    return GridChoice(settings, means[best], np.array(means).reshape(shape), at_edge)


def axes_of_two_values(recipe: TuneRecipe) -> list[str]:
    """Axes of two numbers: the better one is an end, so that they cannot show whether the best lies beyond."""
    return [name for name, values in recipe.grid.items() if name in NUMBERS and len(values) == 2]


def plane(recipe: TuneRecipe, choice: GridChoice) -> Plane:
    """What of a grid can be shown at once."""
    axes = [(name, recipe.axis(name)) for name in recipe.grid]
    columns, rows = (*axes, ("", [""]))[:2]
    better = np.fmax if SCORES[recipe.criterion].higher_is_better else np.fmin  # both pass over NaN
    scores = better.reduce(choice.scores.reshape(-1, len(rows[1]), len(columns[1])))
    return Plane(scores, columns, rows, [name for name, _ in axes[2:]])


def fragment(recipe: TuneRecipe, choice: GridChoice) -> str:
    """The chosen values as TOML: for `bacs sweep --settings`, or to be pasted into a recipe."""
    shifts = ", ".join(recipe.corruptions)
    lines = [
        f"# Chosen by the ensemble's {recipe.criterion}, {choice.score:.4f} on average over {recipe.data}",
        f"# with {shifts} at severity {', '.join(map(str, recipe.severities))}.",
        f"[method.{recipe.method}]",
        *(f"{name} = {json.dumps(value)}" for name, value in choice.settings.items()),
    ]
    return "\n".join(lines) + "\n"
