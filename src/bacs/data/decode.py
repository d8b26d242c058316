"""One encoded picture, from a file or from bytes, as upright 8-bit grey or RGB."""

import io
import os
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError

from bacs.errors import DataError, one_line

MODES = {1: "L", 3: "RGB"}
"""Pillow's mode for the number of channels that a model takes."""


def decode(source: Path | bytes, channels: int, *, formats: tuple[str, ...] | None = None) -> Image.Image:
    """The picture, or a DataError with the reason why there is none; `formats` names those of Pillow's to try.

    It is turned upright as its EXIF data say. What is transparent shows white. Of an animation the first frame is
    taken, of 16-bit values the upper eight bits, as Pillow does for colour. Other depths have no defined white.
    """
    try:
        with Image.open(_opened(source), formats=formats) as image:
            if 0 in image.size:
                raise DataError(f"it has no pixels ({image.width} x {image.height})")
            image.load()
            ImageOps.exif_transpose(image, in_place=True)
            return _converted(image, MODES[channels])
    except DataError:
        raise
    except UnidentifiedImageError as error:
        raise DataError("not a picture, or in a format that Pillow does not know") from error
    except PermissionError as error:
        raise DataError("permission denied") from error
    except FileNotFoundError as error:
        raise DataError("missing") from error
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise DataError(f"too large to be decoded safely ({one_line(error)})") from error
    # Damaged files make the decoders of Pillow raise whatever they like: struct.error, IndexError, SyntaxError, ...
    except Exception as error:
        raise DataError(f"damaged ({one_line(error)})") from error


def _opened(source: Path | bytes) -> Path | io.BytesIO:
    """What Pillow opens, after a look at it: to open a pipe would wait for ever."""
    if isinstance(source, bytes):
        if not source:
            raise DataError("empty")
        return io.BytesIO(source)
    if source.is_dir():
        os.listdir(source)  # raises if it was denied to us, which is then the reason
        raise DataError("a folder, not a picture")
    if not source.is_file():
        source.stat()  # raises if it is missing
        raise DataError("not a regular file")
    if source.stat().st_size == 0:
        raise DataError("empty")
    return source


def _converted(image: Image.Image, mode: str) -> Image.Image:
    if image.mode.startswith("I;16") or (image.mode == "I" and image.format == "PNG"):
        return Image.fromarray((np.asarray(image) >> 8).astype(np.uint8)).convert(mode)
    if image.mode in ("I", "F"):
        raise DataError("32 bits a pixel have no defined white: save it with 8 or 16")
    if image.has_transparency_data:
        white = Image.new("RGBA", image.size, "white")
        white.alpha_composite(image.convert("RGBA"))
        image = white
    return image if image.mode == mode else image.convert(mode)
