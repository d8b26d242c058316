"""What adaptation minimises on unlabelled inputs: logits in, one number out.

To add an objective, write a function `logits -> scalar` and name it in `OBJECTIVES`.
"""

from collections.abc import Callable

from jaxtyping import Float
from torch import Tensor

Objective = Callable[[Tensor], Tensor]


def entropy(logits: Float[Tensor, "batch classes"]) -> Float[Tensor, "batch"]:
    """H[p(y|x)] of each row, in nats; from logits, so that p = 0 stays finite.

    H = -sum_y p(y|x) log p(y|x)
    """
    log_p = logits.log_softmax(dim=-1)
    return -(log_p.exp() * log_p).sum(dim=-1)


def mean_entropy(logits: Float[Tensor, "batch classes"]) -> Float[Tensor, ""]:
    """(1/m) sum_j H(Y | x_j, w): the paper's objective on one batch."""
    return entropy(logits).mean()


OBJECTIVES: dict[str, Objective] = {"entropy": mean_entropy}
