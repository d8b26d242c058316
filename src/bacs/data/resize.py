"""Image sets in the size and number of channels that another set's model takes."""

import numpy as np
from jaxtyping import UInt8
from PIL import Image


def resize(
    images: UInt8[np.ndarray, "batch height width channels"], size: int
) -> UInt8[np.ndarray, "batch size size channels"]:
    """Every image at `size` x `size`: Pillow's bilinear filter, which averages when it shrinks."""
    resized = np.empty((len(images), size, size, images.shape[-1]), np.uint8)
    for row, image in enumerate(images):
        picture = Image.fromarray(np.ascontiguousarray(image.squeeze()))
        resized[row] = np.asarray(picture.resize((size, size), Image.Resampling.BILINEAR)).reshape(size, size, -1)
    return resized


def to_rgb(images: UInt8[np.ndarray, "batch height width 1"]) -> UInt8[np.ndarray, "batch height width 3"]:
    """Grey images with the grey in all three channels."""
    return np.repeat(images, 3, axis=-1)
