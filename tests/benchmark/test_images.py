"""Images of a shift: made once, whoever asks, and the same as without sharing."""

import multiprocessing
import time
from dataclasses import dataclass

import numpy as np
import pytest

import bacs.data
from bacs.benchmark import images
from bacs.data import ImageSet
from bacs.errors import DataError


@dataclass(frozen=True)
class Lazy:
    """Images that exist only when asked for, as those of a folder."""

    pixels: np.ndarray

    @property
    def shape(self):
        return self.pixels.shape

    def __len__(self):
        return len(self.pixels)

    def __getitem__(self, index):
        return self.pixels[index]


def test_shared_images_are_those_of_the_shift(tmp_path):
    name = "fashion-mnist-part-c/fog/3"
    shift = bacs.data.shift(name, limit=50, seed=4)
    shared = images.make_once(tmp_path / "fog", lambda: shift)
    assert isinstance(shared.images, np.memmap)
    np.testing.assert_array_equal(shared.images, shift.images)
    np.testing.assert_array_equal(shared.labels, shift.labels)
    assert (shared.name, shared.classes, shared.class_mask) == (name, shift.classes, None)


def test_lazy_images_are_written_part_by_part_and_masks_are_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(images, "CHUNK", 4)
    pixels = np.random.default_rng(0).integers(0, 256, (10, 3, 3, 3), dtype=np.uint8)
    shift = ImageSet("lazy", Lazy(pixels), np.arange(10) % 3, ("a", "b", "c"), np.array([True, False, True]))
    shared = images.make_once(tmp_path / "lazy", lambda: shift)
    np.testing.assert_array_equal(shared.images, pixels)
    np.testing.assert_array_equal(shared.class_mask, shift.class_mask)


def test_a_second_caller_makes_nothing(tmp_path):
    first = images.make_once(tmp_path / "x", lambda: bacs.data.shift("fashion-mnist-part", limit=5))
    second = images.make_once(tmp_path / "x", lambda: pytest.fail("made twice"))
    np.testing.assert_array_equal(first.images, second.images)


def make_slowly(folder, made):
    def make():
        with made.open("a") as handle:
            handle.write("made\n")
        time.sleep(0.3)
        return bacs.data.shift("fashion-mnist-part", limit=5)

    assert len(images.make_once(folder, make)) == 5


def test_processes_that_ask_at_once_wait_for_the_first(tmp_path):
    fork = multiprocessing.get_context("fork")
    processes = [fork.Process(target=make_slowly, args=(tmp_path / "x", tmp_path / "made")) for _ in range(4)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0] * 4
    assert (tmp_path / "made").read_text() == "made\n"
    assert [file.name for file in tmp_path.iterdir() if file.name not in ("x", "made")] == []


def test_a_failure_leaves_nothing_behind(tmp_path):
    shift = ImageSet("nameless", np.zeros((3, 2, 2, 1), np.uint8), None, ())
    with pytest.raises(DataError, match="nameless has no labels: there is nothing to score by"):
        images.make_once(tmp_path / "x", lambda: shift)
    assert list(tmp_path.iterdir()) == []
