"""Pictures as they arrive: read as late as can be, in batches that are not of one alone."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import bacs
from bacs.data.listing import Encoded
from bacs.data.picture_batches import picture_batches

FIT = bacs.Preprocessing((0.5,) * 3, (0.25,) * 3, size=(4, 4))


@pytest.fixture
def arriving(tmp_path):
    """Pictures whose every pixel is their number; those in `broken` are none. `taken` counts those asked for."""
    taken = []

    def pictures(count, broken=()):
        for number in range(count):
            file = tmp_path / f"{number}.png"
            file.write_bytes(b"nothing")
            if number not in broken:
                Image.fromarray(np.full((4, 4, 3), number, np.uint8)).save(file)
            taken.append(number)
            yield Encoded(number, file.name, file)

    pictures.taken = taken
    return pictures


def numbers(batch):
    return batch.views[0][:, 0, 0, 0].tolist() if batch.views else []


def test_batches_are_full_in_order_and_counted(arriving):
    batches = list(picture_batches(arriving(20, broken=(0, 6, 19)), FIT, FIT, batch_size=5))
    assert [numbers(batch) for batch in batches] == [
        [1, 2, 3, 4, 5],
        [7, 8, 9, 10, 11],
        [12, 13, 14, 15, 16],
        [17, 18],
        [],
    ]
    assert [batch.end for batch in batches] == [6, 12, 17, 19, 20]
    assert [[failure.path for failure in batch.failures] for batch in batches] == [
        *(["0.png"], ["6.png"], [], [], ["19.png"])
    ]
    for batch in batches[:-1]:
        assert batch.index.tolist() == numbers(batch)
        assert batch.paths == tuple(f"{number}.png" for number in batch.index)
        assert batch.views[0] is batch.views[1]  # equal geometries share one view


def test_no_more_is_read_than_a_batch_and_two(arriving):
    batches = picture_batches(arriving(1000), FIT, batch_size=8)
    for turn in range(1, 5):
        next(batches)
        assert len(arriving.taken) == 8 * turn + 2


@pytest.mark.parametrize(
    ("count", "sizes"), [(0, []), (1, [1]), (2, [2]), (8, [8]), (9, [7, 2]), (10, [8, 2]), (17, [8, 7, 2])]
)
def test_the_last_batch_is_not_of_one_alone(arriving, count, sizes):
    assert [len(batch.index) for batch in picture_batches(arriving(count), FIT, batch_size=8)] == sizes


@pytest.mark.parametrize(("count", "sizes"), [(0, []), (1, []), (8, [8]), (9, [8]), (10, [8, 2]), (17, [8, 8])])
def test_what_goes_on_gives_a_batch_when_it_is_full(arriving, count, sizes):
    batches = picture_batches(arriving(count), FIT, batch_size=8, ends=False)
    for turn, size in enumerate(sizes, start=1):
        assert len(next(batches).index) == size
        assert len(arriving.taken) == min(8 * turn, count)
    assert list(batches) == []


def test_members_of_two_sizes_have_a_view_each(arriving):
    large = bacs.Preprocessing((0.5,), (0.25,), size=(6, 8))
    (batch,) = picture_batches(arriving(3), FIT, large, batch_size=8)
    assert [view.shape for view in batch.views] == [(3, 4, 4, 3), (3, 6, 8, 1)]


def test_a_member_without_a_size_is_refused():
    unsized = bacs.Preprocessing((0.5,), (0.25,))
    for fit, message in ((unsized, "size must say what the models take"), (None, "need a member with preprocessing")):
        with pytest.raises(ValueError, match=message):
            next(picture_batches([Encoded(0, "a", Path("a"))], fit, batch_size=8))
