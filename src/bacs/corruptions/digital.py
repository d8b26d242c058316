"""Digital: contrast, pixelate, JPEG compression, saturation."""

from io import BytesIO

import numpy as np
from numpy.random import Generator
from PIL import Image

from bacs.corruptions.constants import Saturation


def contrast(images, factor: float, generators: list[Generator]):
    """(x - mean) factor + mean, with the mean over the pixels of each channel of each image."""
    batch, height, width, channels = images.shape
    sums = images.reshape(batch, height, -1).sum(axis=1, dtype=np.int64).reshape(batch, width, channels).sum(axis=1)
    means = (sums / (height * width))[..., None]
    table = np.clip((np.arange(256) - means) * factor + means, 0, 255).astype(np.uint8)
    rows = np.arange(batch * channels).reshape(batch, 1, 1, channels) * 256
    return table.ravel().take(rows + images)


def saturate(images, constants: Saturation, generators: list[Generator]):
    """HSV saturation times a factor plus an offset, clipped; grey has the hue of red. One channel: unchanged."""
    if images.shape[3] == 1:
        return images.copy()
    red, green, blue = (images[..., channel].astype(np.float32) for channel in range(3))
    value = np.maximum(np.maximum(red, green), blue)
    spread = value - np.minimum(np.minimum(red, green), blue)
    grey = spread == 0
    with np.errstate(divide="ignore", invalid="ignore"):
        saturation = np.nan_to_num(spread / value) * np.float32(constants.factor) + np.float32(constants.offset)
        pull = np.minimum(saturation, 1) * value / np.where(grey, 1, spread)
    out = np.empty_like(images)
    for index, channel in enumerate((red, green, blue)):
        distance = value - channel
        if index and constants.offset:
            distance[grey] = 1
        out[..., index] = np.maximum(value - pull * distance, 0)
    return out


def pixelate(images, scale: float, generators: list[Generator]):
    """Shrunk by `scale` and grown back, both with a box filter: growing, each pixel shows the one it lies in."""
    height, width = images.shape[1:3]
    small_height, small_width = max(1, int(height * scale)), max(1, int(width * scale))
    rows = ((np.arange(height) + 0.5) * (small_height / height)).astype(int)
    columns = ((np.arange(width) + 0.5) * (small_width / width)).astype(int)
    out = np.empty_like(images)
    for target, image in zip(out, images, strict=True):
        shrunk = np.asarray(_picture(image).resize((small_width, small_height), Image.Resampling.BOX))
        shrunk.reshape(small_height, small_width, -1).take(columns, axis=1).take(rows, axis=0, out=target)
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
