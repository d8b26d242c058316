"""Corrupted images: made when they are asked for, or read from copies in the published layout."""

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypedDict

import numpy as np

from bacs.corruptions import TEST, VALIDATION, corrupt
from bacs.data import imagenet
from bacs.data.image_set import Images, ImageSet, check_labels, first_images
from bacs.data.locate import locate_files
from bacs.data.registry import CORRUPTED
from bacs.errors import DataError, unknown_name
from bacs.files import read_json
from bacs.schema import Count, Rule, mismatch

PUBLISHED_COPIES = (*CORRUPTED, "imagenet-c")
MANIFEST = "bacs.json"
"""Beside copies that `bacs corrupt` wrote: what they were made from, and which severities they hold."""


@dataclass(frozen=True)
class CorruptedImages:
    """`images`, corrupted one by one as they are asked for: the same pixels in whatever order or batch."""

    images: Images
    corruption: str
    severity: int
    seed: int
    constants: str

    @property
    def shape(self) -> tuple[int, ...]:
        return self.images.shape

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: Any) -> np.ndarray:
        chosen = np.arange(len(self))[index]
        numbers = np.atleast_1d(chosen)
        clean = self.images[numbers]
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            batch = np.stack(list(pool.map(self._corrupt, clean, numbers.tolist()))) if len(clean) else clean
        return batch[0] if chosen.ndim == 0 else batch

    def __getitems__(self, indices: list[int]) -> list[np.ndarray]:
        """The images of a whole batch, made in parallel; torch's DataLoader asks for it by this name."""
        return list(self[indices])

    def first(self, count: int) -> "CorruptedImages":
        """The first `count` images."""
        return CorruptedImages(
            first_images(self.images, count), self.corruption, self.severity, self.seed, self.constants
        )

    def _corrupt(self, image: np.ndarray, number: int) -> np.ndarray:
        how = {"seed": self.seed, "constants": self.constants, "first_index": number}
        return corrupt(image[np.newaxis], self.corruption, self.severity, **how)[0]


def corrupt_images(images: Images, corruption: str, severity: int, seed: int, *, first_index: int = 0) -> Images:
    """The corrupted images: an array for an array, whose first image is number `first_index` of its data set;
    a lazy sequence for a lazy one."""
    constants = constants_for(images)
    if isinstance(images, np.ndarray):
        return corrupt(images, corruption, severity, seed=seed, constants=constants, first_index=first_index)
    return CorruptedImages(images, corruption, severity, seed, constants)


def constants_for(images: Images) -> str:
    """ "imagenet" from 128 pixels on, else "cifar": blur radii and the like are given in pixels."""
    return "imagenet" if min(images.shape[1:3]) >= 128 else "cifar"


def parse_cell(corruption: str, severity: str) -> tuple[str, int]:
    """The corruption and the severity that two parts of a name say."""
    if corruption not in (*TEST, *VALIDATION):
        raise unknown_name("corruption", corruption, (*TEST, *VALIDATION))
    if severity not in ("1", "2", "3", "4", "5"):
        raise ValueError(f"severity must be 1..5, got {severity}")
    return corruption, int(severity)


def load_copy(set_name: str, corruption: str, severity: int, root: Path, download: bool) -> ImageSet:
    """One corruption and severity of a published set."""
    if set_name == "imagenet-c":
        return imagenet.load_corrupted(corruption, severity, root, download)
    return _load_array_copy(set_name, corruption, severity, root, download)


def _load_array_copy(name: str, corruption: str, severity: int, root: Path, download: bool) -> ImageSet:
    # Memory-mapped: rows (s - 1) * n to s * n are severity s of the n test images, in their order.
    published = CORRUPTED[name]
    layout, paths = locate_files(name, published, corruption, root, download)
    images, labels = layout.read(paths)
    severities = _severities(paths[0].with_name(MANIFEST))
    if severity not in severities:
        raise DataError(f"{paths[0]}: holds severities {severities}, not {severity}")
    if len(images) % len(severities):
        raise DataError(f"{paths[0]}: {len(images)} images are not {len(severities)} severities of one test set")
    assert labels is not None  # the layout names a file of labels
    labels = check_labels(labels, len(images), len(published.classes), paths[1])
    count = len(images) // len(severities)
    start = severities.index(severity) * count
    return ImageSet(name, images[start : start + count], labels[start : start + count], published.classes)


def _severities(manifest: Path) -> list[int]:
    if not manifest.exists():  # the published sets, which have all five
        return [1, 2, 3, 4, 5]
    return read_settings(manifest)["severities"]


class CopySettings(TypedDict):
    """What the manifest beside copies says."""

    data: str
    images: Count
    severities: list[Annotated[int, Rule("1 to 5", lambda severity: 1 <= severity <= 5)]]
    seed: int
    constants: str


def read_settings(manifest: Path) -> dict[str, Any]:
    """The settings that copies were made with."""
    try:
        found = read_json(manifest)
    except (OSError, ValueError) as error:
        raise DataError(f"{manifest}: damaged ({error})") from error
    wrong = mismatch(found, CopySettings, "")
    if wrong is None and len(set(found["severities"])) != len(found["severities"]):
        wrong = f"severities must be there once each, got {found['severities']}"
    if wrong is not None:
        raise DataError(f"{manifest}: damaged ({wrong})")
    return found
