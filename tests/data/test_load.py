import pickle
import tarfile
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from scipy.io import savemat

from bacs.data import load
from bacs.data.corrupted import PUBLISHED_COPIES
from bacs.data.load import NAMES
from bacs.data.locate import data_root
from bacs.data.registry import CORRUPTED, PUBLISHED
from bacs.errors import DataError


def test_the_catalogue_is_complete():
    assert sorted(PUBLISHED) == ["cifar10", "cifar10.1", "cifar100", "fashion-mnist", "mnist", "stl10", "svhn", "usps"]
    assert sorted(CORRUPTED) == ["cifar10-c", "cifar100-c"]
    assert [len(PUBLISHED[name].classes) for name in PUBLISHED] == [10, 100, 10, 10, 10, 10, 10, 10]
    for name, published in {**PUBLISHED, **CORRUPTED}.items():
        for layout in published.layouts:
            assert layout.files.keys() == layout.remotes.keys(), name
            for remote in (remote for remotes in layout.remotes.values() for remote in remotes):
                algorithm, _, digest = remote.checksum.partition(":")
                assert len(bytes.fromhex(digest)) == {"sha256": 32, "md5": 16}[algorithm]


def test_the_page_on_data_has_every_set_and_its_files():
    page = (Path(__file__).parents[2] / "docs" / "data.md").read_text()
    for name in NAMES:
        assert f"`{name}`" in page
    for name in PUBLISHED_COPIES:
        assert f"`{name}/<corruption>/<severity>`" in page
    for published in (*PUBLISHED.values(), *CORRUPTED.values()):
        for layout in published.layouts:
            assert f"{layout.folders[0]}/" in page


