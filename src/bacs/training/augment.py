"""Augmentation of uint8 NHWC images: of tensors by one gather, of image files decoded and cropped in parallel.

An augmentation makes a batch of the images at `positions` from `draws` uniform numbers per image, so that one seed
gives one result however a batch is cut up between processes. To add one, write a callable with that attribute.
"""

import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from jaxtyping import Float, Int64, UInt8
from PIL import Image
from torch import Tensor

from bacs.data.decode import decode_file
from bacs.data.folder import FolderImages

Batch = UInt8[Tensor, "batch height width channels"]
Positions = Int64[Tensor, "batch"]

LOG_RATIO = math.log(4 / 3)
"""Of the widest crop of an image file."""


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


@dataclass(frozen=True)
class RandomResizedCrop:
    """A random part of an image file, 8 to 100 % of its area and 3:4 to 4:3 in shape, at the size of the evaluation.

    Mirrored half of the time: what ImageNet is trained on. A part that would not fit into the image is made narrower,
    so nothing is drawn twice.
    """

    min_area: float = 0.08
    flip: bool = True
    draws = 5

    def __post_init__(self) -> None:
        if not 0 < self.min_area <= 1:
            raise ValueError(f"min_area must be above 0 and at most 1, got {self.min_area}")

    def __call__(self, images: Any, positions: Positions, uniforms: Float[Tensor, "batch 5"]) -> Batch:
        if not isinstance(images, FolderImages):
            raise TypeError(f"random_resized_crop reads image files, got {type(images).__name__}; use pad_crop_flip")
        height, width = images.size
        batch = np.empty((len(positions), height, width, 3), np.uint8)

        def fill(row: int) -> None:
            batch[row] = self._crop(images.files[int(positions[row])], (width, height), uniforms[row].tolist())

        with ThreadPoolExecutor(images.threads) as pool:
            list(pool.map(fill, range(len(positions))))
        return torch.from_numpy(batch)

    def _crop(self, file: Path, size: tuple[int, int], uniforms: list[float]) -> np.ndarray:
        image = decode_file(file)
        left, top, right, bottom = crop_box(image.width, image.height, uniforms, self.min_area)
        crop = image.resize(size, Image.Resampling.BICUBIC, box=(left, top, right, bottom))
        pixels = np.asarray(crop)
        return pixels[:, ::-1] if self.flip and uniforms[4] < 0.5 else pixels


def crop_box(width: int, height: int, uniforms: list[float], min_area: float) -> tuple[float, float, float, float]:
    """(left, top, right, bottom) of the crop that four uniform numbers say: area, shape, place."""
    area = (min_area + (1 - min_area) * uniforms[0]) * width * height
    ratio = math.exp(LOG_RATIO * (2 * uniforms[1] - 1))
    crop_width, crop_height = min(math.sqrt(area * ratio), width), min(math.sqrt(area / ratio), height)
    left, top = uniforms[2] * (width - crop_width), uniforms[3] * (height - crop_height)
    return left, top, left + crop_width, top + crop_height
