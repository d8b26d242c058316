import numpy as np
import pytest

from bacs.data.formats import stl
from bacs.errors import DataError


def test_reads_images_from_the_mapped_file(tmp_path, rng, write_stl):
    images = rng.integers(0, 256, (3, 96, 96, 3), dtype=np.uint8)
    write_stl(tmp_path, images, [0, 9, 4])
    found, labels = stl.read(tmp_path / "test_X.bin", tmp_path / "test_y.bin")
    np.testing.assert_array_equal(found, images)
    assert isinstance(found, np.memmap)
    assert labels.tolist() == [0, 9, 4]


def test_truncated_images_are_named(tmp_path):
    (tmp_path / "test_X.bin").write_bytes(bytes(27649))
    with pytest.raises(DataError, match=r"test_X.bin: 27649 bytes are no whole number of 27648-byte images"):
        stl.read_images(tmp_path / "test_X.bin")


def test_labels_out_of_range_are_named(tmp_path, write_stl):
    write_stl(tmp_path, np.zeros((2, 96, 96, 3), np.uint8), [0, 10])
    with pytest.raises(DataError, match=r"test_y.bin: labels must be 1..10, found 1..11"):
        stl.read(tmp_path / "test_X.bin", tmp_path / "test_y.bin")
