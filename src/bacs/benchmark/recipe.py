"""Recipes of sweeps: one TOML file says which methods meet which shifts. Validated once, here."""

import math
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, get_type_hints

from bacs.benchmark.cell import STREAMED, tag_of
from bacs.benchmark.worlds import world_of
from bacs.corruptions import TEST, VALIDATION
from bacs.data import World, continual_names, gradual_names
from bacs.data.corrupted import PUBLISHED_COPIES
from bacs.data.shifts import CORRUPTIBLE
from bacs.errors import RecipeError, did_you_mean
from bacs.methods.catalogue import METHODS, PROTOCOLS
from bacs.methods.settings import OF_STREAMS, settings_used
from bacs.toml import as_tuples, check_keys, check_recipe, check_types, read_methods
from bacs.toml import read as toml_table

CORRUPTIBLE_C = [f"{name}-c" for name in CORRUPTIBLE]


@dataclass(frozen=True)
class Recipe:
    """Methods x protocols x epochs on every shift; settings mean what they mean in `bacs.adapt`.

    Shifts are named one by one (`shifts`), or by `data`, `corruptions` and `severities`; `published` reads the
    corrupted images from their published files instead of making them. `limit` takes the first images of each shift
    only. Streams of several shifts are also scored in windows of `window` images; a table `[world.<name>]` is one whose
    corruptions change on the way. A table `[method.tent]` has settings and epochs of that method alone. A table
    `[[variants]]` is one more row: a `method` with other settings, such as `reset_every` or `guard`.
    """

    methods: tuple[str, ...]
    title: str = ""
    shifts: tuple[str, ...] = ()
    data: str | None = None
    corruptions: tuple[str, ...] = TEST
    severities: tuple[int, ...] = (5,)
    published: bool = False
    protocols: tuple[str, ...] = ("offline",)
    window: int = 1000
    epochs: tuple[int | float, ...] = (1,)
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
    reset_every: int | None = None
    guard: bool | None = None
    variants: tuple[dict[str, Any], ...] = ()
    method: dict[str, dict[str, Any]] = field(default_factory=dict)
    world: dict[str, dict[str, Any]] = field(default_factory=dict)

    def shift_names(self) -> list[str]:
        """Every shift of the recipe, in its order."""
        if self.data is None:
            return list(self.shifts)
        return [f"{self.data}/{name}/{level}{self.version}" for name in self.corruptions for level in self.severities]

    def sequences(self, protocol: str) -> dict[str, list[str]]:
        """Shifts that follow each other without a reset, by the name of the whole."""
        assert self.data is not None
        if protocol == "gradual":
            names = gradual_names(self.data, self.corruptions, suffix=self.version)
            return {f"{self.data}/gradual{self.version}": names}
        return {
            f"{self.data}/continual/{level}{self.version}": continual_names(
                self.data, self.corruptions, severity=level, suffix=self.version
            )
            for level in self.severities
        }

    def worlds(self) -> dict[str, World]:
        """The worlds of the recipe, by the name of their stream."""
        made = {name: world_of(name, table, self.corruptions, self.seed) for name, table in self.world.items()}
        return {f"{self.data}/world/{name}": world for name, world in made.items()}

    @property
    def version(self) -> str:
        """What the name of a shift ends in."""
        return "@published" if self.published else ""

    def rows(self) -> list[tuple[str, dict[str, Any]]]:
        """Every method, then every variant: its method, and the settings that tell it apart."""
        apart = [(own["method"], own) for own in self.variants]
        return [(name, {}) for name in self.methods] + [
            (name, {key: own[key] for key in METHODS[name].uses if key in own}) for name, own in apart
        ]

    def settings_of(
        self, method: str, own: dict[str, Any] | None = None, *, protocol: str = "offline"
    ) -> dict[str, Any]:
        """The settings that a method uses, as a variant (`own`), its own table or else the recipe has them."""
        return settings_for(method, vars(self) | self.method.get(method, {}) | (own or {}), protocol=protocol)

    def epochs_of(self, method: str) -> tuple[int | float, ...]:
        """How many passes adapt, one row of a table each; 0 for a method that does not adapt."""
        return tuple(self.method.get(method, {}).get("epochs", self.epochs)) if METHODS[method].adapts else (0,)

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def read(path: str | Path, *, settings: str | Path | None = None, limit: int | None = None) -> Recipe:
    """The recipe in a TOML file; `settings` may be another with `[method.<name>]` tables that go before its own."""
    table = toml_table(path, "sweep")
    if settings is not None:
        chosen, own = read_methods(settings), table.get("method", {})
        for name, values in (("method", own), *chosen.items()):
            if not isinstance(values, dict):
                raise RecipeError(f"{settings}: method.{name} must be a table, got {values!r}")
        table["method"] = own | {name: own.get(name, {}) | values for name, values in chosen.items()}
    try:
        recipe = parse(table)
        return recipe if limit is None else check_sweep_recipe(replace(recipe, limit=limit))
    except RecipeError as error:
        raise RecipeError(f"{path}: {error}") from None


def parse(table: dict[str, Any]) -> Recipe:
    """The recipe of a table, with every value checked."""
    check_recipe(table, Recipe)
    if ("shifts" in table) == ("data" in table):
        raise RecipeError("the recipe must name its shifts by one of the keys 'shifts' and 'data'")
    for key in ("corruptions", "severities", "published"):
        if key in table and "data" not in table:
            raise RecipeError(f"{key} belongs to 'data', not to 'shifts'")
    recipe = check_sweep_recipe(Recipe(**as_tuples(table)))
    if "severities" in table and recipe.protocols == ("gradual",):
        raise RecipeError("severities must be left out for protocol 'gradual', which goes through all five")
    if "window" in table and not set(recipe.protocols) & set(STREAMED):
        raise RecipeError(f"window belongs to the protocols {', '.join(STREAMED)}, got {list(recipe.protocols)}")
    return recipe


