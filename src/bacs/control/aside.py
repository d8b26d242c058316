"""Adapted weights that do not answer at present: asked with every look, and taken up when they agree as well again."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from torch import Tensor

from bacs.adaptation.loop import Mover
from bacs.methods import live

Weights = list[dict[str, Tensor]]  # of each member, as `live.pack` gives them


class Aside:
    """Weights, statistics and the optimiser's memory of each member; None if nothing is set aside."""

    def __init__(self, weights: Weights | None = None) -> None:
        self.weights = weights

    def __bool__(self) -> bool:
        return self.weights is not None

    @contextmanager
    def in_place(self, movers: Sequence[Mover]) -> Iterator[None]:
        """Lets the weights that are set aside answer for a moment."""
        assert self.weights is not None
        here = copy_weights(movers)
        put_weights(movers, self.weights)
        try:
            yield
        finally:
            put_weights(movers, here)

    def pack(self) -> dict[str, dict[str, Tensor]]:
        return {f"aside-{index}": own for index, own in enumerate(self.weights or [])}


def copy_weights(movers: Sequence[Mover]) -> Weights:
    return [{name: tensor.clone() for name, tensor in live.pack(mover).items()} for mover in movers]


def put_weights(movers: Sequence[Mover], weights: Weights) -> None:
    for mover, own in zip(movers, weights, strict=True):
        live.unpack(mover, own)
