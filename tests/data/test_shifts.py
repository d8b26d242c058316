import numpy as np
import pytest

from bacs.corruptions import corrupt
from bacs.data import load, shift, shipped
from bacs.data.corrupted import CorruptedImages
from bacs.data.shifts import CORRUPTIBLE
from bacs.errors import DataError


def test_corruptions_are_made_from_the_clean_test_set(cifar10_dir):
    clean = load("cifar10", data_dir=cifar10_dir)
    found = shift("cifar10-c/gaussian_noise/3", data_dir=cifar10_dir, seed=5)
    np.testing.assert_array_equal(found.images, corrupt(clean.images, "gaussian_noise", 3, seed=5, constants="cifar"))
    np.testing.assert_array_equal(found.labels, clean.labels)
    assert found.name == "cifar10-c/gaussian_noise/3"
    assert found.class_mask is None
    assert found.classes == clean.classes


def test_limit_gives_the_first_images_of_the_whole(cifar10_dir):
    whole = shift("cifar10-c/gaussian_noise/5", data_dir=cifar10_dir)
    part = shift("cifar10-c/gaussian_noise/5", data_dir=cifar10_dir, limit=7)
    np.testing.assert_array_equal(part.images, whole.images[:7])
    assert part.labels.tolist() == whole.labels.tolist()[:7]
    assert len(shift("cifar10-c/brightness/1", data_dir=cifar10_dir, limit=1000)) == 20
    with pytest.raises(ValueError, match="limit must be >= 1, got 0"):
        shift("cifar10-c/brightness/1", data_dir=cifar10_dir, limit=0)


def test_published_files_are_read_when_asked_for(tmp_path):
    (tmp_path / "CIFAR-100-C").mkdir()
    stacked = np.repeat(np.arange(10, dtype=np.uint8), 32 * 32 * 3).reshape(10, 32, 32, 3)
    np.save(tmp_path / "CIFAR-100-C" / "snow.npy", stacked)
    np.save(tmp_path / "CIFAR-100-C" / "labels.npy", np.array([50, 99] * 5))
    found = shift("cifar100-c/snow/5@published", data_dir=tmp_path, limit=1)
    np.testing.assert_array_equal(found.images, stacked[8:9])
    assert found.labels.tolist() == [50]


def test_imagenet_c_is_made_lazily_and_does_not_depend_on_the_order(tmp_path, write_pictures):
    write_pictures(tmp_path / "imagenet" / "val", {f"n01443537/val_{number}.JPEG": (230, 240) for number in range(4)})
    found = shift("imagenet-c/gaussian_noise/2", data_dir=tmp_path, seed=3)
    assert isinstance(found.images, CorruptedImages)
    clean = load("imagenet", data_dir=tmp_path).images[:]
    expected = corrupt(clean, "gaussian_noise", 2, seed=3, constants="imagenet")
    for index in (slice(None), [3, 1], 2, slice(0, 0)):
        np.testing.assert_array_equal(found.images[index], expected[index])
    part = shift("imagenet-c/gaussian_noise/2", data_dir=tmp_path, seed=3, limit=2)
    assert part.images.shape == (2, 224, 224, 3)
    np.testing.assert_array_equal(part.images.first(1)[:], expected[:1])


def test_imagenet_c_and_imagenet_r_from_their_folders(tmp_path, write_pictures):
    write_pictures(tmp_path / "imagenet-c" / "fog" / "2", {"n01440764/val_1.JPEG": (224, 224)})
    write_pictures(tmp_path / "imagenet-r", {"n01443537/art_1.jpg": (60, 50)})
    assert shift("imagenet-c/fog/2@published", data_dir=tmp_path).labels.tolist() == [0]
    renditions = shift("imagenet-r", data_dir=tmp_path)
    assert renditions.class_mask.sum() == 200
    assert renditions.images[0].shape == (224, 224, 3)


def test_stl10_for_a_cifar10_model(tmp_path, write_stl):
    images = np.stack([np.full((96, 96, 3), 10 * label, np.uint8) for label in range(10)])
    write_stl(tmp_path / "stl10_binary", images, list(range(10)))
    found = shift("stl10", data_dir=tmp_path)
    assert found.images.shape == (9, 32, 32, 3)
    assert found.classes[6] == "frog"
    assert found.class_mask.tolist() == [True] * 6 + [False] + [True] * 3
    # STL-10's order: airplane bird car cat deer dog horse (monkey) ship truck.
    assert found.labels.tolist() == [0, 2, 1, 3, 4, 5, 7, 8, 9]
    assert found.images[:, 3, 3, 1].tolist() == [0, 10, 20, 30, 40, 50, 60, 80, 90]
    assert len(shift("stl10", data_dir=tmp_path, limit=4)) == 4


