"""Recipes as TOML files: keys and types are checked against what a verb knows; errors name the nearest right key."""

import tomllib
from dataclasses import fields
from pathlib import Path
from typing import Any, get_type_hints

from bacs.errors import RecipeError, did_you_mean
from bacs.schema import check, required_names

MARKS = {"model": "train", "methods": "sweep", "grid": "tune"}
"""The key that tells a recipe of one verb from those of the others; every recipe must have its own."""


SHIPPED = Path(__file__).parent / "recipes"


def shipped_recipes() -> dict[str, Path]:
    """The recipes that come with bacs, by name."""
    return {file.name.removesuffix(".toml"): file for file in sorted(SHIPPED.glob("*.toml"))}


def locate(recipe: str | Path) -> Path:
    """The file of a recipe: a path, or the name of one that comes with bacs."""
    file = Path(recipe)
    if file.exists() or file.parent != Path():
        return file
    return shipped_recipes().get(file.name.removesuffix(".toml"), file)


def read(path: str | Path, verb: str | None = None) -> dict[str, Any]:
    """The table in a TOML file, or of a recipe that comes with bacs; raises if it is plainly one of another verb."""
    file = locate(path)
    try:
        table = tomllib.loads(file.read_text())
    except FileNotFoundError:
        known = list(shipped_recipes())
        raise RecipeError(
            f"{file}: there is no such recipe{did_you_mean(file.name.removesuffix('.toml'), known)}"
        ) from None
    except (OSError, ValueError, RecursionError) as error:  # the last for a thousand brackets
        raise RecipeError(f"{file}: not a TOML file that can be read: {error}") from error
    found = verb_of(table)
    if None not in (verb, found) and verb != found:
        raise RecipeError(f"{path}: this is a recipe for bacs {found}, not for bacs {verb}")
    return table


def read_methods(path: str | Path) -> dict[str, Any]:
    """The tables `[method.<name>]` of a file that has nothing else, by name."""
    if not Path(path).exists():
        raise RecipeError(f"settings {path} is missing")
    table = read(path)
    if list(table) != ["method"] or not isinstance(table["method"], dict):
        raise RecipeError(f"{path}: settings must be tables [method.<name>] and nothing else")
    return table["method"]


def verb_of(table: dict[str, Any]) -> str | None:
    """The verb that a recipe is for, where it can be told."""
    found = {MARKS[key] for key in table.keys() & MARKS.keys()}
    return found.pop() if len(found) == 1 else None


def as_tuples(table: dict[str, Any]) -> dict[str, Any]:
    """A table whose lists are tuples, as a frozen recipe holds them."""
    return {key: tuple(value) if isinstance(value, list) else value for key, value in table.items()}


def check_recipe(table: dict[str, Any], recipe: type) -> None:
    """Raises for keys and values that are not those of a recipe's dataclass."""
    check_keys("the recipe", table, [f.name for f in fields(recipe)], required=required_names(recipe))
    check_types(table, get_type_hints(recipe))


def check_keys(where: str, table: dict[str, Any], known: list[str], *, required: list[str]) -> None:
    """Raises for a key that is unknown, and for one that is missing."""
    for key in table:
        if key not in known:
            raise RecipeError(
                f"{where} has an unknown key {key!r}{did_you_mean(key, known)}; it may have {', '.join(known)}"
            )
    for key in required:
        if key not in table:
            raise RecipeError(f"{where} lacks the key {key!r}")


def check_types(table: dict[str, Any], kinds: dict[str, Any], prefix: str = "") -> None:
    """Raises for a value that has not the type of its key."""
    for name, value in table.items():
        check(value, kinds[name], f"{prefix}{name}", error=RecipeError)
