"""Recipes: one TOML file says how an ensemble is trained. Validated once, here; unknown keys are errors."""

from collections.abc import Callable
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, get_type_hints

from bacs.errors import RecipeError, unknown_name
from bacs.preprocessing import Preprocessing
from bacs.toml import as_tuples, check_keys, check_recipe, check_types
from bacs.toml import read as toml_table
from bacs.training.augment import Identity, PadCropFlip, RandomResizedCrop
from bacs.training.schedule import Constant, Cosine, Linear
from bacs.training.settings import TrainingSettings, cross_entropy_with

SCHEDULES: dict[str, Callable[..., Any]] = {"linear": Linear, "cosine": Cosine, "constant": Constant}
AUGMENTATIONS: dict[str, Callable[..., Any]] = {
    "none": Identity,
    "pad_crop_flip": PadCropFlip,
    "random_resized_crop": RandomResizedCrop,
}


@dataclass(frozen=True)
class TrainingRecipe:
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

    def settings(self, seed: int) -> TrainingSettings:
        """The settings of one member."""
        made = {
            "schedule": _from_catalogue("schedule", self.schedule, SCHEDULES),
            "augment": _from_catalogue("augment", self.augment, AUGMENTATIONS),
            "objective": cross_entropy_with(self.label_smoothing),
            "seed": seed,
        }
        names = [field.name for field in fields(TrainingSettings) if field.name not in made]
        return TrainingSettings(**{name: getattr(self, name) for name in names}, **made)

    def given_preprocessing(self) -> Preprocessing | None:
        """The preprocessing that the recipe states, None if it is to be that of the data."""
        if self.preprocessing is None:
            return None
        names = [f.name for f in fields(Preprocessing)]
        check_keys("preprocessing", self.preprocessing, names, required=["mean", "std"])
        return Preprocessing.from_json(self.preprocessing)

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def read(path: str | Path) -> TrainingRecipe:
    """The recipe in a TOML file."""
    table = toml_table(path, "train")
    try:
        return parse(table)
    except RecipeError as error:
        raise RecipeError(f"{path}: {error}") from None


def parse(table: dict[str, Any]) -> TrainingRecipe:
    """The recipe of a table, with every value checked."""
    check_recipe(table, TrainingRecipe)
    recipe = TrainingRecipe(**table)
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


def _from_catalogue(key: str, table: dict[str, Any], catalogue: dict[str, Callable[..., Any]]) -> Any:
    """The catalogue's entry that a table names, made with the table's other values as arguments."""
    name = table.get("name")
    if name not in catalogue:
        raise RecipeError(str(unknown_name(f"{key}.name", name, list(catalogue))))
    made = catalogue[name]
    kinds = get_type_hints(made)
    allowed = [f.name for f in fields(made)] if isinstance(made, type) else []  # pyrefly: ignore[bad-argument-type]
    arguments = as_tuples({key: value for key, value in table.items() if key != "name"})
    check_keys(key, arguments, allowed, required=[])
    check_types(arguments, kinds, prefix=f"{key}.")
    return made(**arguments)