def test_the_data_folder_is_chosen_when_asked_for(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("BACS_DATA", raising=False)
    assert data_root(None) == tmp_path / ".cache" / "bacs" / "data"
    monkeypatch.setenv("BACS_DATA", "/elsewhere")
    assert str(data_root(None)) == "/elsewhere"
    assert data_root("~/here") == tmp_path / "here"


def test_cifar10_from_python_and_binary_files(tmp_path, rng, write_cifar_binary):
    images = rng.integers(0, 256, (10, 32, 32, 3), dtype=np.uint8)
    for number in range(5):
        path = tmp_path / "python" / "cifar-10-batches-py" / f"data_batch_{number + 1}"
        path.parent.mkdir(parents=True, exist_ok=True)
        part = images[2 * number : 2 * number + 2]
        batch = {b"data": part.transpose(0, 3, 1, 2).reshape(2, -1), b"labels": [number, 9 - number]}
        path.write_bytes(pickle.dumps(batch, protocol=2))
        binary = tmp_path / "binary" / "cifar-10-batches-bin" / f"data_batch_{number + 1}.bin"
        write_cifar_binary(binary, part, [number, 9 - number])
    for folder in ("python", "binary", "python/cifar-10-batches-py", "binary/cifar-10-batches-bin"):
        found = load("cifar10", split="train", data_dir=tmp_path / folder)
        np.testing.assert_array_equal(found.images, images)
        assert found.labels.tolist() == [0, 9, 1, 8, 2, 7, 3, 6, 4, 5]
        assert found.classes[3] == "cat"


def test_cifar100_takes_the_fine_labels(tmp_path, rng, write_cifar_binary):
    images = rng.integers(0, 256, (2, 32, 32, 3), dtype=np.uint8)
    write_cifar_binary(tmp_path / "cifar-100-binary" / "test.bin", images, [99, 0], coarse=True)
    found = load("cifar100", data_dir=tmp_path)
    assert [found.classes[label] for label in found.labels] == ["worm", "apple"]


def test_an_archive_is_unpacked_beside_itself(tmp_path, rng, write_cifar_binary):
    write_cifar_binary(
        tmp_path / "a" / "cifar-10-batches-bin" / "test_batch.bin", np.zeros((1, 32, 32, 3), np.uint8), [4]
    )
    (tmp_path / "b").mkdir()
    with tarfile.open(tmp_path / "b" / "cifar-10-binary.tar.gz", "w:gz") as tar:
        tar.add(tmp_path / "a" / "cifar-10-batches-bin", "cifar-10-batches-bin")
    for _ in range(2):
        assert load("cifar10", data_dir=tmp_path / "b").labels.tolist() == [4]


@pytest.mark.parametrize("suffix", ["", ".gz"])
@pytest.mark.parametrize(
    ("name", "folder"), [("mnist", "MNIST/raw"), ("fashion-mnist", "fashion-mnist"), ("mnist", ".")]
)
def test_mnist_and_its_relative(tmp_path, write_idx, name, folder, suffix):
    write_idx(tmp_path / folder / f"t10k-images-idx3-ubyte{suffix}", np.full((2, 28, 28), 7, np.uint8))
    write_idx(tmp_path / folder / f"t10k-labels-idx1-ubyte{suffix}", np.array([3, 9], np.uint8))
    found = load(name, data_dir=tmp_path)
    assert found.images.shape == (2, 28, 28, 1)
    assert found.labels.tolist() == [3, 9]


def test_svhn_and_cifar10_1(tmp_path):
    (tmp_path / "svhn").mkdir()
    savemat(tmp_path / "svhn" / "extra_32x32.mat", {"X": np.ones((32, 32, 3, 2), np.uint8), "y": [[10], [1]]})
    assert load("svhn", "extra", data_dir=tmp_path).labels.tolist() == [0, 1]
    np.save(tmp_path / "cifar10.1_v6_data.npy", np.ones((2, 32, 32, 3), np.uint8))
    np.save(tmp_path / "cifar10.1_v6_labels.npy", np.array([8, 9], np.int32))
    assert load("cifar10.1", data_dir=tmp_path).labels.tolist() == [8, 9]


def test_stl10_and_the_shared_classes(tmp_path, write_stl, write_cifar_binary):
    # airplane bird car cat deer dog horse monkey ship truck; every image has the grey of its label.
    images = np.stack([np.full((96, 96, 3), 10 * label, np.uint8) for label in range(10)])
    write_stl(tmp_path / "stl10_binary", images, list(range(10)))
    write_cifar_binary(tmp_path / "cifar-10-batches-bin" / "test_batch.bin", images[:, :32, :32], list(range(10)))
    stl10 = load("stl10-9", data_dir=tmp_path)
    assert stl10.images.shape == (9, 32, 32, 3)
    assert stl10.classes == ("airplane", "automobile", "bird", "cat", "deer", "dog", "horse", "ship", "truck")
    assert [stl10.classes[label] for label in stl10.labels] == [
        "airplane",
        "bird",
        "automobile",
        "cat",
        "deer",
        "dog",
        "horse",
        "ship",
        "truck",
    ]
    assert stl10.images[:, 5, 5, 0].tolist() == [0, 10, 20, 30, 40, 50, 60, 80, 90]
    cifar10 = load("cifar10-9", data_dir=tmp_path)
    assert cifar10.labels.tolist() == list(range(9))
    assert cifar10.images[:, 0, 0, 0].tolist() == [0, 10, 20, 30, 40, 50, 70, 80, 90]
    (tmp_path / "stl10_binary" / "unlabeled_X.bin").write_bytes(bytes(3 * 96 * 96))
    assert load("stl10", "unlabeled", data_dir=tmp_path).labels is None


def test_corrupted_sets_stack_their_severities(tmp_path):
    images = np.stack([np.full((32, 32, 3), number, np.uint8) for number in range(10)])
    (tmp_path / "CIFAR-10-C").mkdir()
    np.save(tmp_path / "CIFAR-10-C" / "fog.npy", images)
    np.save(tmp_path / "CIFAR-10-C" / "labels.npy", np.array([3, 8] * 5))
    found = load("cifar10-c/fog/4", data_dir=tmp_path)
    assert found.images[:, 0, 0, 0].tolist() == [6, 7]
    assert found.labels.tolist() == [3, 8]
    assert isinstance(found.images, np.memmap)
    np.save(tmp_path / "CIFAR-10-C" / "snow.npy", images[:9])
    np.save(tmp_path / "CIFAR-10-C" / "frost.npy", images[:5])
    with pytest.raises(DataError, match=r"snow.npy: 9 images are not 5 severities"):
        load("cifar10-c/snow/4", data_dir=tmp_path)
    with pytest.raises(DataError, match=r"labels.npy: 10 labels for 5 images"):
        load("cifar10-c/frost/4", data_dir=tmp_path)


def test_plain_folders_and_array_files(tmp_path, write_pictures):
    write_pictures(tmp_path / "site", {"dog/b.png": (40, 30), "cat/a.png": (40, 30), "cat/c.png": (40, 30)})
    found = load(tmp_path / "site")
    assert found.classes == ("cat", "dog")
    assert [found.classes[label] for label in found.labels] == [file.parent.name for file in found.images.files]
    assert found.images[:].shape == (3, 30, 40, 3)
    assert load(str(tmp_path / "site"), size=16).images[:].shape == (3, 16, 16, 3)
    flat = load(tmp_path / "site" / "cat")
    assert flat.labels is None
    assert len(flat) == 2
    np.savez(tmp_path / "a.npz", images=np.zeros((3, 8, 8, 3), np.uint8), labels=np.array([0, 2, 2]))
    assert load(tmp_path / "a.npz").classes == ("0", "1", "2")


def test_labels_are_checked_against_images_and_classes(tmp_path, write_idx, cifar10_dir):
    folder = tmp_path / "mnist"
    write_idx(folder / "t10k-images-idx3-ubyte", np.zeros((3, 28, 28), np.uint8))
    write_idx(folder / "t10k-labels-idx1-ubyte", np.array([1, 2], np.uint8))
    with pytest.raises(DataError, match="t10k-labels-idx1-ubyte: 2 labels for 3 images"):
        load("mnist", data_dir=tmp_path)
    write_idx(folder / "t10k-labels-idx1-ubyte", np.array([1, 2, 10], np.uint8))
    with pytest.raises(DataError, match=r"t10k-labels-idx1-ubyte: labels must be 0..9, found 1..10"):
        load("mnist", data_dir=tmp_path)
    data = bytearray((cifar10_dir / "cifar-10-batches-bin" / "test_batch.bin").read_bytes())
    data[0] = 77
    (cifar10_dir / "cifar-10-batches-bin" / "test_batch.bin").write_bytes(data)
    with pytest.raises(DataError, match=r"test_batch.bin: labels must be 0..9, found 0..77"):
        load("cifar10", data_dir=cifar10_dir)


def test_missing_files_say_what_goes_where(tmp_path, write_idx):
    with pytest.raises(DataError) as told:
        load("cifar10", data_dir=tmp_path)
    assert str(tmp_path / "cifar-10-batches-py") in str(told.value)
    assert "https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz" in str(told.value)
    assert len(str(told.value).splitlines()) == 2
    write_idx(tmp_path / "mnist" / "t10k-images-idx3-ubyte.gz", np.zeros((3, 28, 28), np.uint8))
    with pytest.raises(DataError, match=r"mnist/t10k-labels-idx1-ubyte is missing, though other files"):
        load("mnist", data_dir=tmp_path)


def test_what_is_not_there_is_downloaded_on_request(tmp_path, write_idx, monkeypatch):
    asked = []

    def fetch(remote, root):
        asked.append(remote.url)
        shape = (2, 28, 28) if "images" in remote.path else (2,)
        write_idx(root / remote.path, np.zeros(shape, np.uint8))
        return root / remote.path

    monkeypatch.setattr("bacs.data.locate.fetch", fetch)
    for _ in range(2):
        assert len(load("fashion-mnist", data_dir=tmp_path, download=True)) == 2
    host = "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com"
    assert asked == [f"{host}/t10k-images-idx3-ubyte.gz", f"{host}/t10k-labels-idx1-ubyte.gz"]


def test_wrong_arguments(tmp_path):
    with pytest.raises(ValueError, match=r"name must be one of cifar10, .*; got 'cifr10' \(did you mean 'cifar10'\?\)"):
        load("cifr10")
    with pytest.raises(ValueError, match="split must be one of train, test; got 'validation'"):
        load("cifar10", "validation")
    with pytest.raises(ValueError, match="name must be cifar10-c/<corruption>/<severity>, got cifar10-c"):
        load("cifar10-c")
    with pytest.raises(DataError, match=r"is neither a data set .* nor an existing file or folder"):
        load(tmp_path / "nothing.npz")
    Image.new("RGB", (4, 4)).save(tmp_path / "one.png")
    with pytest.raises(ValueError, match=r"name must be a folder or end in .npy, .npz, .safetensors"):
        load(tmp_path / "one.png")
    np.save(tmp_path / "a.npy", np.zeros((1, 4, 4, 3), np.uint8))
    with pytest.raises(ValueError, match="size must be None for array files, got 8"):
        load(tmp_path / "a.npy", size=8)
