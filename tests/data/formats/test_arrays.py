import numpy as np
import pytest
from safetensors.numpy import save_file

from bacs.data.formats import arrays
from bacs.errors import DataError


@pytest.fixture
def images(rng):
    return rng.integers(0, 256, (4, 8, 8, 3), dtype=np.uint8)


def test_npy_is_mapped_and_finds_its_labels(tmp_path, images):
    np.save(tmp_path / "cats.npy", images)
    found, labels = arrays.read(tmp_path / "cats.npy", "test")
    assert isinstance(found, np.memmap)
    assert labels is None
    np.save(tmp_path / "cats_labels.npy", np.arange(4))
    found, labels = arrays.read(tmp_path / "cats.npy", "test")
    np.testing.assert_array_equal(found, images)
    assert labels.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("suffix", [".npz", ".safetensors"])
@pytest.mark.parametrize(("image_name", "label_name"), [("images", "labels"), ("x_test", "y_test")])
def test_named_arrays(tmp_path, images, suffix, image_name, label_name):
    path = tmp_path / f"data{suffix}"
    content = {image_name: images, label_name: np.arange(4), "x_other": np.zeros(3)}
    np.savez(path, **content) if suffix == ".npz" else save_file(content, path)
    found, labels = arrays.read(path, "test")
    np.testing.assert_array_equal(found, images)
    assert labels.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("suffix", [".npz", ".safetensors"])
def test_missing_names_are_listed(tmp_path, images, suffix):
    path = tmp_path / f"data{suffix}"
    np.savez(path, pictures=images) if suffix == ".npz" else save_file({"pictures": images}, path)
    with pytest.raises(DataError, match=r"no array named 'images' or 'x_test', found \['pictures'\]"):
        arrays.read(path, "test")


def test_grey_images_get_a_channel_axis(tmp_path, images):
    np.save(tmp_path / "grey.npy", images[..., 0])
    assert arrays.read(tmp_path / "grey.npy", "test")[0].shape == (4, 8, 8, 1)


@pytest.mark.parametrize("array", [np.zeros((2, 8, 8, 3)), np.zeros((2, 3, 8, 8), np.uint8), np.zeros(5, np.uint8)])
def test_arrays_that_are_no_images_are_named(tmp_path, array):
    np.save(tmp_path / "a.npy", array)
    with pytest.raises(DataError, match=r"a.npy: images must be uint8 NHWC with 1 or 3 channels"):
        arrays.read(tmp_path / "a.npy", "test")


def test_objects_are_refused_because_they_are_pickles(tmp_path):
    np.save(tmp_path / "a.npy", np.array([{}], object), allow_pickle=True)
    with pytest.raises(DataError, match=r"a.npy: damaged or foreign"):
        arrays.read(tmp_path / "a.npy", "test")


@pytest.mark.parametrize("suffix", arrays.SUFFIXES)
@pytest.mark.parametrize("cut", [0, 5, 60, 500])
def test_truncated_files_are_named(tmp_path, images, suffix, cut):
    path = tmp_path / f"data{suffix}"
    if suffix == ".npy":
        np.save(path, images)
    else:
        np.savez(path, images=images) if suffix == ".npz" else save_file({"images": images}, path)
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(DataError, match=f"data{suffix}: damaged or foreign"):
        arrays.read(path, "test")
