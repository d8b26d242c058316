"""Encoded pictures of a client as the pixels that the members take."""

from collections.abc import Sequence

import numpy as np

from bacs.data.decode import MODES, TooLarge, decode_views
from bacs.ensemble import Ensemble
from bacs.errors import DataError
from bacs.preprocessing import Preprocessing, geometry
from bacs.serve.queue import Views
from bacs.serve.refusal import Refused

FORMATS = ("JPEG", "PNG", "WEBP")
"""What strangers may send. Pillow's other decoders are many and old."""


def preprocessings_of(ensemble: Ensemble) -> list[Preprocessing]:
    """The members' preprocessings, one for each geometry; none if pictures cannot be made to fit."""
    fits = {geometry(member.preprocessing): member.preprocessing for member in ensemble.members}
    known = [fit for fit in fits.values() if fit is not None and len(fit.mean) in MODES]
    return known if len(known) == len(fits) else []


def decode_pictures(encoded: Sequence[bytes], fits: Sequence[Preprocessing], *, max_pixels: int) -> Views:
    """uint8 NHWC pixels for each geometry; a Refused names the picture that is none."""
    decoded: list[list[np.ndarray]] = []
    for number, data in enumerate(encoded, start=1):
        try:
            decoded.append(decode_views(data, fits, formats=FORMATS, max_pixels=max_pixels))
        except DataError as error:
            reason = str(error).split(" (")[0]  # what Pillow says in brackets is its own business
            status = 413 if isinstance(error, TooLarge) else 422
            raise Refused(status, f"picture {number}: {reason}") from error
    views = list(zip(*decoded, strict=True))
    if any(len({pixels.shape for pixels in view}) > 1 for view in views):
        raise Refused(422, "pictures of one request must have one size: this model takes them as they are")
    return tuple(np.stack(view) for view in views)
