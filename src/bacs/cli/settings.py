"""How `bacs adapt` is to adapt: the method, its settings from flags and files, and whether they fit together."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from bacs import toml
from bacs.cli.adapt import Wishes
from bacs.cli.source import check_save, method_for
from bacs.control.auto import check_taken
from bacs.errors import RecipeError
from bacs.methods import METHODS
from bacs.methods.catalogue import find
from bacs.methods.settings import AGREEMENT, NAMES, Settings, check_epochs
from bacs.predictions.writers import check_out
from bacs.predictive import check_accuracy, check_coverage

HERE = tuple(name for name in NAMES if name in Wishes.__dataclass_fields__)
"""Settings that have a flag."""


def method_of(w: Wishes) -> str:
    """As named, else the only one that a settings file has, else what suits the run."""
    if w.method is not None:
        return find(w.method)[0]
    if w.settings is not None:
        named = list(_tables(w.settings))
        if len(named) != 1:
            raise ValueError(f"method must say which of {', '.join(named)} in {w.settings} is meant")
        return find(named[0])[0]
    return method_for(w.run)


def settings_of(w: Wishes, method: str) -> tuple[Settings, Wishes]:
    """Complete settings, and the wishes with what a file says of epochs and batches; flags go before the file."""
    given = {name: getattr(w, name) for name in HERE if name != "posterior_weight" or w.posterior_weight is not None}
    if w.settings is not None:
        plain = {name: field.default for name, field in Wishes.__dataclass_fields__.items()}
        table = _tables(w.settings).get(method)
        if table is None:
            raise ValueError(f"settings must have a table [method.{method}], {w.settings} has none")
        known = (*NAMES, "epochs", "batch_size")
        toml.check_keys(f"{w.settings} [method.{method}]", table, list(known), required=[])
        open_ = {name: value for name, value in table.items() if getattr(w, name, None) == plain.get(name)}
        given |= {name: value for name, value in open_.items() if name in NAMES}
        taken = ("epochs", "batch_size", "posterior_weight")
        w = replace(w, **{name: value for name, value in open_.items() if name in taken})
    return Settings(**given), w


def _tables(file: Path) -> dict[str, dict[str, Any]]:
    table = toml.read(file)
    methods = table.get("method")
    if not isinstance(methods, dict) or set(table) != {"method"}:
        raise RecipeError(f"{file}: settings must be tables [method.<name>] and nothing else")
    return methods


def check_wishes(w: Wishes, method: str, settings: Settings) -> None:
    """Raises for what contradicts itself or cannot be, before anything is read."""
    check_chosen(method, settings)
    check_epochs(w.epochs)
    if w.online and w.epochs != 1:
        raise ValueError(f"epochs must be 1 with online: one pass both adapts and predicts, got {w.epochs}")
    if w.online and w.predict_batch_size is not None:
        raise ValueError("predict_batch_size must be left out with online: one pass both adapts and predicts")
    for name in ("batch_size", "predict_batch_size", "threads", "limit"):
        value = getattr(w, name)
        if value is not None and value < 1:
            raise ValueError(f"{name} must be at least 1, got {value}")
    if not w.images:
        raise ValueError("IMAGES must name a folder, a glob, pictures or an array file, got nothing")
    honest = METHODS[method].chooses or settings.temperature == AGREEMENT
    check_abstaining(w.coverage, w.accuracy, honest=honest)
    check_out(w.out, overwrite=w.overwrite)
    check_save(w.save, w.run, overwrite=w.overwrite)


def check_chosen(method: str, settings: Settings) -> None:
    """Raises if something is given that `auto` chooses."""
    if METHODS[method].chooses:
        plain = Settings().as_json()
        check_taken({name: value for name, value in settings.as_json().items() if value != plain[name]})


def check_abstaining(coverage: float | None, accuracy: float | None, *, honest: bool) -> None:
    """Raises for wishes that contradict each other, or that ask for more than the probabilities say."""
    if coverage is not None:
        check_coverage(coverage)
    if accuracy is None:
        return
    check_accuracy(accuracy)
    if coverage is not None:
        raise ValueError("coverage must be left out with accuracy, which decides how many images are answered for")
    if not honest:
        raise ValueError(
            "accuracy needs probabilities that agreement made honest: method auto, or temperature agreement"
        )
