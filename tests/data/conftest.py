"""Small files in the published formats, written here byte by byte so that the readers meet nothing of their own."""

import bz2
import gzip
import struct
from pathlib import Path

import numpy as np
import pytest
from PIL import Image


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def write_idx():
    def write(path: Path, array: np.ndarray) -> None:
        data = bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)

    return write


@pytest.fixture
def write_usps():
    def write(path: Path, images: np.ndarray, labels: list[int]) -> None:
        lines = [
            f"{label + 1} "
            + " ".join(f"{place}:{2 * grey / 255 - 1:.7f}" for place, grey in enumerate(image.astype(float).flat, 1))
            for image, label in zip(images, labels, strict=True)
        ]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(bz2.compress(("\n".join(lines) + " \n").encode()))

    return write


@pytest.fixture
def write_cifar_binary():
    def write(path: Path, images: np.ndarray, labels: list[int], coarse: bool = False) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        records = []
        for image, label in zip(images, labels, strict=True):
            planes = b"".join(image[:, :, channel].tobytes() for channel in range(3))
            records.append(bytes([7, label] if coarse else [label]) + planes)
        path.write_bytes(b"".join(records))

    return write


@pytest.fixture
def write_stl():
    def write(folder: Path, images: np.ndarray, labels: list[int], split: str = "test") -> None:
        folder.mkdir(parents=True, exist_ok=True)
        planes = [image[:, :, channel].T.tobytes() for image in images for channel in range(3)]
        (folder / f"{split}_X.bin").write_bytes(b"".join(planes))
        (folder / f"{split}_y.bin").write_bytes(bytes(label + 1 for label in labels))

    return write


@pytest.fixture
def cifar10_dir(tmp_path, rng, write_cifar_binary):
    """A data folder with 20 CIFAR-10 test images."""
    images = rng.integers(0, 256, (20, 32, 32, 3), dtype=np.uint8)
    write_cifar_binary(tmp_path / "cifar-10-batches-bin" / "test_batch.bin", images, [i % 10 for i in range(20)])
    return tmp_path


@pytest.fixture
def write_pictures():
    """Writes plain coloured PNG or JPEG files: {relative path: (width, height)}."""

    def write(folder: Path, pictures: dict[str, tuple[int, int]]) -> None:
        for number, (name, size) in enumerate(pictures.items()):
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.new("RGB", size, (number * 20 % 256, 100, 200)).save(path)

    return write
