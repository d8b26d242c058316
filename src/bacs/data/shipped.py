"""The part of Fashion-MNIST that ships with bacs: 6,000 training and 2,000 test images, balanced, MIT licence."""

from importlib.resources import files
from zipfile import BadZipFile

import numpy as np

from bacs.data.classes import FASHION
from bacs.data.formats.arrays import SPLITS
from bacs.data.image_set import ImageSet, check_labels
from bacs.errors import DataError, unknown_name

NAME = "fashion-mnist-part"


def load(split: str) -> ImageSet:
    """uint8 images [batch, 28, 28, 1] of the first 600 (train) or 200 (test) pictures of each class."""
    if split not in SPLITS:
        raise unknown_name("split", split, SPLITS)
    packed = files("bacs.data") / "fashion_mnist" / "part.npz"
    try:
        with packed.open("rb") as handle, np.load(handle, allow_pickle=False) as arrays:
            images, labels = arrays[f"{split}_images"], arrays[f"{split}_labels"]
    except (OSError, ValueError, KeyError, BadZipFile) as error:
        raise DataError(f"the images that ship with bacs cannot be read ({error}); install bacs again") from error
    return ImageSet(NAME, images, check_labels(labels, len(images), len(FASHION), packed), FASHION)
