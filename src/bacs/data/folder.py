"""Folders of image files, decoded in parallel when a batch is asked for and never held whole in memory."""

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from bacs.data.decode import decode_file
from bacs.errors import DataError
from bacs.preprocessing import crop_and_resize

EXTENSIONS = (".jpeg", ".jpg", ".png", ".bmp", ".webp", ".tif", ".tiff", ".ppm", ".gif", ".jfif", ".pgm")
CENTRAL_CROP = 224 / 256
"""The part of the shorter side that ImageNet's evaluation keeps."""


@dataclass(frozen=True)
class FolderImages:
    """Image files as a lazy sequence of uint8 RGB images of `size` x `size` pixels.

    With `crop` the central square, `crop` times the shorter side, is resized (bicubic) to `size`; without it the
    files must have that size already. An integer gives HWC, a slice or index array NHWC, so it also serves as
    a map-style `torch.utils.data.Dataset`.
    """

    files: tuple[Path, ...]
    size: tuple[int, int]
    crop: float | None = None
    threads: int = 8

    @property
    def shape(self) -> tuple[int, int, int, int]:
        return (len(self.files), *self.size, 3)

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: Any) -> np.ndarray:
        chosen = np.arange(len(self.files))[index]
        if chosen.ndim == 0:
            return self._decode(int(chosen))
        batch = np.empty((len(chosen), *self.size, 3), np.uint8)
        # A pool for each call: starting it costs little beside decoding, and the object stays picklable.
        with ThreadPoolExecutor(self.threads) as pool:
            for row, image in enumerate(pool.map(self._decode, chosen.tolist())):
                batch[row] = image
        return batch

    def __getitems__(self, indices: list[int]) -> list[np.ndarray]:
        """The images of a whole batch, made in parallel; torch's DataLoader asks for it by this name."""
        return list(self[indices])

    def first(self, count: int) -> "FolderImages":
        """The first `count` files."""
        return FolderImages(self.files[:count], self.size, self.crop, self.threads)

    def _decode(self, index: int) -> np.ndarray:
        path = self.files[index]
        height, width = self.size
        image = decode_file(path)
        if self.crop is not None:
            image = crop_and_resize(image, self.size, self.crop, "bicubic")
        if image.size != (width, height):
            raise DataError(f"{path}: {image.width} x {image.height} pixels, expected {width} x {height}")
        return np.array(image)  # a copy: torch warns about arrays that must not be written to


def list_images(folder: Path) -> tuple[tuple[Path, ...], tuple[str, ...]]:
    """Image files below `folder` and their classes, which are the names of its sub-folders.

    Files with classes come in one fixed, thoroughly mixed order: the hash of class and name decides. In the order
    of names the first n images, and every batch, would show one class or one style alone, which no method that
    looks at batches survives. A copy of the set in another image format has the same order. A folder whose
    sub-folders hold no images gives its own in the order of their names, without classes.
    """
    if not folder.is_dir():
        raise DataError(f"{folder} is not a folder")
    files = [file for parent in _sub_folders(folder) for file in parent.iterdir() if _is_image(file)]
    if files:
        files.sort(key=_mixing_key)
        return tuple(files), tuple(file.parent.name for file in files)
    files = [file for file in folder.iterdir() if _is_image(file)]
    if not files:
        check_depth(folder)
        raise DataError(f"{folder}: no image files ({', '.join(EXTENSIONS)}), neither in it nor in its folders")
    return tuple(sorted(files)), ()


def check_depth(folder: Path) -> None:
    """Raises if images lie where `list_images` does not look: beside folders that hold some, or deeper than those."""
    beside = [file for file in folder.iterdir() if _is_image(file)]
    below = [
        Path(place, name)
        for parent in _sub_folders(folder)
        for place, _, names in os.walk(parent)
        for name in names
        if _is_image(Path(name))
    ]
    deeper = [file for file in below if file.parent.parent != folder]
    rule = f"{folder}: images must lie in it or in one folder for each class"
    if deeper:
        raise DataError(
            f"{rule}, {len(deeper)} lie deeper, such as {min(deeper).relative_to(folder)}; name the folder that holds "
            "those of the classes"
        )
    if beside and below:
        raise DataError(f"{rule}, {len(beside)} lie in it, such as {min(beside).name}, and {len(below)} in its folders")


def _sub_folders(folder: Path) -> list[Path]:
    return [child for child in folder.iterdir() if child.is_dir() and not child.name.startswith(".")]


def _mixing_key(file: Path) -> tuple[bytes, str]:
    return sha256(f"{file.parent.name}/{file.stem}".encode()).digest(), file.name


def label_files(names: Sequence[str], classes: Sequence[str]) -> np.ndarray:
    """The index of each name in `classes`."""
    index = {name: number for number, name in enumerate(classes)}
    return np.array([index[name] for name in names], np.int64)


def _is_image(file: Path) -> bool:
    return file.suffix.lower() in EXTENSIONS and not file.name.startswith(".")
