"""Digital: contrast, pixelate, JPEG compression, saturation."""

from io import BytesIO

import numpy as np
from numpy.random import Generator
from PIL import Image

from bacs.corruptions.constants import Saturation

# In each sixth of the hue circle, what red, green and blue are: 0 value, 1 low, 2 falling, 3 rising.
_SECTORS = np.array([(0, 2, 1, 1, 3, 0), (3, 0, 0, 2, 1, 1), (1, 1, 3, 0, 0, 2)])


def contrast(images, factor: float, generators: list[Generator]):
    """(x - mean) factor + mean, with the mean over the pixels of each channel of each image."""
    batch, height, width, channels = images.shape
    sums = images.reshape(batch, height, -1).sum(axis=1, dtype=np.int64).reshape(batch, width, channels).sum(axis=1)
    means = (sums / (height * width))[..., None]
    table = np.clip((np.arange(256) - means) * factor + means, 0, 255).astype(np.uint8)
    starts = np.tile(np.arange(batch * channels).reshape(batch, 1, channels) * 256, (1, 1, width))
    return table.ravel().take(images.reshape(batch, height, -1) + starts).reshape(images.shape)


def saturate(images, constants: Saturation, generators: list[Generator]):
    """HSV saturation times a factor plus an offset, clipped; grey has the hue of red. One channel: unchanged.

    In float64 and by way of the hue, as the published scripts did: many results are whole numbers but for rounding.
    """
    if images.shape[3] == 1:
        return images.copy()
    red, green, blue = (images[..., channel] / 255 for channel in range(3))
    value = np.maximum(np.maximum(red, green), blue)
    spread = value - np.minimum(np.minimum(red, green), blue)
    coloured, is_green, is_blue = spread > 0, value == green, value == blue
    hue = np.where(is_blue, red - green, np.where(is_green, blue - red, green - blue))
    hue /= np.where(coloured, spread, 1)
    hue += np.where(is_blue, 4.0, np.where(is_green, 2.0, 0.0))
    hue *= coloured
    hue /= 6
    hue += hue < 0
    hue *= 6
    saturation = spread / np.where(value == 0, 1, value) * constants.factor + constants.offset
    np.clip(saturation, 0, 1, out=saturation)
    sector = hue.astype(np.intp)
    fraction = hue - sector
    parts = np.empty((4, *value.shape))
    parts[0] = value
    parts[1] = value * (1 - saturation)
    parts[2] = value * (1 - fraction * saturation)
    parts[3] = value * (1 - (1 - fraction) * saturation)
    parts *= 255
    cells = np.arange(value.size).reshape(value.shape)
    out = np.empty_like(images)
    for channel, order in enumerate(_SECTORS):
        out[..., channel] = parts.take((order * value.size).take(sector) + cells)
    return out


def pixelate(images, scale: float, generators: list[Generator]):
    """Shrunk by `scale` and grown back, both with a box filter: growing, each pixel shows the one it lies in."""
    _, height, width, channels = images.shape
    small_height, small_width = max(1, int(height * scale)), max(1, int(width * scale))
    rows = ((np.arange(height) + 0.5) * (small_height / height)).astype(int)
    columns = ((np.arange(width) + 0.5) * (small_width / width)).astype(int)
    # Bytes, since NumPy is slow to move three of them at a time.
    columns = (columns[:, None] * channels + np.arange(channels)).ravel()
    out = np.empty(images.shape, np.uint8)  # never turned as the input may be: rows must be lines of memory
    for target, image in zip(out, images, strict=True):
        shrunk = _to_picture(image).resize((small_width, small_height), Image.Resampling.BOX)
        wide = _to_bytes(shrunk).reshape(small_height, -1).take(columns, axis=1, mode="clip")
        wide.take(rows, axis=0, out=target.reshape(height, -1), mode="clip")
    return out


def jpeg_compression(images, quality: int, generators: list[Generator]):
    """Written as JPEG and read again; straight by Pillow's decoder, since the header is known."""
    out = np.empty_like(images)
    for target, image in zip(out, images, strict=True):
        file, picture = BytesIO(), _to_picture(image)
        picture.save(file, "JPEG", quality=quality)
        picture = Image.frombytes(picture.mode, picture.size, file.getvalue(), "jpeg", picture.mode, "")
        target[:] = _to_bytes(picture).reshape(target.shape)
    return out


def _to_picture(image: np.ndarray) -> Image.Image:
    """As `Image.fromarray`, which takes longer to find out what is known here."""
    height, width, channels = image.shape
    return Image.frombytes("L" if channels == 1 else "RGB", (width, height), np.ascontiguousarray(image))


def _to_bytes(picture: Image.Image) -> np.ndarray:
    return np.frombuffer(picture.tobytes(), np.uint8)
