"""What one training run minimises and by which numbers, checked where they enter. Defaults are the paper's."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from jaxtyping import Float, Int64
from torch import Tensor
from torch.nn import functional

from bacs.errors import unknown_name
from bacs.posteriors import KINDS
from bacs.training.augment import Augmentation, PadCropFlip
from bacs.training.schedule import Linear, Schedule

PRECISIONS = ("float32", "bfloat16")

TrainingObjective = Callable[[Tensor, Tensor], Tensor]
"""(logits, labels) -> scalar. A function of your own goes into `fit(objective=...)`."""


def cross_entropy(
    logits: Float[Tensor, "batch classes"], labels: Int64[Tensor, "batch"], *, label_smoothing: float = 0.0
) -> Float[Tensor, ""]:
    """-(1/m) sum_j sum_y t_jy log p(y | x_j), the target t mixed with `label_smoothing` of the uniform distribution."""
    return functional.cross_entropy(logits, labels, label_smoothing=label_smoothing)


def cross_entropy_with(label_smoothing: float) -> TrainingObjective:
    """Cross entropy with this much label smoothing."""
    if not 0 <= label_smoothing < 1:
        raise ValueError(f"label_smoothing must be at least 0 and below 1, got {label_smoothing}")
    return partial(cross_entropy, label_smoothing=label_smoothing)


@dataclass(frozen=True)
class TrainingSettings:
    """Hyperparameters of one member's training; `fit` has them as arguments."""

    epochs: int
    batch_size: int = 128
    learning_rate: float = 0.1
    momentum: float = 0.9
    nesterov: bool = False
    weight_decay: float = 5e-4
    decay_norm: bool = True
    schedule: Schedule = field(default_factory=Linear)
    augment: Augmentation = field(default_factory=PadCropFlip)
    objective: TrainingObjective = cross_entropy
    posterior: str = "swag_diag"
    collect_from: float = 160 / 300
    collections_per_epoch: int = 1
    precision: str = "float32"
    seed: int = 0

    def __post_init__(self) -> None:
        for name, value in (
            ("epochs", self.epochs),
            ("batch_size", self.batch_size),
            ("collections_per_epoch", self.collections_per_epoch),
        ):
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ValueError(f"{name} must be a whole number >= 1, got {value!r}")
        for name, value in (("learning_rate", self.learning_rate), ("weight_decay", self.weight_decay)):
            if not (isinstance(value, (int, float)) and value >= 0 and math.isfinite(value)):
                raise ValueError(f"{name} must be a finite number >= 0, got {value!r}")
        if not 0 <= self.momentum < 1:
            raise ValueError(f"momentum must be at least 0 and below 1, got {self.momentum!r}")
        if self.nesterov and self.momentum == 0:
            raise ValueError("nesterov needs a momentum > 0, got 0")
        if not 0 <= self.collect_from < 1:
            raise ValueError(f"collect_from must be at least 0 and below 1, got {self.collect_from!r}")
        collected = [name for name, kind in KINDS.items() if kind.of_iterates]
        if self.posterior not in collected:
            raise unknown_name("posterior", self.posterior, collected)
        if self.precision not in PRECISIONS:
            raise unknown_name("precision", self.precision, PRECISIONS)
