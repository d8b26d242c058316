"""How the settings of the four published ResNets were chosen: benchmarks/tuning, a grid each, to docs/benchmark.md.

    bacs tune benchmarks/tuning/tent.toml --run RUN --out results/tuning/tent --data-dir DATA    # and each other
    python benchmarks/tuning_tables.py

RUN has the first two of the four members, but for objectives, which all four compare.
"""

from pathlib import Path

import numpy as np
from pages import ROOT, write_table

from bacs.benchmark import records, tune

PAGE, TITLE = "docs/benchmark.md", "tuning"
RECIPES = ROOT / "benchmarks" / "tuning"
RESULTS = ROOT / "results" / "tuning"


def searches() -> list[Path]:
    """The recipes, by name."""
    return sorted(RECIPES.glob("*.toml"), key=lambda file: file.stem)


def chosen(file: Path) -> tune.GridChoice:
    """The best point of a search."""
    return tune.choose(tune.read(file), records(RESULTS / file.stem))


def row(file: Path) -> str:
    """What was searched, what is best, and what its ensembles score on the validation corruptions."""
    recipe, found, choice = tune.read(file), records(RESULTS / file.stem), chosen(file)
    own = [r["ensemble"] for r in found if all(r["settings"][k] == v for k, v in choice.settings.items())]
    grid = "; ".join(f"{words(name)} {', '.join(map(spell, recipe.axis(name)))}" for name in recipe.grid)
    best = ", ".join(map(spell, choice.settings.values()))
    accuracy = 100 * np.mean([each["accuracy"] for each in own])
    edge = f" (at the edge: {', '.join(map(words, choice.at_edge))})" if choice.at_edge else ""
    return f"| {recipe.title} | {grid} | {best}{edge} | {accuracy:.2f} | {choice.score:.4f} |"


def words(name: str) -> str:
    return {"learning_rate": "rate", "posterior_weight": "β", "objective_temperature": "T"}.get(name, name)


def spell(value: float | str) -> str:
    return value.replace("_", " ") if isinstance(value, str) else f"{value:g}"


def table() -> list[str]:
    return ["| search | grid | best | Acc | NLL |", "|---|---|---|---:|---:|", *map(row, searches())]


if __name__ == "__main__":
    write_table(PAGE, TITLE, table())
