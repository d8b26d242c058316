"""Second views of a batch: changes that leave what an image shows as it was."""

import torch
from torch import Tensor
from torch.nn import functional

from bacs.errors import unknown_name

VIEWS = ("mirrored", "shifted")
REACH = 8
"""A shift is at most this part of the image: 1/8 of its height and width."""


def second_view(batch: Tensor, kind: str, *, seed: int, step: int) -> Tensor:
    """The batch mirrored left to right, or moved by a few pixels that seed and step decide.

    A stream that was saved thus sees the views that it would have seen.
    """
    check_view(batch, kind)
    if kind == "mirrored":
        return batch.flip(-1)
    generator = torch.Generator().manual_seed((seed + 1) * 1_000_003 + step)
    reach = [max(1, length // REACH) for length in batch.shape[-2:]]
    down, right = (int(torch.randint(-each, each + 1, (), generator=generator)) for each in reach)
    padded = functional.pad(batch, (reach[1], reach[1], reach[0], reach[0]), mode="replicate")
    height, width = batch.shape[-2:]
    top, left = reach[0] - down, reach[1] - right
    return padded[..., top : top + height, left : left + width]


def check_view(batch: Tensor, kind: str) -> None:
    """Raises for an unknown view, and for inputs that have none: tokens, rows of a table."""
    if kind not in VIEWS:
        raise unknown_name("view", kind, VIEWS)
    if batch.ndim != 4 or not batch.is_floating_point():
        raise ValueError(
            "a second view needs images [batch, channels, height, width] of floats, got "
            f"{str(batch.dtype).removeprefix('torch.')} of shape {list(batch.shape)}: choose an objective without views"
        )
