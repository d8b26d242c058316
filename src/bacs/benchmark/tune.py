"""Learning rate and posterior weight, chosen together on the validation corruptions.

The 15 test corruptions are refused: a choice made on them would be reported as if it had been made without them.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bacs.benchmark.cell import Cell
from bacs.benchmark.recipe import check_corrupted, settle
from bacs.corruptions import VALIDATION
from bacs.errors import RecipeError, RunError
from bacs.methods.catalogue import METHODS
from bacs.methods.evaluate import PROTOCOLS
from bacs.metrics import SCORES
from bacs.toml import check_keys, check_recipe, check_types, near
from bacs.toml import read as toml_table

GRID = ("learning_rate", "posterior_weight")


@dataclass(frozen=True)
class TuneRecipe:
    """A grid of settings for one method on the validation corruptions; the other keys are as in a sweep's recipe."""

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

    def axis(self, name: str) -> list[float]:
        """The values of one side of the grid; a single NaN for a setting that the method does not use."""
        return [float(value) for value in self.grid.get(name, [np.nan])]

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


class Choice(NamedTuple):
    settings: dict[str, float]  # the best values
    score: float  # their mean over the shifts
    scores: np.ndarray  # [posterior_weight, learning_rate]; NaN where a cell failed
    at_edge: list[str]  # settings whose best value is the first or last of several: the optimum may lie outside


def read(path: str | Path, *, limit: int | None = None, criterion: str | None = None) -> TuneRecipe:
    """The recipe in a TOML file."""
    table = toml_table(path, "tune")
    try:
        recipe = parse(table)
        return checked(
            replace(recipe, limit=recipe.limit if limit is None else limit, criterion=criterion or recipe.criterion)
        )
    except RecipeError as error:
        raise RecipeError(f"{path}: {error}") from None


def parse(table: dict[str, Any]) -> TuneRecipe:
    """The recipe of a table, with every value checked."""
    check_recipe(table, TuneRecipe)
    values: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in table.items()}
    return checked(TuneRecipe(**values))


def checked(recipe: TuneRecipe) -> TuneRecipe:
    """The recipe, after its values have been looked at."""
    adapting = [name for name, method in METHODS.items() if method.adapts]
    for key, value, known in (
        ("method", recipe.method, adapting),
        ("protocol", recipe.protocol, list(PROTOCOLS)),
        ("criterion", recipe.criterion, list(SCORES)),
    ):
        if value not in known:
            raise RecipeError(f"{key} must be one of {', '.join(known)}; got {value!r}{near(value, known)}")
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
    check_keys("grid", recipe.grid, axes, required=axes)
    check_types(recipe.grid, dict.fromkeys(axes, tuple[float, ...]), prefix="grid.")
    for name, values in recipe.grid.items():
        if not values or sorted(set(values)) != list(values):
            raise RecipeError(f"grid.{name} must have one value or more in increasing order, got {list(values)}")
    cells(recipe)  # raises for a value that adaptation would refuse
    return recipe


def cells(recipe: TuneRecipe) -> list[Cell]:
    """Every point of the grid on every validation shift, shift by shift."""
    version = "@published" if recipe.published else ""
    planned = []
    for corruption in recipe.corruptions:
        for severity in recipe.severities:
            for point in points(recipe):
                settings = settle(recipe.method, vars(recipe) | point)
                planned.append(
                    Cell(
                        f"{recipe.data}/{corruption}/{severity}{version}",
                        recipe.method,
                        recipe.protocol,
                        recipe.epochs if recipe.protocol == "offline" else 1,
                        settings,
                        recipe.seed,
                        recipe.limit,
                        tag=",".join(f"{name}={value!r}" for name, value in point.items()),
                    )
                )
    return planned


def points(recipe: TuneRecipe) -> list[dict[str, float]]:
    """The points of the grid, row by row of `posterior_weight`."""
    return [
        {name: value for name, value in zip(GRID, (rate, weight), strict=True) if name in recipe.grid}
        for weight in recipe.axis("posterior_weight")
        for rate in recipe.axis("learning_rate")
    ]


def choose(recipe: TuneRecipe, records: Sequence[dict[str, Any]]) -> Choice:
    """The point whose ensembles score best by the criterion, averaged over the shifts.

    A point with a failed cell is out: settings that diverge on one corruption are no settings. Of equal points the
    first counts, the one of the smallest values.
    """
    by_id = {record["id"]: record for record in records}
    means = []
    for point in points(recipe):
        ids = [cell.id for cell in cells(recipe) if all(cell.settings[name] == value for name, value in point.items())]
        found = [by_id[each] for each in ids if each in by_id and by_id[each]["error"] is None]
        whole = len(found) == len(ids)
        means.append(np.mean([record["ensemble"][recipe.criterion] for record in found]) if whole else np.nan)
    scores = np.array(means).reshape(len(recipe.axis("posterior_weight")), len(recipe.axis("learning_rate")))
    if not np.isfinite(scores).any():
        raise RunError("no point of the grid has a finite score on every shift, so there is nothing to choose from")
    best = means.index(SCORES[recipe.criterion].best(means))
    settings = points(recipe)[best]
    at_edge = [
        name
        for name, value in settings.items()
        if len(recipe.axis(name)) > 2 and value in (recipe.axis(name)[0], recipe.axis(name)[-1])
    ]
    return Choice(settings, float(scores.flat[best]), scores, at_edge)


def fragment(recipe: TuneRecipe, choice: Choice) -> str:
    """The chosen values as TOML: for `bacs sweep --settings`, or to be pasted into a recipe."""
    shifts = ", ".join(recipe.corruptions)
    lines = [
        f"# Chosen by the ensemble's {recipe.criterion}, {choice.score:.4f} on average over {recipe.data}",
        f"# with {shifts} at severity {', '.join(map(str, recipe.severities))}.",
        f"[method.{recipe.method}]",
        *(f"{name} = {value!r}" for name, value in choice.settings.items()),
    ]
    return "\n".join(lines) + "\n"
