"""`shift`: test images away from what a model was trained on, by name."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from bacs.data import classes
from bacs.data.corrupted import PUBLISHED_COPIES, corrupt_images, load_copy, parse_cell
from bacs.data.image_set import ImageSet, take_first
from bacs.data.load import NAMES, in_cifar10_order, load
from bacs.data.locate import data_root
from bacs.data.resize import resize, to_rgb
from bacs.errors import unknown_name

CORRUPTIBLE = (
    *("cifar10", "cifar100", "svhn", "mnist", "usps", "fashion-mnist", "fashion-mnist-part"),
    *("stl10", "cifar10-9", "imagenet"),
)
"""Sets with a shift `<set>-c/<corruption>/<severity>`."""
_CORRUPTIBLE_C = tuple(f"{name}-c" for name in CORRUPTIBLE)

FOREIGN_DIGITS = {"svhn->mnist": ("mnist", 32, 3), "mnist->usps": ("usps", 28, 1), "usps->mnist": ("mnist", 16, 1)}
"""Digits of another set, at the size and in the channels of the one that a model was trained on."""


def shift(
    name: str,
    *,
    source: str | None = None,
    data_dir: str | Path | None = None,
    seed: int = 0,
    limit: int | None = None,
    download: bool = False,
) -> ImageSet:
    """The shift called `name`, its first `limit` images.

    - "cifar10-c/fog/5": corrupted here from the clean test set, with `seed`; also "imagenet-c/...", "svhn-c/..."
    - "cifar10-c/fog/5@published": read from the published files (CIFAR-10-C, CIFAR-100-C, ImageNet-C)
    - "stl10" for a CIFAR-10 model, "svhn->mnist", "usps->mnist", "mnist->usps": the classes that both have
    - "cifar10.1", "imagenet-r", a path: other data
    - "cifar10/clean", or "clean" with `source="cifar10"`: no shift at all

    Examples:
        >>> shift("fashion-mnist-part-c/gaussian_noise/5", limit=100).images.shape
        (100, 28, 28, 1)
    """
    if limit is not None and limit < 1:
        raise ValueError(f"limit must be >= 1, got {limit}")
    found = _find(name, source, data_root(data_dir), seed, limit, download)
    return replace(found, name=name)


def _find(name: str, source: str | None, root: Path, seed: int, limit: int | None, download: bool) -> ImageSet:
    if name == "clean":
        if source is None:
            raise ValueError("source must name a data set when the shift is 'clean', got None")
        return take_first(load(source, data_dir=root, download=download), limit)
    if name == "stl10":
        return take_first(_stl10_for_cifar10(load("stl10", data_dir=root, download=download)), limit)
    if name in FOREIGN_DIGITS:
        digits, size, channels = FOREIGN_DIGITS[name]
        found = take_first(load(digits, data_dir=root, download=download), limit)
        images = resize(np.asarray(found.images[:]), size)
        return ImageSet(name, to_rgb(images) if channels == 3 else images, found.labels, found.classes)
    head, *rest = name.split("/")
    if head in _CORRUPTIBLE_C and len(rest) == 2:
        return _make_corrupted(head, rest[0], rest[1], root, seed, limit, download)
    if head in NAMES and rest == ["clean"]:
        return take_first(load(head, data_dir=root, download=download), limit)
    if name in NAMES or Path(name).expanduser().exists():
        return take_first(load(name, data_dir=root, download=download), limit)
    if len(rest) == 2:
        raise unknown_name(f"data set of shift {name!r}", head, _CORRUPTIBLE_C)
    known = (*NAMES, *FOREIGN_DIGITS, "clean", *(f"{each}/<corruption>/<severity>" for each in _CORRUPTIBLE_C))
    raise unknown_name("shift", name, known)


def _make_corrupted(
    head: str, corruption: str, cell: str, root: Path, seed: int, limit: int | None, download: bool
) -> ImageSet:
    digit, at, version = cell.partition("@")
    corruption, severity = parse_cell(corruption, digit)
    if at and version != "published":
        raise unknown_name("version after '@'", version, ("published",))
    if at:
        if head not in PUBLISHED_COPIES:
            raise unknown_name("data set of an '@published' shift", head, PUBLISHED_COPIES)
        return take_first(load_copy(head, corruption, severity, root, download), limit)
    clean = take_first(load(head.removesuffix("-c"), data_dir=root, download=download), limit)
    images = corrupt_images(clean.images, corruption, severity, seed)
    return ImageSet(head, images, clean.labels, clean.classes, clean.class_mask)


def _stl10_for_cifar10(stl10: ImageSet) -> ImageSet:
    images, labels = in_cifar10_order(stl10)
    mask = np.array([name != "frog" for name in classes.CIFAR10])
    return ImageSet("stl10", images, labels, classes.CIFAR10, mask)
