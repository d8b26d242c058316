"""Encoded pictures of a client as the pixels that the members take."""

import io
import warnings
from collections.abc import Sequence

import numpy as np
from PIL import Image, UnidentifiedImageError

from bacs.data.decode import MODES, decode
from bacs.ensemble import Ensemble
from bacs.errors import DataError
from bacs.preprocessing import Preprocessing
from bacs.serve.queue import Views
from bacs.serve.refusal import Refused
from bacs.serve.stepping import geometry

FORMATS = ("JPEG", "PNG", "WEBP")
"""What strangers may send. Pillow's other decoders are many and old."""


def preprocessings_of(ensemble: Ensemble) -> list[Preprocessing]:
    """The members' preprocessings, one for each geometry; none if pictures cannot be made to fit."""
    fits = {geometry(member.preprocessing): member.preprocessing for member in ensemble.members}
    known = [fit for fit in fits.values() if fit is not None and len(fit.mean) in MODES]
    return known if len(known) == len(fits) else []


def decode_pictures(encoded: Sequence[bytes], fits: Sequence[Preprocessing], *, max_pixels: int) -> Views:
    """uint8 NHWC pixels for each geometry; a Refused names the picture that is none."""
    views: list[list[np.ndarray]] = [[] for _ in fits]
    for number, data in enumerate(encoded, start=1):
        try:
            _check_size(data, max_pixels)
            decoded = {channels: decode(data, channels, formats=FORMATS) for channels in {len(f.mean) for f in fits}}
        except DataError as error:
            reason = str(error).split(" (")[0]  # what Pillow says in brackets is its own business
            raise Refused(422, f"picture {number}: {reason}") from error
        for view, fit in zip(views, fits, strict=True):
            picture = fit.fitted(decoded[len(fit.mean)])
            view.append(np.asarray(picture).reshape(picture.height, picture.width, -1))
    if any(len({pixels.shape for pixels in view}) > 1 for view in views):
        raise Refused(422, "pictures of one request must have one size: this model takes them as they are")
    return tuple(np.stack(view) for view in views)


def _check_size(data: bytes, max_pixels: int) -> None:
    """Reads the header alone: what is too large must not be decoded to find that out."""
    if not data:
        raise DataError("empty")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)  # our own limit is told below
            with Image.open(io.BytesIO(data), formats=FORMATS) as image:
                width, height = image.size
    except UnidentifiedImageError as error:
        raise DataError("not a JPEG, PNG or WebP picture") from error
    except Image.DecompressionBombError as error:
        raise Refused(413, f"a picture may have at most {max_pixels} pixels") from error
    except Exception as error:  # a damaged header makes Pillow raise whatever it likes
        raise DataError("damaged") from error
    if width * height > max_pixels:
        raise Refused(413, f"a picture may have at most {max_pixels} pixels, got {width} x {height}")
