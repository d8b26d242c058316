"""Worlds: the plan at every place, the same pixels from wherever a stream begins, and classes in their order."""

from itertools import islice

import numpy as np
import pytest

from bacs.corruptions import corrupt
from bacs.data import Segment, World, plan_segments, sorted_order, world_batches

PIXELS = np.random.default_rng(0).integers(0, 256, (30, 8, 8, 3), dtype=np.uint8)
LABELS = np.arange(30) % 3
EVERY_KIND = (
    Segment(20),
    Segment(25, ("gaussian_noise",)),
    Segment(30, ("fog",), (0, 5, 1)),
    Segment(15, ("impulse_noise", "frost"), (3,)),
)


def joined(batches):
    batches = list(batches)
    return np.concatenate([b.images for b in batches]), np.concatenate([b.labels for b in batches])


@pytest.mark.parametrize("order", ["shuffled", "correlated", "sorted"])
@pytest.mark.parametrize("start", [1, 16, 44, 89, 90, 137])
def test_a_stream_that_begins_in_the_middle_shows_the_same_pixels(order, start):
    world = World(EVERY_KIND, images=200, order=order, seed=3)
    pixels, labels = joined(world_batches(world, PIXELS, LABELS, batch_size=16))
    assert len(pixels) == 200
    later, own = joined(world_batches(world, PIXELS, LABELS, batch_size=7, start=start))
    np.testing.assert_array_equal(later, pixels[start:])
    np.testing.assert_array_equal(own, labels[start:])


def test_pixels_are_those_of_the_corruption_at_its_place():
    world = World((Segment(10), Segment(10, ("gaussian_noise",), (4,))), images=40, seed=5)
    numbers = np.concatenate([np.random.default_rng((5, turn)).permutation(30) for turn in range(2)])
    pixels, _ = joined(world_batches(world, PIXELS, LABELS, batch_size=9))
    clean = PIXELS[numbers[:40]]
    np.testing.assert_array_equal(pixels[:10], clean[:10])
    for first in (10, 30):  # the second time the noise is another one
        expected = corrupt(clean[first : first + 10], "gaussian_noise", 4, seed=5, first_index=first)
        np.testing.assert_array_equal(pixels[first : first + 10], expected)
    np.testing.assert_array_equal(pixels[20:30], clean[20:30])


def test_severities_rise_and_fall():
    segment = Segment(101, ("contrast",), (1, 5, 1))
    np.testing.assert_allclose(segment.severity_at(np.array([0, 25, 50, 100])), [1, 3, 5, 1])
    world = World((segment,), images=101)
    pixels, _ = joined(world_batches(world, PIXELS, LABELS))
    spread = pixels.reshape(101, -1).std(axis=1)  # contrast takes it away
    assert spread[:10].mean() > 1.5 * spread[45:56].mean() < spread[-10:].mean()


def test_between_two_severities_the_nearer_one_comes_more_often():
    world = World((Segment(400, ("contrast",), (2.25,)),), images=400)
    clean = np.broadcast_to(PIXELS[:1], (400, 8, 8, 3))
    pixels, _ = joined(world_batches(world, clean, np.zeros(400, np.int64)))
    levels = {level: corrupt(PIXELS[:1], "contrast", level)[0] for level in (2, 3)}
    found = [next(level for level, one in levels.items() if (image == one).all()) for image in pixels]
    assert np.mean(np.array(found) == 3) == pytest.approx(0.25, abs=0.08)  # four deviations of 400 draws


def test_a_blend_begins_as_one_corruption_and_ends_as_the_other():
    world = World((Segment(11, ("contrast", "brightness"), (3,)),), images=11)
    clean = np.broadcast_to(PIXELS[:1], (11, 8, 8, 3))
    pixels, _ = joined(world_batches(world, clean, np.zeros(11, np.int64)))
    one, other = (corrupt(PIXELS[:1], name, 3)[0].astype(float) for name in ("contrast", "brightness"))
    for place in range(11):
        np.testing.assert_allclose(pixels[place], (1 - place / 10) * one + place / 10 * other, atol=0.51)


def test_parts_cover_every_image_once_and_return():
    world = World(EVERY_KIND, images=250)
    parts = list(world.parts())
    assert [(part.turn, part.first, part.images) for part in parts] == [
        *((0, 0, 20), (1, 20, 25), (2, 45, 30), (3, 75, 15)),
        *((4, 90, 20), (5, 110, 25), (6, 135, 30), (7, 165, 15)),
        *((8, 180, 20), (9, 200, 25), (10, 225, 25)),
    ]
    for start in range(250):
        part = next(world.parts(start))
        assert part.first == start
        (whole,) = [each for each in parts if each.first <= start < each.first + each.images]
        assert (part.turn, part.segment, part.begin) == (whole.turn, whole.segment, start - whole.first)