def test_svhn_to_mnist_grows_the_digits(tmp_path, write_idx):
    digits = np.zeros((2, 28, 28), np.uint8)
    digits[0, 7:21, 7:21] = 255
    digits[1] = 99
    write_idx(tmp_path / "mnist" / "t10k-images-idx3-ubyte", digits)
    write_idx(tmp_path / "mnist" / "t10k-labels-idx1-ubyte", np.array([4, 2], np.uint8))
    found = shift("svhn->mnist", data_dir=tmp_path)
    assert found.images.shape == (2, 32, 32, 3)
    assert found.labels.tolist() == [4, 2]
    np.testing.assert_array_equal(found.images[1], np.full((32, 32, 3), 99))
    # The middle half of 28 pixels is the middle half of 32, in every channel.
    assert (found.images[0, 9:23, 9:23] == 255).all()
    assert found.images[0, :7].max() == found.images[0, 25:].max() == 0


def test_digits_go_both_ways_between_mnist_and_usps(tmp_path, write_idx, write_usps):
    large, small = np.zeros((2, 28, 28), np.uint8), np.zeros((2, 16, 16), np.uint8)
    large[0, 7:21, 7:21], small[0, 4:12, 4:12] = 255, 255
    large[1], small[1] = 99, 99
    write_idx(tmp_path / "mnist" / "t10k-images-idx3-ubyte", large)
    write_idx(tmp_path / "mnist" / "t10k-labels-idx1-ubyte", np.array([4, 2], np.uint8))
    write_usps(tmp_path / "usps" / "usps.t.bz2", small, [7, 0])
    shrunk, grown = shift("usps->mnist", data_dir=tmp_path), shift("mnist->usps", data_dir=tmp_path)
    assert (shrunk.images.shape, shrunk.labels.tolist()) == ((2, 16, 16, 1), [4, 2])
    assert (grown.images.shape, grown.labels.tolist()) == ((2, 28, 28, 1), [7, 0])
    assert (shrunk.images[1] == 99).all()
    assert (grown.images[1] == 99).all()
    # The middle half stays the middle half.
    assert (shrunk.images[0, 5:11, 5:11] == 255).all()
    assert shrunk.images[0, :3].max() == 0
    assert (grown.images[0, 8:20, 8:20] == 255).all()
    assert grown.images[0, :6].max() == 0


@pytest.mark.parametrize("name", ["mnist-c/contrast/5", "fashion-mnist-c/contrast/5"])
def test_grey_sets_can_be_corrupted(tmp_path, write_idx, rng, name):
    folder = tmp_path / name.partition("-c/")[0]
    digits = rng.integers(0, 256, (2, 28, 28), dtype=np.uint8)
    write_idx(folder / "t10k-images-idx3-ubyte", digits)
    write_idx(folder / "t10k-labels-idx1-ubyte", np.array([4, 2], np.uint8))
    found = shift(name, data_dir=tmp_path)
    assert found.images.shape == (2, 28, 28, 1)
    assert found.images.std() < 0.3 * digits.std()


def test_clean_and_other_data(cifar10_dir, write_pictures, monkeypatch):
    monkeypatch.setenv("BACS_DATA", str(cifar10_dir))
    clean = load("cifar10")
    for found in (shift("cifar10/clean"), shift("clean", source="cifar10"), shift("cifar10")):
        np.testing.assert_array_equal(found.images, clean.images)
    write_pictures(cifar10_dir / "site" / "42", {"x.png": (8, 8), "y.png": (8, 8)})
    site = shift(str(cifar10_dir / "site" / "42"), limit=1)
    assert site.labels is None
    assert site.images[:].shape == (1, 8, 8, 3)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("clean", "source must name a data set when the shift is 'clean', got None"),
        ("cifr10-c/fog/5", r"data set of shift 'cifr10-c/fog/5' must be one of .*\(did you mean 'cifar10-c'\?\)"),
        ("cifar10-c/fogg/5", r"corruption must be one of .* got 'fogg' \(did you mean 'fog'\?\)"),
        ("cifar10-c/fog/7", "severity must be 1..5, got 7"),
        ("cifar10-c/fog/five", "severity must be 1..5, got five"),
        ("cifar10-c/fog/5@publishd", r"version after '@' .* got 'publishd' \(did you mean 'published'\?\)"),
        ("mnist-c/fog/5@published", "must be one of cifar10-c, cifar100-c, imagenet-c; got 'mnist-c'"),
        ("cifar10.2", r"shift must be one of .* got 'cifar10.2' \(did you mean 'cifar10.1'\?\)"),
        ("cifar10/claen", "shift must be one of .* got 'cifar10/claen'"),
        ("svhn-mnist", r"\(did you mean 'svhn->mnist'\?\)"),
    ],
)
def test_unknown_parts_of_a_name_are_told(name, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        shift(name, data_dir=tmp_path)


@pytest.mark.parametrize("name", [name for name in CORRUPTIBLE if name != shipped.NAME])
def test_every_corruptible_set_says_which_file_it_lacks(name, tmp_path):
    with pytest.raises(DataError, match=r": put .* into "):
        shift(f"{name}-c/fog/1", data_dir=tmp_path)
