import numpy as np
import pytest

from bacs.data.formats import idx
from bacs.errors import DataError


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_reads_images_and_labels(tmp_path, rng, write_idx, suffix):
    images = rng.integers(0, 256, (5, 28, 28), dtype=np.uint8)
    labels = np.array([3, 1, 4, 1, 5], np.uint8)
    write_idx(tmp_path / f"images{suffix}", images)
    write_idx(tmp_path / f"labels{suffix}", labels)
    found, names = idx.read(tmp_path / f"images{suffix}", tmp_path / f"labels{suffix}")
    np.testing.assert_array_equal(found, images[:, :, :, None])
    np.testing.assert_array_equal(names, labels)


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"", "begins with nothing"),
        (b"\x89PNG....", "not an idx file"),
        (bytes([0, 0, 8, 3, 0, 0]), "truncated inside its header"),
        (bytes([0, 0, 8, 1, 0, 0, 0, 9]) + b"12345", r"shape \(9,\) needs 17 bytes, found 13"),
        (bytes([0, 0, 8, 1, 0, 0, 0, 2]) + b"12345", "needs 10 bytes, found more"),
    ],
)
def test_damaged_files_are_named(tmp_path, content, complaint):
    path = tmp_path / "t10k-labels-idx1-ubyte"
    path.write_bytes(content)
    with pytest.raises(DataError, match=f"t10k-labels-idx1-ubyte: .*{complaint}"):
        idx.read_array(path)


@pytest.mark.parametrize("cut", [5, 30])
def test_truncated_gzip_is_named(tmp_path, write_idx, cut):
    path = tmp_path / "labels.gz"
    write_idx(path, np.arange(100, dtype=np.uint8))
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(DataError, match=r"labels\.gz: damaged gzip file"):
        idx.read_array(path)


def test_labels_in_place_of_images_are_noticed(tmp_path, write_idx):
    write_idx(tmp_path / "labels", np.arange(4, dtype=np.uint8))
    with pytest.raises(DataError, match="images must have rank 3"):
        idx.read(tmp_path / "labels", tmp_path / "labels")