def test_a_world_without_end_goes_on():
    world = World(EVERY_KIND, order="sorted")
    firsts = [batch.first for batch in islice(world_batches(world, PIXELS, LABELS, batch_size=50), 20)]
    assert firsts == list(range(0, 1000, 50))


def test_every_image_passes_before_any_passes_again():
    numbered = np.broadcast_to(np.arange(30, dtype=np.uint8)[:, None, None, None], (30, 4, 4, 3))
    for order in ("shuffled", "correlated", "sorted"):
        world = World((Segment(10),), images=90, order=order)
        pixels, labels = joined(world_batches(world, numbered, LABELS, batch_size=13))
        numbers = pixels[:, 0, 0, 0].reshape(3, 30)
        assert all(sorted(one) == list(range(30)) for one in numbers.tolist())
        assert len({tuple(one) for one in numbers.tolist()}) == 3
        np.testing.assert_array_equal(labels, numbers.ravel() % 3)


def test_sorted_classes_come_in_one_run_each():
    labels = np.random.default_rng(1).integers(0, 7, 200)
    order = sorted_order(labels, seed=2)
    assert sorted(order.tolist()) == list(range(200))
    assert np.count_nonzero(np.diff(labels[order])) == 6
    assert sorted_order(np.array([], np.int64)).tolist() == []


def test_correlated_classes_come_in_runs_of_a_slot():
    labels = np.arange(1000) % 10
    how = {"segments": (Segment(1000),), "images": 1000, "slot_size": 50}
    clean = np.zeros((1000, 2, 2, 3), np.uint8)

    def classes(world):
        return np.mean([len(set(b.labels)) for b in world_batches(world, clean, labels, batch_size=50)])

    few, many = World(order="correlated", alpha=0.01, **how), World(**how)
    assert classes(few) < 3 < 9 < classes(many)


def test_no_batch_is_of_one_image_alone():
    world = World((Segment(10),), images=33)
    assert [len(b.images) for b in world_batches(world, PIXELS, batch_size=16)] == [16, 15, 2]
    assert [len(b.images) for b in world_batches(world, PIXELS, batch_size=16, start=16)] == [15, 2]
    assert list(world_batches(world, PIXELS, start=33)) == []


def test_plans():
    names = ("fog", "snow", "frost")
    abrupt = plan_segments("abrupt", names, severities=(5, 1), images=10)
    assert [(each.name, each.images) for each in abrupt] == [("fog/5", 10), ("snow/1", 10), ("frost/5", 10)]
    assert [each.name for each in plan_segments("gradual", names)] == [f"{name}/1-5-1" for name in names]
    assert [each.name for each in plan_segments("blended", names)] == ["fog+snow/5", "snow+frost/5", "frost+fog/5"]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Segment(0), "images of a segment must be >= 1, got 0"),
        (lambda: Segment(5, ("fogg",)), "corruptions must be one of .* got 'fogg' .did you mean 'fog'"),
        (lambda: Segment(5, ("fog", "snow", "frost")), "one, or two to blend, got"),
        (lambda: Segment(5, ("fog",), (6,)), r"severities of a segment must be numbers from 0 to 5, got \[6\]"),
        (lambda: Segment(5, ("fog",), ()), r"severities of a segment must be numbers from 0 to 5, got \[\]"),
        (lambda: World(()), "segments must be one or more"),
        (lambda: World((Segment(5),), images=0), "images must be >= 1, got 0"),
        (lambda: World((Segment(5),), order="random"), "order must be one of shuffled, correlated, sorted"),
        (lambda: World((Segment(5),), alpha=0), "alpha must be > 0, got 0"),
        (lambda: World((Segment(5),), slot_size=0), "slot_size must be >= 1, got 0"),
        (lambda: plan_segments("slow"), "changes must be one of abrupt, gradual, blended; got 'slow'"),
        (lambda: plan_segments("abrupt", ()), "corruptions must be one or more"),
        (lambda: next(world_batches(World((Segment(5),)), PIXELS, batch_size=0)), "batch_size must be >= 1, got 0"),
        (lambda: next(world_batches(World((Segment(5),), images=9), PIXELS, start=10)), "a place in the stream of 9"),
        (
            lambda: next(world_batches(World((Segment(5),), order="sorted"), PIXELS)),
            "order must be 'shuffled' for images without labels, got 'sorted'",
        ),
    ],
)
def test_wrong_arguments(make, message):
    with pytest.raises(ValueError, match=message):
        make()
