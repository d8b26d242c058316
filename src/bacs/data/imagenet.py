"""ImageNet and its relatives: folders named by wnid; a class's number is its place among the 1,000 sorted wnids."""

from collections.abc import Iterable
from functools import cache
from importlib.resources import files as package_files
from pathlib import Path

import numpy as np

from bacs.data.download import Remote
from bacs.data.folder import CENTRAL_CROP, FolderImages, label_files, list_images
from bacs.data.image_set import ImageSet
from bacs.data.locate import obtain
from bacs.errors import DataError, unknown_name

SIZE = 224
_RENDITIONS = Remote(
    "https://people.eecs.berkeley.edu/~hendrycks/imagenet-r.tar",
    "imagenet-r.tar",
    "sha256:18c6bf493b39a0d975d48e587437f562caab9c52ae6327dcfa9dd8eb54aa1b52",
    ("imagenet-r",),
)
_FAMILIES = {
    "noise": ("md5:e80562d7f6c3f8834afb1ecf27252745", ("gaussian_noise", "shot_noise", "impulse_noise")),
    "blur": ("md5:2d8e81fdd8e07fef67b9334fa635e45c", ("defocus_blur", "glass_blur", "motion_blur", "zoom_blur")),
    "weather": ("md5:33ffea4db4d93fe4a428c40a6ce0c25d", ("snow", "frost", "fog", "brightness")),
    "digital": (
        "md5:89157860d7b10d5797849337ca2e5c03",
        ("contrast", "elastic_transform", "pixelate", "jpeg_compression"),
    ),
    "extra": ("md5:d492dfba5fc162d8ec2c3cd8ee672984", ("speckle_noise", "gaussian_blur", "spatter", "saturate")),
}


@cache
def wnids() -> tuple[tuple[str, ...], np.ndarray]:
    """The 1,000 sorted wnids, and the mask of the 200 that ImageNet-R shows."""
    text = package_files("bacs.data").joinpath("imagenet_wnids.txt").read_text()
    rows = [line.split() for line in text.splitlines()]
    mask = np.array([len(row) == 2 for row in rows])
    mask.flags.writeable = False  # shared by every caller
    return tuple(row[0] for row in rows), mask


def load(name: str, split: str, root: Path, download: bool, size: int) -> ImageSet:
    """ImageNet's training or validation images ("test"), or ImageNet-R."""
    if name == "imagenet-r":
        if split != "test":
            raise unknown_name("split", split, ("test",))
        folders = [root / "imagenet-r", root / "ImageNet-R", root]
        return read(_locate(name, folders, _RENDITIONS, root, download), name, size)
    if split not in ("train", "test", "val"):
        raise unknown_name("split", split, ("train", "test", "val"))
    part = "train" if split == "train" else "val"
    parents = ("imagenet", "ImageNet", "ILSVRC2012", "ILSVRC/Data/CLS-LOC", ".")
    return read(_locate(name, [root / parent / part for parent in parents], None, root, download), name, size)


def load_corrupted(corruption: str, severity: int, root: Path, download: bool) -> ImageSet:
    """One published cell of ImageNet-C, whose files are 224 x 224 already."""
    family, (checksum, members) = next(row for row in _FAMILIES.items() if corruption in row[1][1])
    url = f"https://zenodo.org/records/2235448/files/{family}.tar"
    remote = Remote(url, f"imagenet-c/{family}.tar", checksum, members)
    parents = [root / "imagenet-c", root / "ImageNet-C", root]
    folders = [parent / above / corruption / str(severity) for parent in parents for above in (".", family)]
    folder = _locate(f"imagenet-c/{corruption}/{severity}", folders, remote, root, download)
    return read(folder, "imagenet-c", SIZE, crop=None)


def read(folder: Path, name: str, size: int, crop: float | None = CENTRAL_CROP) -> ImageSet:
    """The images of `folder`/<wnid>/*, labelled among the 1,000 classes."""
    classes, renditions = wnids()
    files, names = list_images(folder)
    if not names:
        raise DataError(f"{folder}: images must be sorted into one folder for each wnid (n01440764, ...)")
    mask = renditions if name == "imagenet-r" else None
    known = {wnid for number, wnid in enumerate(classes) if mask is None or mask[number]}
    if foreign := sorted(set(names) - known):
        raise DataError(f"{folder}: {foreign[0]} is none of the {len(known)} wnids of {name}")
    return ImageSet(name, FolderImages(files, (size, size), crop), label_files(names, classes), classes, mask)


def _locate(name: str, folders: Iterable[Path], remote: Remote | None, root: Path, download: bool) -> Path:
    folders = list(folders)
    here = next((folder for folder in folders if _has_wnids(folder)), None)
    if here is None and remote is not None and (download or (root / remote.path).exists()):
        obtain([remote], root)
        here = next((folder for folder in folders if _has_wnids(folder)), None)
    if here is None:
        origin = remote.url if remote else "https://image-net.org (after registration; it cannot be downloaded here)"
        raise DataError(
            f"{name}: put one folder of images for each wnid into {folders[0]}, from {origin}\n"
            "or name another data folder by data_dir or the environment variable BACS_DATA"
        )
    return here


def _has_wnids(folder: Path) -> bool:
    known = set(wnids()[0])
    return folder.is_dir() and any(child.name in known and child.is_dir() for child in folder.iterdir())
