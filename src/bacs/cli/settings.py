"""How `bacs adapt` is to adapt: the method, its settings from flags and files, and whether they fit together."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from bacs import toml
from bacs.cli.adapt import Wishes
from bacs.cli.runs import check_save, method_for
from bacs.control.auto import check_auto_arguments
from bacs.engine.place import check_threads
from bacs.ensemble import Ensemble
from bacs.errors import RecipeError
from bacs.files import check_writable
from bacs.inputs import check_batch_size, check_seed
from bacs.methods import METHODS
from bacs.methods.catalogue import find
from bacs.methods.settings import AGREEMENT, NAMES, Settings, check_epochs
from bacs.predictions.growing import check_growing
from bacs.predictions.labels import check_truth
from bacs.predictions.writers import check_table_file
from bacs.predictive import check_accuracy, check_coverage

WITH_FLAG = tuple(name for name in NAMES if name in Wishes.__dataclass_fields__)
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
    given = {name: getattr(w, name) for name in WITH_FLAG}
    if w.settings is not None:
        plain = {name: field.default for name, field in Wishes.__dataclass_fields__.items()}
        table = _tables(w.settings).get(method)
        if table is None:
            raise ValueError(f"settings must have a table [method.{method}], {w.settings} has none")
        known = (*NAMES, "epochs", "batch_size")
        toml.check_keys(f"{w.settings} [method.{method}]", table, list(known), required=[])
        open_ = {name: value for name, value in table.items() if getattr(w, name, None) == plain.get(name)}
        given |= {name: value for name, value in open_.items() if name in NAMES}
        w = replace(w, **{name: value for name, value in open_.items() if name in ("epochs", "batch_size")})
    return Settings(**given), w


def _tables(file: Path) -> dict[str, dict[str, Any]]:
    methods = toml.read_methods(file)
    if not all(isinstance(table, dict) for table in methods.values()):
        raise RecipeError(f"{file}: settings must be tables [method.<name>] and nothing else")
    return methods


def check_wishes(w: Wishes, method: str, settings: Settings) -> None:
    """Raises for flags that contradict each other or cannot be, before anything is read."""
    check_chosen(method, settings)
    check_epochs(w.epochs)
    if w.online and w.epochs != 1:
        raise ValueError(f"epochs must be 1 with online: one pass both adapts and predicts, got {w.epochs}")
    if w.online and w.predict_batch_size is not None:
        raise ValueError("predict_batch_size must be left out with online: one pass both adapts and predicts")
    if not w.online and settings.reset_every is not None:
        raise ValueError(f"reset_every needs online: offline there is no stream to reset, got {settings.reset_every}")
    check_seed(w.seed)
    for name in ("batch_size", "predict_batch_size", "threads", "limit"):
        if getattr(w, name) is not None:
            check_batch_size(getattr(w, name), name)
    check_threads(w.threads or 1)
    if not w.run.is_file() and (w.mean or w.std or w.model_arguments):
        raise ValueError(
            f"mean, std and model_arguments belong to weight files; {w.run} says them itself: leave them out"
        )
    if w.engine == "ray" and w.online:
        raise ValueError("engine ray must be left out with online: a stream takes one batch after the other")
    if not w.images:
        raise ValueError("IMAGES must name a folder, a glob, pictures or an array file, got nothing")
    honest = METHODS[method].chooses or settings.temperature == AGREEMENT
    check_abstaining(w.coverage, w.accuracy, honest=honest)
    if w.labels is not None:
        check_truth(w.labels)
    check_lasting(w)
    check_table_file(w.out, overwrite=w.overwrite or w.state is not None)
    check_save(w.save, w.run, w.out, overwrite=w.overwrite)


def name_unused(w: Wishes, method: str, settings: Settings) -> str | None:
    """What to say of flags that nothing comes of, such as a learning rate where no weight moves."""
    row, plain = METHODS[method], Settings()
    if row.chooses:
        return None
    idle = [name for name in WITH_FLAG if name not in row.uses and getattr(settings, name) != getattr(plain, name)]
    if w.epochs != 1 and row.adapts is None and settings.statistics != "running":
        idle.append("epochs")
    return f"{', '.join(idle)}: method {method} does not use it" if idle else None


def check_lasting(w: Wishes) -> None:
    """Raises for flags that contradict --state, or that need it."""
    if w.state is None:
        for name, given in (("follow", w.follow), ("IMAGES -", "-" in w.images)):
            if given:
                raise ValueError(f"{name} needs online and state: a folder that keeps the stream on its way")
        return
    if not w.online:
        raise ValueError("online must be given with state, which keeps a stream on its way")
    if w.save_every < 1:
        raise ValueError(f"save_every must be at least 1, got {w.save_every}")
    if "-" in w.images and (len(w.images) > 1 or w.follow):
        raise ValueError("IMAGES must be - alone, and without follow: standard input is read to its end")
    for name, given in (("save", w.save), ("labels", w.labels), ("strict", w.strict)):
        if given:
            raise ValueError(f"{name} must be left out with state: rows are written as they come")
    check_growing(w.out)
    check_writable("state", w.state)


def check_chosen(method: str, settings: Settings) -> None:
    """Raises if something is given that `auto` chooses."""
    if METHODS[method].chooses:
        plain = Settings().as_json()
        check_auto_arguments({name: value for name, value in settings.as_json().items() if value != plain[name]})


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


def check_accuracy_of(ensemble: Ensemble, accuracy: float | None) -> None:
    """Raises where accuracy is asked for and cannot be estimated."""
    if accuracy is not None and len(ensemble) < 2:
        raise ValueError("accuracy must be left out for a single network: it has nobody to agree with")
