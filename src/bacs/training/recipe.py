"""Recipes: one TOML file says how an ensemble is trained. Validated once, here; unknown keys are errors."""

import tomllib
import types
from collections.abc import Callable
from dataclasses import MISSING, asdict, dataclass, field, fields
from difflib import get_close_matches
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

from bacs.errors import RecipeError
from bacs.preprocessing import Preprocessing
from bacs.training.augment import Identity, PadCropFlip
from bacs.training.files import RandomResizedCrop
from bacs.training.objective import smoothed
from bacs.training.schedule import Constant, Cosine, Linear
from bacs.training.settings import Settings

SCHEDULES: dict[str, Callable[..., Any]] = {"linear": Linear, "cosine": Cosine, "constant": Constant}
AUGMENTATIONS: dict[str, Callable[..., Any]] = {
    "none": Identity,
    "pad_crop_flip": PadCropFlip,
    "random_resized_crop": RandomResizedCrop,
}


@dataclass(frozen=True)
class Recipe:
    """How an ensemble is trained. Keys mean what they mean in `bacs.training.fit`; the defaults are the same.

    `model`, `schedule` and `augment` are tables with a `name` and arguments; `limit` trains on the first images only.
    """

    data: str
    model: dict[str, Any]
    epochs: int
    members: int = 10
    seed: int = 0
    limit: int | None = None
    batch_size: int = 128
    learning_rate: float = 0.1
    momentum: float = 0.9
    nesterov: bool = False
    weight_decay: float = 5e-4
    decay_norm: bool = True
    label_smoothing: float = 0.0
    precision: str = "float32"
    posterior: str = "swag_diag"
    collect_from: float = 160 / 300
    collections_per_epoch: int = 1
    schedule: dict[str, Any] = field(default_factory=lambda: {"name": "linear"})
    augment: dict[str, Any] = field(default_factory=lambda: {"name": "pad_crop_flip"})
    preprocessing: dict[str, Any] | None = None

    def settings(self, seed: int) -> Settings:
        """The settings of one member."""
        return Settings(
            epochs=self.epochs,
            batch_size=self.batch_size,
            learning_rate=self.learning_rate,
            momentum=self.momentum,
            nesterov=self.nesterov,
            weight_decay=self.weight_decay,
            decay_norm=self.decay_norm,
            schedule=_named("schedule", self.schedule, SCHEDULES),
            augment=_named("augment", self.augment, AUGMENTATIONS),
            objective=smoothed(self.label_smoothing),
            posterior=self.posterior,
            collect_from=self.collect_from,
            collections_per_epoch=self.collections_per_epoch,
            precision=self.precision,
            seed=seed,
        )

    def given_preprocessing(self) -> Preprocessing | None:
        """The preprocessing that the recipe states, None if it is to be that of the data."""
        if self.preprocessing is None:
            return None
        _check_keys("preprocessing", self.preprocessing, ["mean", "std"], required=["mean", "std"])
        return Preprocessing(tuple(self.preprocessing["mean"]), tuple(self.preprocessing["std"]))

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def read(path: str | Path) -> Recipe:
    """The recipe in a TOML file."""
    file = Path(path)
    try:
        table = tomllib.loads(file.read_text())
    except FileNotFoundError:
        raise RecipeError(f"{file}: there is no such recipe") from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise RecipeError(f"{file}: not a TOML file that can be read: {error}") from error
    try:
        return parse(table)
    except RecipeError as error:
        raise RecipeError(f"{file}: {error}") from None


def parse(table: dict[str, Any]) -> Recipe:
    """The recipe of a table, with every value checked."""
    names = [f.name for f in fields(Recipe)]
    required = [f.name for f in fields(Recipe) if f.default is MISSING and f.default_factory is MISSING]
    _check_keys("the recipe", table, names, required=required)
    for name, kind in get_type_hints(Recipe).items():
        if name in table and not _fits(table[name], kind):
            raise RecipeError(f"{name} must be {_spelt(kind)}, got {table[name]!r}")
    recipe = Recipe(**table)
    if recipe.members < 1:
        raise RecipeError(f"members must be at least 1, got {recipe.members}")
    if recipe.limit is not None and recipe.limit < 2:
        raise RecipeError(f"limit must be at least 2, got {recipe.limit}")
    if "name" not in recipe.model:
        raise RecipeError("model must have a name, such as name = 'resnet26'")
    try:
        recipe.settings(seed=0)
        recipe.given_preprocessing()
    except (ValueError, TypeError) as error:
        raise RecipeError(str(error)) from error
    return recipe


def _named(key: str, table: dict[str, Any], catalogue: dict[str, Callable[..., Any]]) -> Any:
    """The catalogue's entry that a table names, made with the table's other values as arguments."""
    name = table.get("name")
    if name not in catalogue:
        raise RecipeError(
            f"{key}.name must be one of {', '.join(catalogue)}; got {name!r}{_near(name, list(catalogue))}"
        )
    made = catalogue[name]
    kinds = get_type_hints(made)
    allowed = [f.name for f in fields(made)] if isinstance(made, type) else []  # pyrefly: ignore[bad-argument-type]
    arguments = {k: tuple(v) if isinstance(v, list) else v for k, v in table.items() if k != "name"}
    _check_keys(key, arguments, allowed, required=[])
    for argument, value in arguments.items():
        if not _fits(value, kinds[argument]):
            raise RecipeError(f"{key}.{argument} must be {_spelt(kinds[argument])}, got {value!r}")
    return made(**arguments)


def _check_keys(where: str, table: dict[str, Any], known: list[str], *, required: list[str]) -> None:
    for key in table:
        if key not in known:
            raise RecipeError(f"{where} has an unknown key {key!r}{_near(key, known)}; it may have {', '.join(known)}")
    for key in required:
        if key not in table:
            raise RecipeError(f"{where} lacks the key {key!r}")


def _near(name: object, known: list[str]) -> str:
    near = get_close_matches(str(name), known, n=1, cutoff=0.5)
    return f" (did you mean {near[0]!r}?)" if near else ""


def _fits(value: Any, kind: Any) -> bool:
    """Whether a TOML value has this type; a whole number may stand for a float, a truth value for no number."""
    if isinstance(kind, types.UnionType):
        return any(_fits(value, option) for option in get_args(kind))
    if get_origin(kind) is tuple:
        return isinstance(value, (tuple, list)) and all(_fits(item, get_args(kind)[0]) for item in value)
    if get_origin(kind) is dict:
        return isinstance(value, dict)
    if kind is float:
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    return isinstance(value, kind) and not (kind is int and isinstance(value, bool))


def _spelt(kind: Any) -> str:
    words = {int: "a whole number", float: "a number", bool: "true or false", str: "a text"}
    if isinstance(kind, types.UnionType):
        return _spelt(get_args(kind)[0])
    return words.get(kind, "a table" if get_origin(kind) is dict else "a list of numbers")
