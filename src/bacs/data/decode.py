"""One encoded picture, of a file or of bytes, as upright 8-bit grey or RGB: every reader of pictures ends here."""

import io
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PIL import ExifTags, Image, UnidentifiedImageError

from bacs.errors import DataError, one_line
from bacs.preprocessing import Preprocessing

MODES = {1: "L", 3: "RGB"}
"""Pillow's mode for the number of channels that a model takes."""
TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
"""What brings a picture upright, by its EXIF orientation."""


class TooLarge(DataError):
    """A picture of more pixels than may be decoded; its header says so, and no more was read."""


def decode(
    picture: Path | bytes, channels: int, *, formats: tuple[str, ...] | None = None, max_pixels: int | None = None
) -> Image.Image:
    """The picture, or a DataError with the reason why there is none; `formats` names those of Pillow's to try.

    It is turned upright as its EXIF data say. What is transparent shows white. Of an animation the first frame is
    taken, of 16-bit values the upper eight bits, as Pillow does for colour. Other depths have no defined white.
    Without `max_pixels`, Pillow's own limit holds.
    """
    try:
        with Image.open(_check_content(picture), formats=formats) as image:
            if 0 in image.size:
                raise DataError(f"it has no pixels ({image.width} x {image.height})")
            if max_pixels is not None and image.width * image.height > max_pixels:
                raise TooLarge(f"at most {max_pixels} pixels are allowed, got {image.width} x {image.height}")
            image.load()
            return _convert(_turn_upright(image), MODES[channels])
    except DataError:
        raise
    except UnidentifiedImageError as error:
        if formats is not None:
            raise DataError(f"not a {', '.join(formats[:-1])} or {formats[-1]} picture") from error
        raise DataError("not a picture, or in a format that Pillow does not know") from error
    except PermissionError as error:
        raise DataError("permission denied") from error
    except FileNotFoundError as error:
        raise DataError("missing") from error
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise TooLarge(f"too large to be decoded safely ({one_line(error)})") from error
    # Damaged files make the decoders of Pillow raise whatever they like: struct.error, IndexError, SyntaxError, ...
    except Exception as error:
        raise DataError(f"damaged ({one_line(error)})") from error


def decode_file(path: Path) -> Image.Image:
    """The picture of a file as RGB; the error names the file."""
    try:
        return decode(path, 3)
    except DataError as error:
        raise DataError(f"{path}: {error}") from error


def decode_views(
    picture: Path | bytes,
    fits: Sequence[Preprocessing],
    *,
    formats: tuple[str, ...] | None = None,
    max_pixels: int | None = None,
) -> list[np.ndarray]:
    """The picture's uint8 HWC pixels at the size of each preprocessing."""
    counts = {len(fit.mean) for fit in fits}
    decoded = {channels: decode(picture, channels, formats=formats, max_pixels=max_pixels) for channels in counts}
    views = [fit.fit_picture(decoded[len(fit.mean)]) for fit in fits]
    return [np.asarray(view).reshape(view.height, view.width, -1) for view in views]


def _check_content(picture: Path | bytes) -> Path | io.BytesIO:
    """What Pillow opens, after a look at it: to open a pipe would wait for ever."""
    if isinstance(picture, bytes):
        if not picture:
            raise DataError("empty")
        return io.BytesIO(picture)
    if picture.is_dir():
        os.listdir(picture)  # raises if it was denied to us, which is then the reason
        raise DataError("a folder, not a picture")
    if not picture.is_file():
        picture.stat()  # raises if it is missing
        raise DataError("not a regular file")
    if picture.stat().st_size == 0:
        raise DataError("empty")
    return picture


def _turn_upright(image: Image.Image) -> Image.Image:
    try:
        orientation = image.getexif().get(ExifTags.Base.Orientation)
    except Exception:  # whatever Pillow's parser likes: the pixels are whole, and viewers show them as they lie
        return image
    return image.transpose(TURNS[orientation]) if orientation in TURNS else image


def _convert(image: Image.Image, mode: str) -> Image.Image:
    if image.mode.startswith("I;16") or (image.mode == "I" and image.format == "PNG"):
        return Image.fromarray((np.asarray(image) >> 8).astype(np.uint8)).convert(mode)
    if image.mode in ("I", "F"):
        raise DataError("32 bits per pixel have no defined white: save it with 8 or 16")
    if image.has_transparency_data:
        white = Image.new("RGBA", image.size, "white")
        white.alpha_composite(image.convert("RGBA"))
        image = white
    return image if image.mode == mode else image.convert(mode)