def restore(values: dict[str, Any]) -> Recipe:
    """The recipe that `Recipe.as_json` described; what an older version did not have is as it was then."""
    return Recipe(**as_tuples(values))


def check_sweep_recipe(recipe: Recipe) -> Recipe:
    """The recipe, after its values have been looked at."""
    for key in ("methods", "protocols", "epochs", "shifts" if recipe.data is None else "severities"):
        check_list(key, getattr(recipe, key))
    _check_names("methods", recipe.methods, list(METHODS))
    _check_names("protocols", recipe.protocols, list(PROTOCOLS))
    for protocol in recipe.protocols:
        if protocol in STREAMED and recipe.data is None:
            raise RecipeError(f"protocol {protocol!r} belongs to 'data', whose corruptions it strings together")
    if bool(recipe.world) != ("world" in recipe.protocols):
        raise RecipeError("protocol 'world' and tables [world.<name>] must come together")
    if recipe.world and recipe.published:
        raise RecipeError("published must be left out for protocol 'world', whose images are made on the way")
    for name in recipe.world:
        if not re.fullmatch(r"[\w-]+", name):
            raise RecipeError(f"the name of a world must be of letters, digits, _ and -, got {name!r}")
    recipe.worlds()
    if recipe.data is not None:
        check_corrupted(recipe.data, recipe.corruptions, recipe.severities, published=recipe.published)
    for key, value in (("limit", recipe.limit), ("window", recipe.window)):
        if value is not None and value < 1:
            raise RecipeError(f"{key} must be at least 1, got {value}")
    for name, own in recipe.method.items():
        _check_names("the tables [method.<name>]", (name,), list(recipe.methods))
        _check_own(name, own)
    for own in recipe.variants:
        _check_variant(own)
    check_list("variants", tuple((name, tag_of(own)) for name, own in recipe.rows()))
    for name, own in recipe.rows():
        for protocol in recipe.protocols:
            recipe.settings_of(name, own, protocol=protocol)
    if set(recipe.protocols) == {"offline"}:
        for own in (vars(recipe), *recipe.method.values(), *recipe.variants):
            _check_no_stream(own)
    for name, _ in recipe.rows():
        epochs = recipe.epochs_of(name)
        check_list(f"epochs of {name}", epochs)
        if METHODS[name].adapts and not (min(epochs) > 0 and math.isfinite(max(epochs))):
            raise RecipeError(f"epochs must be above 0 and finite, got {list(epochs)} for {name}")
    return recipe


def check_corrupted(data: str, corruptions: tuple[str, ...], severities: tuple[int, ...], *, published: bool) -> None:
    """Raises unless these are corruptions that there are for this data set."""
    _check_names("data", (data,), CORRUPTIBLE_C)
    if published:
        _check_names("data of published files", (data,), list(PUBLISHED_COPIES))
    check_list("corruptions", corruptions)
    _check_names("corruptions", corruptions, [*TEST, *VALIDATION])
    for severity in severities:
        if not 1 <= severity <= 5:
            raise RecipeError(f"severities must be 1..5, got {severity}")


def settings_for(method: str, given: dict[str, Any], *, protocol: str) -> dict[str, Any]:
    """The settings that a method uses under a protocol; raises for a value that adaptation would refuse."""
    try:
        settings = settings_used(METHODS[method], given)
    except ValueError as error:
        raise RecipeError(str(error)) from error
    if settings["batch_size"] < 1:
        raise RecipeError(f"batch_size must be at least 1, got {settings['batch_size']}")
    return {name: value for name, value in settings.items() if protocol != "offline" or name not in OF_STREAMS}


def _check_own(name: str, own: dict[str, Any]) -> None:
    if not isinstance(own, dict):
        raise RecipeError(f"method.{name} must be a table, got {own!r}")
    known = [*METHODS[name].uses, *(["epochs"] if METHODS[name].adapts else [])]
    check_keys(f"method.{name}", own, known, required=[])
    check_types(own, get_type_hints(Recipe), prefix=f"method.{name}.")


def _check_variant(own: dict[str, Any]) -> None:
    if not isinstance(own.get("method"), str):
        raise RecipeError(f"a table [[variants]] must name its method, got {own!r}")
    _check_names("method of a table [[variants]]", (own["method"],), list(METHODS))
    check_keys("a table [[variants]]", own, ["method", *METHODS[own["method"]].uses], required=[])
    check_types(own, get_type_hints(Recipe) | {"method": str}, prefix="variants.")


def _check_no_stream(own: Mapping[str, Any]) -> None:
    for key in OF_STREAMS:
        if own.get(key) is not None:
            raise RecipeError(f"{key} must be left out for protocol 'offline': it is for streams, got {own[key]!r}")


def check_list(key: str, values: tuple[Any, ...]) -> None:
    if not values or len(set(values)) != len(values):
        raise RecipeError(f"{key} must have one value or more, each once, got {list(values)}")


def _check_names(key: str, values: tuple[str, ...], known: list[str]) -> None:
    for value in values:
        if value not in known:
            raise RecipeError(f"{key} must be among {', '.join(known)}; got {value!r}{did_you_mean(value, known)}")
