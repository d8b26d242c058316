import json

import numpy as np
import pytest
from PIL import Image

from bacs.corruptions import corrupt
from bacs.data import copies, load, shift
from bacs.data.copies import write_copy
from bacs.errors import DataError, RunError


@pytest.fixture
def cifar10(cifar10_dir):
    return load("cifar10", data_dir=cifar10_dir)


def test_arrays_get_the_layout_of_cifar_c(cifar10, tmp_path, monkeypatch):
    monkeypatch.setattr(copies, "_CHUNK_BYTES", 7 * 32 * 32 * 3)  # several chunks
    out = tmp_path / "copy"
    done = []
    assert write_copy(cifar10, out, ["gaussian_noise", "contrast"], [1, 2, 3, 4, 5], 3, done.append) == [
        "gaussian_noise",
        "contrast",
    ]
    assert sum(done) == 2 * 5 * 20
    assert sorted(path.name for path in out.iterdir()) == [
        "bacs.json",
        "contrast.npy",
        "gaussian_noise.npy",
        "labels.npy",
    ]
    for name in ("gaussian_noise", "contrast"):
        stacked = np.load(out / f"{name}.npy")
        assert stacked.shape == (100, 32, 32, 3)
        for severity in range(1, 6):
            np.testing.assert_array_equal(
                stacked[20 * (severity - 1) : 20 * severity], corrupt(cifar10.images, name, severity, seed=3)
            )
    np.testing.assert_array_equal(np.load(out / "labels.npy"), np.tile(cifar10.labels, 5))


def test_a_copy_is_read_back_as_published(cifar10, tmp_path):
    write_copy(cifar10, tmp_path / "all", ["contrast"], [1, 2, 3, 4, 5], 0)
    write_copy(cifar10, tmp_path / "some", ["contrast"], [4, 2], 0)
    for folder in ("all", "some"):
        found = shift("cifar10-c/contrast/2@published", data_dir=tmp_path / folder)
        np.testing.assert_array_equal(found.images, corrupt(cifar10.images, "contrast", 2))
        np.testing.assert_array_equal(found.labels, cifar10.labels)
    with pytest.raises(DataError, match=r"contrast.npy: holds severities \[4, 2\], not 5"):
        shift("cifar10-c/contrast/5@published", data_dir=tmp_path / "some")


def test_what_is_whole_is_kept_and_what_is_not_is_made_again(cifar10, tmp_path):
    write_copy(cifar10, tmp_path / "out", ["contrast", "brightness"], [1, 5], 0)
    contrast, brightness = tmp_path / "out" / "contrast.npy", tmp_path / "out" / "brightness.npy"
    good = contrast.read_bytes()
    kept = brightness.stat().st_mtime_ns
    contrast.write_bytes(good[:1000])
    assert write_copy(cifar10, tmp_path / "out", ["contrast", "brightness"], [1, 5], 0) == ["contrast"]
    assert contrast.read_bytes() == good
    assert brightness.stat().st_mtime_ns == kept


def test_a_break_leaves_no_half_file_and_the_next_call_goes_on(cifar10, tmp_path, monkeypatch):
    def break_after_the_first(images):
        if (tmp_path / "out" / "contrast.npy").exists():
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_copy(cifar10, tmp_path / "out", ["contrast", "brightness"], [1, 5], 0, break_after_the_first)
    assert sorted(path.name for path in (tmp_path / "out").glob("[!.]*")) == ["bacs.json", "contrast.npy", "labels.npy"]
    assert write_copy(cifar10, tmp_path / "out", ["contrast", "brightness"], [1, 5], 0) == ["brightness"]
    assert not list((tmp_path / "out").glob(".*"))


