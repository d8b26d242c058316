"""The numbers that adaptation takes, checked where they enter. Defaults are the paper's for small networks."""

import math
from dataclasses import asdict, dataclass
from typing import Any

from bacs.adaptation.step import OPTIMIZERS, POSTERIOR_STEPS
from bacs.errors import unknown_name


@dataclass(frozen=True)
class Settings:
    """Hyperparameters of one adaptation, kept with its result."""

    learning_rate: float = 1e-3
    posterior_weight: float = 1e-4  # the paper's beta
    momentum: float = 0.9
    optimizer: str = "sgd"
    posterior_step: str = "proximal"
    min_variance: float = 1e-12

    def __post_init__(self) -> None:
        for name, value in (
            ("learning_rate", self.learning_rate),
            ("posterior_weight", self.posterior_weight),
        ):
            if not (isinstance(value, (int, float)) and value >= 0 and math.isfinite(value)):
                raise ValueError(f"{name} must be a finite number >= 0, got {value!r}")
            object.__setattr__(self, name, float(value))
        if not 0 <= self.momentum < 1:
            raise ValueError(f"momentum must be at least 0 and below 1, got {self.momentum!r}")
        object.__setattr__(self, "momentum", float(self.momentum))
        if not (self.min_variance > 0 and math.isfinite(self.min_variance)):
            raise ValueError(f"min_variance must be > 0 and finite, got {self.min_variance!r}")
        if self.optimizer not in OPTIMIZERS:
            raise unknown_name("optimizer", self.optimizer, OPTIMIZERS)
        if self.posterior_step not in POSTERIOR_STEPS:
            raise unknown_name("posterior_step", self.posterior_step, POSTERIOR_STEPS)

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def check_epochs(epochs: int | float) -> None:
    if isinstance(epochs, bool) or not isinstance(epochs, (int, float)) or not (epochs >= 0 and math.isfinite(epochs)):
        raise ValueError(f"epochs must be a finite number >= 0, got {epochs!r}")
