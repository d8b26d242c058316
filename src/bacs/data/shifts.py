"""`shift`: test images away from what a model was trained on, by name."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bacs.corruptions import TEST, VALIDATION
from bacs.data import classes, imagenet
from bacs.data.corrupted import corrupt_images, load_corrupted_arrays
from bacs.data.image_set import ClassMask, Images, ImageSet, Labels, first
from bacs.data.load import NAMES, in_cifar10_order, load
from bacs.data.locate import data_root
from bacs.data.registry import CORRUPTED
from bacs.data.resize import resize, to_rgb
from bacs.errors import unknown_name

CORRUPTIBLE = ("cifar10", "cifar100", "svhn", "mnist", "fashion-mnist", "stl10", "cifar10-9", "imagenet")
"""Sets with a shift `<set>-c/<corruption>/<severity>`."""
_CORRUPTIBLE_C = tuple(f"{name}-c" for name in CORRUPTIBLE)
_PUBLISHED_C = (*CORRUPTED, "imagenet-c")


@dataclass(frozen=True, eq=False)
class Shift:
    """Images to adapt to; `labels` are for scoring alone, `class_mask` marks the classes that may occur."""

    name: str
    images: Images
    labels: Labels | None
    classes: tuple[str, ...]
    class_mask: ClassMask | None = None

    def __len__(self) -> int:
        return len(self.images)


def shift(
    name: str,
    *,
    source: str | None = None,
    data_dir: str | Path | None = None,
    seed: int = 0,
    limit: int | None = None,
    download: bool = False,
) -> Shift:
    """The shift called `name`, its first `limit` images.

    - "cifar10-c/fog/5": corrupted here from the clean test set, with `seed`; also "imagenet-c/...", "svhn-c/..."
    - "cifar10-c/fog/5@published": read from the published files (CIFAR-10-C, CIFAR-100-C, ImageNet-C)
    - "stl10" for a CIFAR-10 model, "svhn->mnist", "cifar10.1", "imagenet-r", a path: other data
    - "cifar10/clean", or "clean" with `source="cifar10"`: no shift at all

    >>> shift("cifar10-c/gaussian_noise/5", limit=1000).images.shape  # doctest: +SKIP
    (1000, 32, 32, 3)
    """
    if limit is not None and limit < 1:
        raise ValueError(f"limit must be >= 1, got {limit}")
    found = _find(name, source, Path(data_root(data_dir)), seed, limit, download)
    return Shift(name, found.images, found.labels, found.classes, found.class_mask)


def _find(name: str, source: str | None, root: Path, seed: int, limit: int | None, download: bool) -> ImageSet:
    if name == "clean":
        if source is None:
            raise ValueError("source must name a data set when the shift is 'clean', got None")
        return first(load(source, data_dir=root, download=download), limit)
    if name == "stl10":
        stl10 = first(load("stl10", data_dir=root, download=download), None)
        return first(_stl10_for_cifar10(stl10), limit)
    if name == "svhn->mnist":
        mnist = first(load("mnist", data_dir=root, download=download), limit)
        return ImageSet(name, to_rgb(resize(np.asarray(mnist.images[:]), 32)), mnist.labels, mnist.classes)
    set_name, *rest = name.split("/")
    if rest == ["clean"] and set_name in NAMES:
        return first(load(set_name, data_dir=root, download=download), limit)
    if name in NAMES or (len(rest) != 2 and Path(name).expanduser().exists()):
        return first(load(name, data_dir=root, download=download), limit)
    if len(rest) != 2:
        known = (*NAMES, "svhn->mnist", "clean", *(f"{each}/<corruption>/<severity>" for each in _CORRUPTIBLE_C))
        raise unknown_name("shift", name, known)
    if set_name not in _CORRUPTIBLE_C:
        if Path(name).expanduser().exists():
            return first(load(name, data_dir=root), limit)
        raise unknown_name(f"data set of shift {name!r}", set_name, _CORRUPTIBLE_C)
    corruption, severity, version = _parse(*rest)
    if version == "published":
        return first(_load_copy(set_name, corruption, severity, root, download), limit)
    clean = first(load(set_name.removesuffix("-c"), data_dir=root, download=download), limit)
    images = corrupt_images(clean.images, corruption, severity, seed)
    return ImageSet(name, images, clean.labels, clean.classes, clean.class_mask)


def _parse(corruption: str, cell: str) -> tuple[str, int, str | None]:
    severity, _, version = cell.partition("@")
    if corruption not in (*TEST, *VALIDATION):
        raise unknown_name("corruption", corruption, (*TEST, *VALIDATION))
    if severity not in ("1", "2", "3", "4", "5"):
        raise ValueError(f"severity must be 1..5, got {severity}")
    if "@" in cell and version != "published":
        raise unknown_name("version after '@'", version, ("published",))
    return corruption, int(severity), version or None


def _load_copy(set_name: str, corruption: str, severity: int, root: Path, download: bool) -> ImageSet:
    if set_name == "imagenet-c":
        return imagenet.load_corrupted(corruption, severity, root, download)
    if set_name not in CORRUPTED:
        raise unknown_name("set with '@published'", set_name, _PUBLISHED_C)
    return load_corrupted_arrays(set_name, corruption, severity, root, download)


def _stl10_for_cifar10(stl10: ImageSet) -> ImageSet:
    images, labels = in_cifar10_order(stl10)
    mask = np.array([name != "frog" for name in classes.CIFAR10])
    return ImageSet("stl10", images, labels, classes.CIFAR10, mask)
