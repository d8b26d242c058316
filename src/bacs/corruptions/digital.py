"""Digital: contrast, pixelate, JPEG compression."""

from io import BytesIO

import numpy as np
from numpy.random import Generator
from PIL import Image


def contrast(images, factor: float, generators: list[Generator]):
    """(x - mean) factor + mean, with the mean over the pixels of each channel of each image."""
    batch, height, width, channels = images.shape
    means = images.sum(axis=(1, 2), dtype=np.int64) / (height * width)
    values = np.arange(256)
    table = (np.clip((values - means[..., None]) * factor + means[..., None], 0, 255)).astype(np.uint8)
    rows = np.arange(batch * channels).reshape(batch, 1, 1, channels) * 256
    return table.ravel()[rows + images]


def pixelate(images, scale: float, generators: list[Generator]):
    """Shrunk by `scale` and grown back, both with a box filter."""
    height, width = images.shape[1:3]
    small = (max(1, int(width * scale)), max(1, int(height * scale)))
    out = np.empty_like(images)
    for target, image in zip(out, images, strict=True):
        shrunk = _picture(image).resize(small, Image.Resampling.BOX)
        target[:] = np.asarray(shrunk.resize((width, height), Image.Resampling.BOX)).reshape(target.shape)
    return out


def jpeg_compression(images, quality: int, generators: list[Generator]):
    """Written as JPEG and read again."""
    out = np.empty_like(images)
    for target, image in zip(out, images, strict=True):
        file = BytesIO()
        _picture(image).save(file, "JPEG", quality=quality)
        with Image.open(file, formats=("JPEG",)) as picture:
            target[:] = np.asarray(picture).reshape(target.shape)
    return out


def _picture(image: np.ndarray) -> Image.Image:
    return Image.fromarray(image[..., 0] if image.shape[-1] == 1 else image)
