"""Arrays in .npy, .npz and .safetensors files; none of them can run code when read."""

import math
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import numpy as np

from bacs.errors import DataError, one_line, unknown_name

SUFFIXES = (".npy", ".npz", ".safetensors")
SPLITS = ("train", "test")


def read_npy(path: Path) -> np.ndarray:
    """The array of a .npy file, memory-mapped; what is written to it stays in memory."""
    with path.open("rb") as file:
        start = file.read(len(np.lib.format.MAGIC_PREFIX))
    if start != np.lib.format.MAGIC_PREFIX:
        what = f"it begins with {start!r}" if start else "it is empty"
        raise DataError(f"{path}: damaged or foreign .npy file ({what})")
    try:
        return np.load(path, mmap_mode="c", allow_pickle=False)
    except OSError:
        raise
    except Exception as error:  # the header is parsed as Python, and a damaged one raises whatever that does
        raise DataError(f"{path}: damaged or foreign .npy file ({one_line(error)})") from error


def read_images(path: Path) -> np.ndarray:
    """The uint8 NHWC images of a .npy file, memory-mapped."""
    return _as_images(read_npy(path), path)


def write_images(file: BinaryIO, shape: tuple[int, ...], parts: Iterable[np.ndarray]) -> None:
    """Writes uint8 images as a .npy file, part by part: never more than one is held.

    Not through a memory map: a full disk would end the process instead of raising an error.
    """
    np.lib.format.write_array_header_1_0(file, {"descr": "|u1", "fortran_order": False, "shape": tuple(shape)})
    for part in parts:
        file.write(np.ascontiguousarray(part).data)


def read(path: Path, split: str) -> tuple[np.ndarray, np.ndarray | None]:
    """Images, and labels where there are any.

    .npz and .safetensors: `images` and `labels`, or `x_<split>` and `y_<split>`. A file `cats.npy` has its
    labels in `cats_labels.npy`.
    """
    if path.suffix == ".npy":
        labels = path.with_name(f"{path.stem}_labels.npy")
        return read_images(path), read_npy(labels) if labels.exists() else None
    images, labels = _read_npz(path, split) if path.suffix == ".npz" else _read_safetensors(path, split)
    return _as_images(images, path), labels


def read_inputs(path: Path) -> np.ndarray:
    """Inputs without labels: uint8 NHWC images, or numbers of any shape as a model takes them."""
    if path.suffix == ".npy":
        array = read_npy(path)
    else:
        array = (_read_npz if path.suffix == ".npz" else _read_safetensors)(path, "test")[0]
    return _as_images(array, path) if array.dtype == np.uint8 and array.ndim in (3, 4) else array


def _pick_names(names: list[str], split: str, path: Path) -> tuple[str, str | None]:
    if "images" in names and split not in SPLITS:
        raise DataError(f"{path}: {unknown_name('split', split, SPLITS)}")
    for images, labels in (("images", "labels"), (f"x_{split}", f"y_{split}")):
        if images in names:
            return images, labels if labels in names else None
    raise DataError(f"{path}: no array named 'images' or 'x_{split}', found {sorted(names)}")


def _read_npz(path: Path, split: str) -> tuple[np.ndarray, np.ndarray | None]:
    # Opened here, because np.load leaves the file open when it is no zip archive.
    with _explain_damage(path), path.open("rb") as file, zipfile.ZipFile(file) as archive:
        names = [name.removesuffix(".npy") for name in archive.namelist() if name.endswith(".npy")]
        images, labels = _pick_names(names, split, path)
        return _read_entry(archive, images), None if labels is None else _read_entry(archive, labels)


def _read_entry(archive: zipfile.ZipFile, name: str) -> np.ndarray:
    """One array of a .npz file. numpy would reserve whatever the array's header asks for; here its bytes come first."""
    with archive.open(f"{name}.npy") as entry:
        version = np.lib.format.read_magic(entry)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, in_columns, dtype = read(entry)
        if dtype.hasobject:
            raise ValueError("it holds Python objects")
        needed, data = math.prod(shape) * dtype.itemsize, entry.read()
    if len(data) != needed:
        raise ValueError(f"shape {shape} of {dtype} needs {needed} bytes, found {len(data)}")
    array = np.frombuffer(data, dtype).copy()  # writable, as torch wants
    return array.reshape(shape, order="F" if in_columns else "C")


def _read_safetensors(path: Path, split: str) -> tuple[np.ndarray, np.ndarray | None]:
    from safetensors import safe_open

    with _explain_damage(path), safe_open(path, framework="numpy") as file:
        images, labels = _pick_names(list(file.keys()), split, path)
        return file.get_tensor(images), None if labels is None else file.get_tensor(labels)


@contextmanager
def _explain_damage(path: Path) -> Iterator[None]:
    """Makes a DataError of what the readers of zip, zlib, headers and safetensors raise: of many kinds."""
    try:
        yield
    except (DataError, FileNotFoundError, PermissionError):
        raise
    except Exception as error:
        raise DataError(f"{path}: damaged or foreign {path.suffix} file ({one_line(error)})") from error


def _as_images(array: np.ndarray, path: Path) -> np.ndarray:
    if array.dtype == np.uint8 and array.ndim == 3 and array.shape[-1] in (1, 3):
        raise DataError(f"{path}: {array.shape} looks like one image; images are [images, height, width, channels]")
    if array.dtype == np.uint8 and array.ndim == 3:  # grey images without a channel axis
        array = array[..., np.newaxis]
    if array.dtype != np.uint8 or array.ndim != 4 or array.shape[-1] not in (1, 3):
        raise DataError(f"{path}: images must be uint8 NHWC with 1 or 3 channels, found {array.dtype} {array.shape}")
    return array
