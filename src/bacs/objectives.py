"""What adaptation minimises on unlabelled inputs: a function of what was seen, one number out.

An objective's parameters say what it looks at, and nothing else is computed for it:

`logits`  [batch, classes], the member's own
`peers`   [peers, batch, classes], the logits of the other members, without gradient
`view`    [batch, classes], the member's own logits of a second view of the same images

To add an objective, write such a function and name it in `OBJECTIVES`. A weighted sum is written as one:
`"entropy + 0.5 * consistency"`.
"""

import inspect
import math
import re
from collections.abc import Callable
from typing import NamedTuple

from jaxtyping import Float
from torch import Tensor

from bacs.errors import unknown_name

Objective = Callable[..., Tensor]


class Seen(NamedTuple):
    """What one member's objective may look at, on one batch."""

    logits: Tensor
    peers: Tensor | None = None
    view: Tensor | None = None


OPTIONAL = ("peers", "view")


def entropy(logits: Float[Tensor, "*batch classes"]) -> Float[Tensor, "*batch"]:
    """H[p(y|x)] of each row, in nats; from logits, so that p = 0 stays finite.

    H = -sum_y p(y|x) log p(y|x)
    """
    log_p = logits.log_softmax(dim=-1)
    return -(log_p.exp() * log_p).sum(dim=-1)


def mean_entropy(logits: Float[Tensor, "batch classes"]) -> Float[Tensor, ""]:
    """(1/m) sum_j H(Y | x_j, w): the paper's objective on one batch."""
    return entropy(logits).mean()


def information_maximisation(logits: Float[Tensor, "batch classes"]) -> Float[Tensor, ""]:
    """(1/m) sum_j H[p(y|x_j)] - H[(1/m) sum_j p(y|x_j)]: each prediction sure, all of them together varied.

    Minus the mutual information of inputs and labels; it cannot fall by giving every image one class.
    """
    log_mean = logits.log_softmax(dim=-1).logsumexp(dim=0) - math.log(len(logits))
    return mean_entropy(logits) - entropy(log_mean)


def consistency(logits: Float[Tensor, "batch classes"], view: Float[Tensor, "batch classes"]) -> Float[Tensor, ""]:
    """(1/m) sum_j JS[p(y|x_j), p(y|x'_j)]: how far the predictions of two views of an image are apart.

    JS[p, p'] = H[(p + p') / 2] - (H[p] + H[p']) / 2, from 0 to log 2; gradients reach both.
    """
    both = logits.log_softmax(dim=-1).logaddexp(view.log_softmax(dim=-1)) - math.log(2)
    return (entropy(both) - (entropy(logits) + entropy(view)) / 2).mean()


def ensemble_teacher(
    logits: Float[Tensor, "batch classes"], peers: Float[Tensor, "peers batch classes"]
) -> Float[Tensor, ""]:
    """(1/m) sum_j -sum_y t(y|x_j) log p(y|x_j), where t = (1/k) sum_i p_i is the members' mean and has no gradient."""
    shares = peers.softmax(dim=-1).sum(dim=0) + logits.detach().softmax(dim=-1)
    teacher = shares / (len(peers) + 1)
    return -(teacher * logits.log_softmax(dim=-1)).sum(dim=-1).mean()


OBJECTIVES: dict[str, Objective] = {
    "entropy": mean_entropy,
    "information_maximisation": information_maximisation,
    "consistency": consistency,
    "ensemble_teacher": ensemble_teacher,
}


def terms(objective: str | Objective) -> list[tuple[float, Objective]]:
    """Weights and functions of an objective: a function, a name, or a sum of names with weights.

    Examples:
        >>> [(weight, function.__name__) for weight, function in terms("entropy + 0.5 * consistency")]
        [(1.0, 'mean_entropy'), (0.5, 'consistency')]
    """
    if callable(objective):
        return [(1.0, objective)]
    found = []
    for part in str(objective).split("+"):
        match = re.fullmatch(r"(?:([\d.]+(?:e-?\d+)?)\s*\*\s*)?(\w+)", part.strip())
        if match is None or match[2] not in OBJECTIVES:
            raise unknown_name("objective", objective if match is None else match[2], list(OBJECTIVES))
        try:
            weight = float(match[1] or 1)
        except ValueError:
            raise ValueError(f"objective must have numbers as weights, got {part.strip()!r}") from None
        found.append((weight, OBJECTIVES[match[2]]))
    return found


def looks_at(function: Objective) -> tuple[str, ...]:
    """What a function takes beside the member's own logits, by the names of its parameters."""
    return tuple(name for name in OPTIONAL if name in inspect.signature(function).parameters)


def needs(objective: str | Objective) -> frozenset[str]:
    """What an objective looks at beside the member's own logits: `peers`, `view`, both or nothing."""
    return frozenset(name for _, function in terms(objective) for name in looks_at(function))


def compose(objective: str | Objective, *, temperature: float = 1.0) -> Callable[[Seen], Tensor]:
    """The function sum_i weight_i T f_i(z / T) of what was seen: the plain sum at T = 1.

    A network that is too sure of itself has no entropy left to descend where it is wrong; tempered, it has. The factor
    T makes up for the gradient's 1 / T.
    """
    parts = [(weight * temperature, function, looks_at(function)) for weight, function in terms(objective)]

    def temper(logits: Tensor) -> Tensor:
        return logits if temperature == 1 else logits / temperature

    def value(seen: Seen) -> Tensor:
        total: Tensor | None = None
        for scale, function, names in parts:
            part = function(temper(seen.logits), **{name: temper(getattr(seen, name)) for name in names})
            part = part if scale == 1 else scale * part
            total = part if total is None else total + part
        assert total is not None
        return total

    return value