def test_other_settings_and_foreign_files_are_not_mixed_in(cifar10, tmp_path):
    write_copy(cifar10, tmp_path / "out", ["contrast"], [1, 5], 0)
    with pytest.raises(ValueError, match=r"out must be another folder: .*bacs.json says seed 0, got 1"):
        write_copy(cifar10, tmp_path / "out", ["contrast"], [1, 5], 1)
    with pytest.raises(ValueError, match=r"says severities \[1, 5\], got \[1\]"):
        write_copy(cifar10, tmp_path / "out", ["contrast"], [1], 0)
    (tmp_path / "published").mkdir()
    np.save(tmp_path / "published" / "fog.npy", np.zeros(3))
    with pytest.raises(ValueError, match="published holds a fog that `bacs corrupt` did not write"):
        write_copy(cifar10, tmp_path / "published", ["fog"], [1], 0)
    (tmp_path / "out" / "bacs.json").write_text("{")
    with pytest.raises(DataError, match=r"bacs.json: damaged"):
        write_copy(cifar10, tmp_path / "out", ["contrast"], [1, 5], 0)


def test_a_folder_of_other_things_is_left_alone(cifar10, tmp_path):
    out = tmp_path / "home"
    out.mkdir()
    (out / "notes.md").write_text("")
    with pytest.raises(ValueError, match=r"out must be a new or empty folder: .*home holds notes.md, which"):
        write_copy(cifar10, out, ["contrast"], [1], 0)
    assert [path.name for path in out.iterdir()] == ["notes.md"]


@pytest.fixture
def photos(tmp_path, rng):
    for name in ("n01443537/val_1.JPEG", "n01443537/val_3.JPEG", "n01440764/val_2.JPEG"):
        path = tmp_path / "imagenet" / "val" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        small = Image.fromarray(rng.integers(0, 256, (8, 9, 3), dtype=np.uint8))
        small.resize((260, 240), Image.Resampling.BICUBIC).save(path)
    return load("imagenet", data_dir=tmp_path)


def test_folders_get_the_layout_of_imagenet_c(photos, tmp_path):
    out = tmp_path / "imagenet-c"
    done = []
    assert write_copy(photos, out, ["brightness"], [1, 4], 0, done.append) == ["brightness"]
    assert sum(done) == 6
    files = sorted(str(path.relative_to(out)) for path in out.rglob("*") if path.is_file())
    names = ["n01440764/val_2.JPEG", "n01443537/val_1.JPEG", "n01443537/val_3.JPEG"]
    assert files == ["bacs.json", *(f"brightness/{severity}/{name}" for severity in (1, 4) for name in names)]
    found = shift("imagenet-c/brightness/4@published", data_dir=tmp_path)
    np.testing.assert_array_equal(found.labels, photos.labels)
    exact = corrupt(photos.images[:], "brightness", 4, constants="imagenet")
    assert np.abs(found.images[:].astype(int) - exact.astype(int)).mean() < 3  # JPEG's loss at quality 85
    with Image.open(out / "brightness/4/n01443537/val_1.JPEG") as image:
        reference = tmp_path / "reference.jpeg"
        Image.fromarray(exact[0]).save(reference, quality=85)
        with Image.open(reference) as expected:
            assert image.quantization == expected.quantization


def test_cut_images_are_made_again(photos, tmp_path):
    out = tmp_path / "out"
    write_copy(photos, out, ["brightness"], [1], 0)
    cut, gone, good = (out / "brightness/1/n01443537" / name for name in ("val_1.JPEG", "val_3.JPEG", "val_1.JPEG"))
    whole = good.read_bytes()
    cut.write_bytes(whole[:-5])
    gone.unlink()
    assert write_copy(photos, out, ["brightness"], [1], 0) == ["brightness"]
    assert cut.read_bytes() == whole
    assert gone.exists()
    assert write_copy(photos, out, ["brightness"], [1], 0) == []
    assert json.loads((out / "bacs.json").read_text())["constants"] == "imagenet"


def test_files_that_would_get_one_name_are_refused(tmp_path, write_pictures):
    write_pictures(tmp_path / "site", {"a.png": (8, 8), "a.jpg": (8, 8)})
    with pytest.raises(DataError, match="two files of one class differ in their ending alone"):
        write_copy(load(tmp_path / "site"), tmp_path / "out", ["brightness"], [1], 0)


def test_two_calls_do_not_write_into_one_folder(cifar10, tmp_path):
    def write_again(images):
        with pytest.raises(RunError, match=r"out is being written by another process"):
            write_copy(cifar10, tmp_path / "out", ["contrast"], [1], 0)

    assert write_copy(cifar10, tmp_path / "out", ["contrast"], [1], 0, write_again) == ["contrast"]
