"""Augmentation of uint8 NHWC images, vectorised: a batch is taken, cropped and flipped by one gather.

An augmentation makes a batch of the images at `positions` from `draws` uniform numbers an image, so that one seed
gives one result however a batch is cut up between processes. To add one, write a callable with that attribute.
"""

from dataclasses import dataclass
from typing import Any, Protocol

import torch
from jaxtyping import Float, Int64, UInt8
from torch import Tensor

Batch = UInt8[Tensor, "batch height width channels"]
Positions = Int64[Tensor, "batch"]


class Augmentation(Protocol):
    @property
    def draws(self) -> int:
        """How many uniform numbers in [0, 1) an image takes."""
        ...

    def __call__(self, images: Any, positions: Tensor, uniforms: Tensor) -> Tensor: ...


def take(images: Any, positions: Positions) -> Batch:
    """The images at these positions, of a tensor or of anything that numpy indices select from."""
    return images[positions] if isinstance(images, Tensor) else torch.from_numpy(images[positions.numpy()])


@dataclass(frozen=True)
class PadCropFlip:
    """A random window of the image padded with black, mirrored half of the time: the usual choice for CIFAR."""

    padding: int = 4
    flip: bool = True
    draws = 3

    def __post_init__(self) -> None:
        if self.padding < 0:
            raise ValueError(f"padding must be >= 0, got {self.padding}")

    def __call__(self, images: Any, positions: Positions, uniforms: Float[Tensor, "batch 3"]) -> Batch:
        batch = take(images, positions)
        count, height, width, channels = batch.shape
        shift = (uniforms[:, :2] * (2 * self.padding + 1)).long()
        column = torch.arange(width).expand(count, width)
        if self.flip:
            column = torch.where(uniforms[:, 2:] < 0.5, width - 1 - column, column)
        rows = torch.arange(height) + shift[:, :1]
        columns = column + shift[:, 1:]
        padded = batch.new_zeros(count, height + 2 * self.padding, width + 2 * self.padding, channels)
        padded[:, self.padding : self.padding + height, self.padding : self.padding + width] = batch
        return padded[torch.arange(count)[:, None, None], rows[:, :, None], columns[:, None, :]]


@dataclass(frozen=True)
class Identity:
    """The images as they are."""

    draws = 0

    def __call__(self, images: Any, positions: Positions, uniforms: Float[Tensor, "batch 0"]) -> Batch:
        return take(images, positions)
