"""The choices that adaptation takes beside its method, checked where they enter.

A call of `bacs.adapt`, a stream, a saved file, a recipe and a record hold the same fields under the same names. Numbers
default to the paper's for small networks; what a method's row says of objective and statistics may be replaced here.
"""

import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from bacs import objectives
from bacs.adaptation.descend import OPTIMIZERS, POSTERIOR_STEPS
from bacs.adaptation.statistics import REFERENCES, RUNNING_WEIGHT, check_batch_weight
from bacs.adaptation.views import VIEWS
from bacs.errors import unknown_name
from bacs.methods.catalogue import Method

AGREEMENT = "agreement"


@dataclass(frozen=True)
class Settings:
    """Hyperparameters of one adaptation, kept with its result. None stands for the method's own, or the ensemble's."""

    learning_rate: float = 1e-3
    posterior_weight: float = 1e-4  # the paper's beta
    momentum: float = 0.9
    optimizer: str = "sgd"
    posterior_step: str = "proximal"
    min_variance: float = 1e-12
    objective: str | None = None
    objective_temperature: float = 1.0
    batch_weight: float | None = None  # r
    statistics: str = "source"  # what the share 1 - r comes from
    view: str = "mirrored"  # the second view of objectives that compare two
    temperature: float | str | None = None  # of predictions
    reset_every: int | None = None  # steps after which a stream goes back to its start

    def __post_init__(self) -> None:
        for name in ("learning_rate", "posterior_weight"):
            value = getattr(self, name)
            if not (_is_number(value) and value >= 0):
                raise ValueError(f"{name} must be a finite number >= 0, got {value!r}")
            object.__setattr__(self, name, float(value))
        if not (_is_number(self.momentum) and 0 <= self.momentum < 1):
            raise ValueError(f"momentum must be at least 0 and below 1, got {self.momentum!r}")
        object.__setattr__(self, "momentum", float(self.momentum))
        if not (_is_number(self.min_variance) and self.min_variance > 0):
            raise ValueError(f"min_variance must be > 0 and finite, got {self.min_variance!r}")
        for name, known in (
            ("optimizer", OPTIMIZERS),
            ("posterior_step", POSTERIOR_STEPS),
            ("statistics", REFERENCES),
            ("view", VIEWS),
        ):
            if getattr(self, name) not in known:
                raise unknown_name(name, getattr(self, name), known)
        if self.objective is not None:
            objectives.terms(self.objective)
        if self.batch_weight is not None:
            check_batch_weight(self.batch_weight)
        check_temperature("objective_temperature", self.objective_temperature)
        if self.temperature is not None and self.temperature != AGREEMENT:
            check_temperature("temperature", self.temperature)
        every = self.reset_every
        if every is not None and not (isinstance(every, int) and not isinstance(every, bool) and every >= 1):
            raise ValueError(f"reset_every must be a whole number of steps, at least 1, or None, got {every!r}")
        for name in ("objective_temperature", "batch_weight", "temperature"):  # a record has 1.0, whoever wrote 1
            if isinstance(getattr(self, name), int):
                object.__setattr__(self, name, float(getattr(self, name)))

    def of(self, method: Method) -> "Settings":
        """The same with nothing left open that the method's row decides."""
        named = method.objective if isinstance(method.objective, str) else None
        weight = RUNNING_WEIGHT if self.statistics == "running" and method.batch_weight == 1 else method.batch_weight
        return replace(
            self,
            objective=named if self.objective is None else self.objective,
            batch_weight=weight if self.batch_weight is None else self.batch_weight,
        )

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


NAMES = tuple(field.name for field in fields(Settings))
OF_STREAMS = ("reset_every", "guard")
"""What only streams can be told."""


def settings_used(method: Method, given: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that a method's predictions depend on, complete: what is not given has its default."""
    known = {name: given[name] for name in NAMES if name in given}
    settings, guard = Settings(**known).of(method), given.get("guard")
    check_guard(guard)
    guard = method.chooses if guard is None else guard
    if guard and not method.chooses:
        check_guarded(settings)
    complete = settings.as_json() | {"batch_size": given.get("batch_size", 128), "guard": guard}
    return {name: complete[name] for name in method.uses}


def check_guard(guard: Any) -> None:
    if guard is not None and not isinstance(guard, bool):
        raise ValueError(f"guard must be True, False or None (True for method 'auto' alone), got {guard!r}")


def check_guarded(settings: Settings) -> None:
    """Raises for what a guarded stream decides by itself."""
    if settings.reset_every is not None:
        raise ValueError(
            f"reset_every must be left out with guard, which decides when to go back, got {settings.reset_every}"
        )


def check_temperature(name: str, value: Any) -> None:
    if not (_is_number(value) and value > 0):
        hint = f", or {AGREEMENT!r}" if name == "temperature" else ""
        raise ValueError(f"{name} must be a finite number > 0{hint}, got {value!r}")


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= sys.float_info.max


def check_epochs(epochs: int | float) -> None:
    if not (_is_number(epochs) and epochs >= 0):
        raise ValueError(f"epochs must be a finite number >= 0, got {epochs!r}")
