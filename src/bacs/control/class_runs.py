"""Whether classes arrive in runs: the labels of batches that follow each other differ more than by chance.

How many classes a batch seems to hold is a weak sign of it: under noise a batch of cats is called many things, and a
mixed one may be called a frog throughout. How much the labels of one batch differ from those of the next is a strong
one, right or wrong as they are: where classes are mixed, every batch is called the same mixture.
"""

import math

import torch
from jaxtyping import Int64
from torch import Tensor

MEMORY = 8
"""Batches that are compared."""

UNEVEN = 4.0
"""Standard errors by which batches differ more than by chance, where classes arrive in runs."""

EVENED = 0.3
"""Of what mixed batches differ by chance, the part that batch statistics take away: they make batches alike."""


def unevenness(counts: Int64[Tensor, "batches classes"], by_chance: float = 1.0) -> float:
    """By how many standard errors batches differ more than draws from one distribution would.

    (X / d - c) / sqrt(2 / d), where X is the chi-square of homogeneity, d = (batches - 1)(classes - 1) its mean, over
    classes that occur, and c what draws differ by: 1, unless something makes them alike.
    """
    seen = counts[:, counts.sum(dim=0) > 0].double()
    degrees = (seen.shape[0] - 1) * (seen.shape[1] - 1)
    if degrees < 1:
        return 0.0
    expected = seen.sum(dim=1, keepdim=True) * seen.sum(dim=0) / seen.sum()
    chi_square = float(((seen - expected).square() / expected).sum())
    return (chi_square / degrees - by_chance) / math.sqrt(2 / degrees)


class ClassRuns:
    """How often each class was named in the last batches. Who names them must be the same throughout."""

    def __init__(self) -> None:
        self.counts: list[Tensor] = []
        self.by_chance = 1.0

    def add(self, labels: Int64[Tensor, "images"], classes: int, *, batch_weight: float = 0.0) -> None:
        """Takes in the labels of a batch, which were given by so much of its own statistics."""
        self.counts = [*self.counts, labels.cpu().bincount(minlength=classes)][-MEMORY:]
        self.by_chance = 1 - EVENED * batch_weight

    def forget(self) -> None:
        self.counts = []

    @property
    def are_ruled_out(self) -> bool:
        """Whether as many batches as are ever compared differ no more than by chance."""
        return len(self.counts) == MEMORY and not self.are_seen

    @property
    def are_seen(self) -> bool:
        return len(self.counts) > 1 and unevenness(torch.stack(self.counts), self.by_chance) > UNEVEN

    def pack(self) -> dict[str, Tensor]:
        return {"counts": torch.stack(self.counts)} if self.counts else {}

    def unpack(self, group: dict[str, Tensor]) -> None:
        self.counts = list(group["counts"]) if "counts" in group else []
