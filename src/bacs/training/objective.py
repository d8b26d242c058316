"""What training minimises: (logits, labels) -> scalar. A function of your own goes into `fit(objective=...)`."""

from collections.abc import Callable
from functools import partial

from jaxtyping import Float, Int64
from torch import Tensor
from torch.nn import functional

TrainingObjective = Callable[[Tensor, Tensor], Tensor]


def cross_entropy(
    logits: Float[Tensor, "batch classes"], labels: Int64[Tensor, "batch"], *, label_smoothing: float = 0.0
) -> Float[Tensor, ""]:
    """-(1/m) sum_j sum_y t_jy log p(y | x_j), the target t mixed with `label_smoothing` of the uniform distribution."""
    return functional.cross_entropy(logits, labels, label_smoothing=label_smoothing)


def smoothed(label_smoothing: float) -> TrainingObjective:
    """Cross entropy with this much label smoothing."""
    if not 0 <= label_smoothing < 1:
        raise ValueError(f"label_smoothing must be at least 0 and below 1, got {label_smoothing}")
    return partial(cross_entropy, label_smoothing=label_smoothing)
