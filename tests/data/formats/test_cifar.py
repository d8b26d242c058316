import os
import pickle
import struct
import subprocess

import numpy as np
import pytest

from bacs.data.formats import cifar
from bacs.errors import DataError


def as_rows(images: np.ndarray) -> np.ndarray:
    """CIFAR's rows: all red values, then green, then blue, line by line."""
    return np.array([np.concatenate([image[:, :, channel].ravel() for channel in range(3)]) for image in images])


def python2_pickle(rows: np.ndarray, labels: list[int], key: bytes = b"labels") -> bytes:
    """The opcodes that Python 2 and the NumPy of 2009 wrote into the published files (protocol 2)."""

    def text(value: bytes) -> bytes:
        return b"U" + bytes([len(value)]) + value

    dtype = b"cnumpy\ndtype\n" + text(b"u1") + b"K\x00K\x01\x87R(K\x03" + text(b"|") + b"NNN"
    dtype += b"J\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
    array = b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85" + text(b"b") + b"\x87R(K\x01"
    array += b"K" + bytes([len(rows)]) + b"M" + struct.pack("<H", rows.shape[1]) + b"\x86" + dtype + b"\x89"
    array += b"T" + struct.pack("<I", rows.nbytes) + rows.tobytes() + b"tb"
    numbers = b"](" + b"".join(b"K" + bytes([label]) for label in labels) + b"e"
    batch = text(b"batch_label") + text(b"testing batch 1 of 1")
    return b"\x80\x02}(" + batch + text(key) + numbers + text(b"data") + array + b"u."


@pytest.fixture
def images(rng):
    return rng.integers(0, 256, (6, 32, 32, 3), dtype=np.uint8)


def test_reads_batches_that_python_2_wrote(tmp_path, images):
    path = tmp_path / "test_batch"
    path.write_bytes(python2_pickle(as_rows(images), [0, 1, 2, 3, 8, 9]))
    found, labels = cifar.read_pickles([path], b"labels")
    np.testing.assert_array_equal(found, images)
    assert labels.tolist() == [0, 1, 2, 3, 8, 9]


@pytest.mark.parametrize("protocol", range(5))
def test_reads_pickle_protocols_and_joins_batches(tmp_path, images, protocol):
    paths = [tmp_path / "data_batch_1", tmp_path / "data_batch_2"]
    for path, part, names in zip(paths, (images[:4], images[4:]), ([1, 2, 3, 4], [5, 6]), strict=True):
        path.write_bytes(pickle.dumps({b"data": as_rows(part), b"fine_labels": names}, protocol=protocol))
    found, labels = cifar.read_pickles(paths, b"fine_labels")
    np.testing.assert_array_equal(found, images)
    assert labels.tolist() == [1, 2, 3, 4, 5, 6]


class Calls:
    def __init__(self, function, *arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call


@pytest.mark.parametrize(
    "harm",
    [
        lambda path: Calls(os.system, f"touch {path}"),
        lambda path: Calls(eval, f"open({str(path)!r}, 'w').close()"),
        lambda path: Calls(subprocess.getoutput, f"touch {path}"),
        lambda path: Calls(np.save, str(path), np.zeros(1)),
        lambda path: Calls(getattr, np.ndarray, "tofile"),
    ],
)
def test_a_pickle_cannot_run_code(tmp_path, harm):
    path, victim = tmp_path / "test_batch", tmp_path / "harmed"
    path.write_bytes(pickle.dumps({b"data": harm(victim), b"labels": []}))
    with pytest.raises(DataError, match=r"test_batch: not a CIFAR batch .*is not allowed"):
        cifar.read_pickles([path], b"labels")
    assert list(tmp_path.iterdir()) == [path]


def test_encoding_is_limited_to_latin1(tmp_path):
    path = tmp_path / "test_batch"
    path.write_bytes(b"c_codecs\nencode\n(X\x01\x00\x00\x00aX\x05\x00\x00\x00rot13tR.")
    with pytest.raises(DataError, match="encoding 'rot13' is not allowed"):
        cifar.read_pickle(path)


def test_a_pickle_cannot_reserve_memory(tmp_path):
    path = tmp_path / "test_batch"
    shape = b"(\x8a\x07\x00\x00\x00\x00\x00\x00\x01t"
    path.write_bytes(b"\x80\x02cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n" + shape + b"U\x01btR.")
    with pytest.raises(DataError, match="holds a ndarray"):
        cifar.read_pickle(path)


@pytest.mark.parametrize("cut", [0, 1, 40, 200, 5000])
def test_truncated_pickles_are_named(tmp_path, images, cut):
    path = tmp_path / "test_batch"
    path.write_bytes(python2_pickle(as_rows(images), [0] * 6)[:cut])
    with pytest.raises(DataError, match="test_batch: not a CIFAR batch"):
        cifar.read_pickles([path], b"labels")


@pytest.mark.parametrize(
    ("batch", "complaint"),
    [
        ([1, 2], "holds a list"),
        ({b"labels": [1]}, "'data' must be uint8"),
        ({b"data": np.zeros((2, 3072)), b"labels": [1, 2]}, "'data' must be uint8"),
        ({b"data": np.zeros((2, 3071), np.uint8), b"labels": [1, 2]}, "'data' must be uint8"),
        ({b"data": np.zeros((2, 3072), np.uint8), b"labels": [1]}, "1 labels for 2 images"),
        ({b"data": np.zeros((2, 3072), np.uint8), b"fine_labels": [1, 2]}, "no labels for 2 images"),
    ],
)
def test_batches_that_do_not_fit_are_named(tmp_path, batch, complaint):
    path = tmp_path / "data_batch_3"
    path.write_bytes(pickle.dumps(batch))
    with pytest.raises(DataError, match=f"data_batch_3: .*{complaint}"):
        cifar.read_pickles([path], b"labels")


@pytest.mark.parametrize("coarse", [False, True])
def test_reads_the_binary_version(tmp_path, images, write_cifar_binary, coarse):
    write_cifar_binary(tmp_path / "a.bin", images[:2], [5, 9], coarse)
    write_cifar_binary(tmp_path / "b.bin", images[2:], [4, 3, 2, 1], coarse)
    found, labels = cifar.read_binary([tmp_path / "a.bin", tmp_path / "b.bin"], label_bytes=1 + coarse)
    np.testing.assert_array_equal(found, images)
    assert labels.tolist() == [5, 9, 4, 3, 2, 1]


@pytest.mark.parametrize("size", [0, 3072, 3074])
def test_truncated_binary_files_are_named(tmp_path, size):
    path = tmp_path / "test_batch.bin"
    path.write_bytes(bytes(size))
    with pytest.raises(DataError, match=rf"test_batch.bin: {size} bytes are no whole number of 3073-byte records"):
        cifar.read_binary([path], label_bytes=1)
