import numpy as np
import pytest
from scipy.io import savemat

from bacs.data.formats import svhn
from bacs.errors import DataError


def test_reads_images_and_calls_digit_ten_zero(tmp_path, rng):
    images = rng.integers(0, 256, (4, 32, 32, 3), dtype=np.uint8)
    path = tmp_path / "test_32x32.mat"
    savemat(
        path, {"X": np.moveaxis(images, 0, -1), "y": np.array([[1], [10], [9], [5]], np.uint8)}, do_compression=True
    )
    found, labels = svhn.read(path)
    np.testing.assert_array_equal(found, images)
    assert labels.tolist() == [1, 0, 9, 5]


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ({"X": np.zeros((32, 32, 3, 2), np.uint8)}, "variables X and y are needed"),
        ({"X": np.zeros((32, 32, 3, 2)), "y": [[1], [2]]}, "X must be uint8"),
        ({"X": np.zeros((32, 32, 3, 2), np.uint8), "y": [[0], [2]]}, r"labels must be 1..10, found 0..2"),
        ({"X": np.zeros((32, 32, 3, 2), np.uint8), "y": [[11], [2]]}, r"labels must be 1..10, found 2..11"),
    ],
)
def test_files_that_do_not_fit_are_named(tmp_path, content, complaint):
    path = tmp_path / "train_32x32.mat"
    savemat(path, content)
    with pytest.raises(DataError, match=rf"train_32x32.mat: {complaint}"):
        svhn.read(path)


@pytest.mark.parametrize("cut", [0, 100, 300, 2000])
def test_truncated_files_are_named(tmp_path, rng, cut):
    path = tmp_path / "train_32x32.mat"
    images = rng.integers(0, 256, (32, 32, 3, 4), dtype=np.uint8)
    savemat(path, {"X": images, "y": np.ones((4, 1), np.uint8)}, do_compression=True)
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(DataError, match=r"train_32x32.mat: unreadable or damaged MATLAB file"):
        svhn.read(path)
