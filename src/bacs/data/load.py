"""`load`: a data set by name or path."""

from pathlib import Path

import numpy as np

from bacs.data import classes, imagenet, shipped
from bacs.data.corrupted import PUBLISHED_COPIES, load_copy, parse_cell
from bacs.data.decode import decode_file
from bacs.data.folder import CENTRAL_CROP, FolderImages, check_depth, label_files, list_images
from bacs.data.formats import arrays
from bacs.data.image_set import ImageSet, check_labels
from bacs.data.locate import data_root, locate_files
from bacs.data.registry import PUBLISHED, Published
from bacs.data.resize import resize
from bacs.errors import DataError, unknown_name

SHARED = {"cifar10-9": "cifar10", "stl10-9": "stl10"}
"""Sets of the nine classes that CIFAR-10 and STL-10 share, both labelled in CIFAR-10's order, both at 32 pixels."""
NAMES = (*PUBLISHED, *SHARED, shipped.NAME, "imagenet", "imagenet-r")
MOST_CLASSES = 1_000_000
"""Of an array file, whose largest label says how many classes there are."""


def load(
    name: str | Path,
    split: str = "test",
    data_dir: str | Path | None = None,
    download: bool = False,
    size: int | None = None,
) -> ImageSet:
    """A data set by name ("cifar10") or by the path of an image folder, .npy, .npz or .safetensors file.

    Files are looked for below `data_dir`, else $BACS_DATA, else ~/.cache/bacs/data; `docs/data.md` says which.
    "cifar10-c/fog/5" (also "cifar100-c", "imagenet-c") reads one cell of the published corrupted sets.
    "test" is the set used for evaluation: for ImageNet the validation images. `size` applies to image folders:
    the central 224/256 of each image is resized to it; None leaves the files as they are (ImageNet: 224).

    Examples:
        >>> load("fashion-mnist-part", split="train").images.shape  # this one ships with bacs
        (6000, 28, 28, 1)
    """
    if size is not None and size < 1:
        raise ValueError(f"size must be at least 1 pixel, got {size}")
    root = data_root(data_dir)
    head, *cell = str(name).split("/")
    if head in PUBLISHED_COPIES:
        if len(cell) != 2:
            raise ValueError(f"name must be {head}/<corruption>/<severity>, got {name}")
        return load_copy(head, *parse_cell(cell[0], cell[1]), root, download)
    if name == shipped.NAME:
        return shipped.load(split)
    if isinstance(name, str) and name in NAMES:
        if name in PUBLISHED:
            return _load_published(name, PUBLISHED[name], split, root, download)
        if name in SHARED:
            return _load_shared(name, split, root, download)
        return imagenet.load(name, split, root, download, size or imagenet.SIZE)
    path = Path(name).expanduser()
    if path.exists():
        return load_path(path, split, size)
    if "/" in str(name) or path.suffix in arrays.SUFFIXES:
        raise DataError(f"{name} is neither a data set ({', '.join(NAMES)}) nor an existing file or folder")
    unknown = unknown_name("name", str(name), (*NAMES, *PUBLISHED_COPIES))
    raise ValueError(f"{unknown}; there is no such file or folder either")


def load_path(path: Path, split: str, size: int | None) -> ImageSet:
    """The images of a folder or array file; classes are sub-folders, or the numbers that the labels have.

    Only arrays that are named by their split have several.
    """
    if split not in arrays.SPLITS and path.suffix not in (".npz", ".safetensors"):
        raise unknown_name("split", split, arrays.SPLITS)
    if path.is_dir():
        files, names = list_images(path)
        check_depth(path)
        if size is None:
            first = decode_file(files[0])
            images = FolderImages(files, (first.height, first.width))
        else:
            images = FolderImages(files, (size, size), CENTRAL_CROP)
        found = tuple(sorted(set(names)))
        return ImageSet(str(path), images, label_files(names, found) if names else None, found)
    if path.suffix not in arrays.SUFFIXES:
        raise ValueError(f"name must be a folder or end in {', '.join(arrays.SUFFIXES)}, got {path}")
    if size is not None:
        raise ValueError(f"size must be None for array files, got {size}")
    pixels, labels = arrays.read(path, split)
    if labels is None:
        return ImageSet(str(path), pixels, None, ())
    labels = check_labels(labels, len(pixels), MOST_CLASSES, path)
    count = int(labels.max()) + 1 if labels.size else 0
    return ImageSet(str(path), pixels, labels, tuple(str(number) for number in range(count)))


def _load_published(name: str, published: Published, split: str, root: Path, download: bool) -> ImageSet:
    if split not in published.splits:
        raise unknown_name("split", split, published.splits)
    layout, paths = locate_files(name, published, split, root, download)
    images, labels = layout.read(paths)
    if labels is not None:
        labels = check_labels(labels, len(images), len(published.classes), paths[-1])
    return ImageSet(name, images, labels, published.classes)


def _load_shared(name: str, split: str, root: Path, download: bool) -> ImageSet:
    if split not in arrays.SPLITS:
        raise unknown_name("split", split, arrays.SPLITS)
    whole = _load_published(SHARED[name], PUBLISHED[SHARED[name]], split, root, download)
    images, labels = in_cifar10_order(whole) if name == "stl10-9" else (whole.images, whole.labels)
    assert labels is not None  # both sets have labels in these splits
    kept = labels != classes.CIFAR10.index("frog")
    number = {classes.CIFAR10.index(shared): place for place, shared in enumerate(classes.SHARED)}
    return ImageSet(
        name, images[kept], np.array([number[label] for label in labels[kept].tolist()], np.int64), classes.SHARED
    )


def in_cifar10_order(stl10: ImageSet) -> tuple[np.ndarray, np.ndarray]:
    """STL-10's images at 32 pixels, and their labels as CIFAR-10 numbers them; the monkeys are left out."""
    assert stl10.labels is not None
    kept = np.flatnonzero(stl10.labels != classes.STL10.index("monkey"))
    labels = [classes.STL10_TO_CIFAR10[label] for label in stl10.labels[kept].tolist()]
    return resize(stl10.images[kept], 32), np.array(labels, np.int64)
