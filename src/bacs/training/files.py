"""Random crops of image files, as ImageNet is trained on: decoded, cut and resized in parallel."""

import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from PIL import Image
from torch import Tensor

from bacs.data.decode import decode_file
from bacs.data.folder import FolderImages
from bacs.training.augment import Batch, Positions

LOG_RATIO = math.log(4 / 3)


@dataclass(frozen=True)
class RandomResizedCrop:
    """A random part of the image, 8 to 100 % of its area and 3:4 to 4:3 in shape, at the size of the evaluation.

    Mirrored half of the time. A part that would not fit into the image is made narrower, so nothing is drawn twice.
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
        left, top, right, bottom = box(image.width, image.height, uniforms, self.min_area)
        crop = image.resize(size, Image.Resampling.BICUBIC, box=(left, top, right, bottom))
        pixels = np.asarray(crop)
        return pixels[:, ::-1] if self.flip and uniforms[4] < 0.5 else pixels


def box(width: int, height: int, uniforms: list[float], min_area: float) -> tuple[float, float, float, float]:
    """(left, top, right, bottom) of the crop that four uniform numbers say: area, shape, place."""
    area = (min_area + (1 - min_area) * uniforms[0]) * width * height
    ratio = math.exp(LOG_RATIO * (2 * uniforms[1] - 1))
    crop_width, crop_height = min(math.sqrt(area * ratio), width), min(math.sqrt(area / ratio), height)
    left, top = uniforms[2] * (width - crop_width), uniforms[3] * (height - crop_height)
    return left, top, left + crop_width, top + crop_height
