"""The images inside the package."""

import numpy as np
import pytest

from bacs import data
from bacs.data import shipped
from bacs.errors import DataError


@pytest.mark.parametrize(("split", "count"), [("train", 6000), ("test", 2000)])
def test_the_shipped_part_is_balanced_and_needs_no_file(split, count, tmp_path):
    part = data.load("fashion-mnist-part", split=split, data_dir=tmp_path)
    assert part.images.shape == (count, 28, 28, 1)
    assert part.images.dtype == np.uint8
    assert np.bincount(part.labels).tolist() == [count // 10] * 10
    assert part.classes[9] == "Ankle boot"
    assert 60 < part.images.mean() < 85  # the mean grey level of the whole set is 73


def test_the_splits_share_no_image():
    train, test = (data.load("fashion-mnist-part", split=split).images for split in ("train", "test"))
    assert not {image.tobytes() for image in train} & {image.tobytes() for image in test}


def test_the_licence_is_shipped_with_them():
    text = (shipped.files("bacs.data") / "fashion_mnist" / "LICENSE").read_text()
    assert "Copyright (c) 2017 Zalando SE" in text


def test_wrong_splits_and_broken_installations_are_named(monkeypatch, tmp_path):
    with pytest.raises(ValueError, match=r"split must be one of train, test; got 'tset' \(did you mean 'test'"):
        data.load("fashion-mnist-part", split="tset")
    (tmp_path / "fashion_mnist").mkdir()
    whole = (shipped.files("bacs.data") / "fashion_mnist" / "part.npz").read_bytes()
    (tmp_path / "fashion_mnist" / "part.npz").write_bytes(whole[: len(whole) // 2])
    monkeypatch.setattr(shipped, "files", lambda package: tmp_path)
    with pytest.raises(DataError, match="cannot be read .*; install bacs again"):
        data.load("fashion-mnist-part")
