"""Corrupted copies of a data set in the layouts of CIFAR-C and ImageNet-C, written so that a kill leaves no half file.

A second call keeps what is whole and makes the rest.
"""

import json
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import BinaryIO

import numpy as np
from PIL import Image

from bacs import files
from bacs.data.corrupted import MANIFEST, constants_for, corrupt_images, read_settings
from bacs.data.folder import FolderImages
from bacs.data.formats.arrays import read_npy, write_images
from bacs.data.image_set import ImageSet
from bacs.errors import DataError

Advance = Callable[[int], None]
LABELS = "labels.npy"
_CHUNK_BYTES = 1 << 25


def write_copy(
    image_set: ImageSet,
    folder: Path,
    corruptions: Sequence[str],
    severities: Sequence[int],
    seed: int,
    advance: Advance = lambda images: None,
) -> list[str]:
    """The corruptions that had to be written into `folder`; those that were there and whole are left alone.

    Arrays give `<corruption>.npy`, severities one after the other, and `labels.npy`; image folders give
    `<corruption>/<severity>/<class>/<file>.JPEG`. `advance` is told how many images are done.
    """
    settings: dict[str, object] = {
        "data": image_set.name,
        "images": len(image_set),
        "severities": list(severities),
        "seed": seed,
        "constants": constants_for(image_set.images),
    }
    with files.lock(folder / ".lock", f"{folder} is being written"):
        _claim(folder, settings, corruptions)
        files.remove_strays(folder)
        if isinstance(image_set.images, FolderImages):
            names = _file_names(image_set, image_set.images)
            return [
                corruption
                for corruption in corruptions
                if _write_folders(image_set.images, names, folder / corruption, corruption, severities, seed, advance)
            ]
        if image_set.labels is not None:
            labels = np.tile(image_set.labels, len(severities))
            _make(folder / LABELS, lambda file: np.save(file, labels))
        return [
            corruption
            for corruption in corruptions
            if _write_array(image_set, folder / f"{corruption}.npy", corruption, severities, seed, advance)
        ]


def _claim(folder: Path, settings: dict[str, object], corruptions: Sequence[str]) -> None:
    # Two settings in one folder would look like one data set, and a published set must not be overwritten.
    manifest = folder / MANIFEST
    if manifest.exists() and _holds_no_copy(folder):  # of a call that failed before it had made anything
        (folder / LABELS).unlink(missing_ok=True)
    elif manifest.exists():
        found = read_settings(manifest)
        for key, value in settings.items():
            if found.get(key) != value:
                raise ValueError(f"out must be another folder: {manifest} says {key} {found.get(key)}, got {value}")
        return
    foreign = [name for name in corruptions if (folder / name).exists() or (folder / f"{name}.npy").exists()]
    if foreign:
        raise ValueError(f"out must be another folder: {folder} holds a {foreign[0]} that `bacs corrupt` did not write")
    if others := _visible_names(folder) - {MANIFEST}:
        raise ValueError(
            f"out must be a new or empty folder: {folder} holds {min(others)}, which `bacs corrupt` did not write"
        )
    folder.mkdir(parents=True, exist_ok=True)
    files.write(manifest, f"{json.dumps(settings, indent=2)}\n".encode())


def _holds_no_copy(folder: Path) -> bool:
    return _visible_names(folder) <= {MANIFEST, LABELS}


def _visible_names(folder: Path) -> set[str]:
    """Names in a folder, which need not exist, but for what is hidden or half-written."""
    return {file.name for file in folder.iterdir() if not file.name.startswith(".")} if folder.exists() else set()


def _write_array(
    image_set: ImageSet, path: Path, corruption: str, severities: Sequence[int], seed: int, advance: Advance
) -> bool:
    count, *pixels = image_set.images.shape
    shape = (len(severities) * count, *pixels)
    if _is_whole_array(path, shape):
        advance(shape[0])
        return False
    step = max(1, _CHUNK_BYTES // int(np.prod(pixels)))

    def corrupt_in_parts() -> Iterator[np.ndarray]:
        for severity in severities:
            for start in range(0, count, step):
                clean = np.asarray(image_set.images[start : start + step])
                yield np.asarray(corrupt_images(clean, corruption, severity, seed, first_index=start))
                advance(len(clean))

    _make(path, lambda file: write_images(file, shape, corrupt_in_parts()))
    return True


def _is_whole_array(path: Path, shape: tuple[int, ...]) -> bool:
    if not path.exists():
        return False
    try:
        found = read_npy(path)
    except DataError:
        return False
    return found.shape == shape and found.dtype == np.uint8


def _file_names(image_set: ImageSet, images: FolderImages) -> list[Path]:
    folders = [""] * len(images) if image_set.labels is None else [image_set.classes[n] for n in image_set.labels]
    names = [Path(folder, f"{file.stem}.JPEG") for folder, file in zip(folders, images.files, strict=True)]
    if len(set(names)) != len(names):
        raise DataError(f"{image_set.name}: two files of one class differ in their ending alone")
    return names


def _write_folders(
    images: FolderImages,
    names: Sequence[Path],
    folder: Path,
    corruption: str,
    severities: Sequence[int],
    seed: int,
    advance: Advance,
) -> bool:
    height, width = images.size
    step = max(1, _CHUNK_BYTES // (height * width * 3))
    wrote = False
    for severity in severities:
        targets = [folder / str(severity) / name for name in names]
        missing = [row for row, target in enumerate(targets) if not _is_whole_jpeg(target)]
        advance(len(targets) - len(missing))
        corrupted = corrupt_images(images, corruption, severity, seed)
        for start in range(0, len(missing), step):
            rows = missing[start : start + step]
            with ThreadPoolExecutor(images.threads) as pool:
                list(pool.map(_write_jpeg, corrupted[rows], [targets[row] for row in rows]))
            advance(len(rows))
            wrote = True
    return wrote


def _write_jpeg(image: np.ndarray, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    picture = Image.fromarray(image)
    _make(path, lambda file: picture.save(file, format="JPEG", quality=85, optimize=True))


def _make(path: Path, fill: Callable[[BinaryIO], object]) -> None:
    # Not brought to the disk at once: a next call looks whether files are whole.
    with files.stage(path, fill, durable=False):
        pass


def _is_whole_jpeg(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            file.seek(-2, os.SEEK_END)
            return file.read() == b"\xff\xd9"  # the end-of-image marker
    except OSError:  # missing, or shorter than two bytes
        return False
