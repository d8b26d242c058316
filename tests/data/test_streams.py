import numpy as np
import pytest

from bacs.corruptions import TEST
from bacs.data import (
    ImageSet,
    batched,
    continual_names,
    correlated_order,
    gradual_names,
    shuffled_order,
    stream_batches,
)


def make_shift(name: str, count: int, classes: int = 10) -> ImageSet:
    """Images whose every pixel is their number, labels that are that number modulo `classes`."""
    numbers = np.arange(count)
    images = np.broadcast_to(numbers.astype(np.uint8)[:, None, None, None], (count, 2, 2, 3))
    return ImageSet(name, images, numbers % classes, tuple(str(each) for each in range(classes)))


@pytest.mark.parametrize("order", ["shuffled", "correlated", "stored"])
def test_every_image_passes_once_with_its_label(order):
    seen = list(stream_batches([make_shift("a", 50), make_shift("b", 30)], batch_size=16, order=order))
    assert [(batch.shift, len(batch.images)) for batch in seen] == [
        *[("a", 16)] * 3,
        ("a", 2),
        ("b", 16),
        ("b", 14),
    ]
    for name, count in (("a", 50), ("b", 30)):
        numbers = np.concatenate([batch.images[:, 0, 0, 0] for batch in seen if batch.shift == name])
        labels = np.concatenate([batch.labels for batch in seen if batch.shift == name])
        assert sorted(numbers.tolist()) == list(range(count))
        np.testing.assert_array_equal(labels, numbers % 10)
        assert (numbers.tolist() == list(range(count))) == (order == "stored")


@pytest.mark.parametrize("order", ["shuffled", "correlated"])
def test_the_seed_decides_the_order_and_shifts_differ(order):
    def numbers(seed):
        shifts = [make_shift("a", 40), make_shift("a", 40)]
        batches = stream_batches(shifts, batch_size=40, order=order, seed=seed)
        return [batch.images[:, 0, 0, 0].tolist() for batch in batches]

    assert numbers(1) == numbers(1)
    assert numbers(1) != numbers(2)
    assert numbers(1)[0] != numbers(1)[1]


def test_an_image_left_over_takes_another_along():
    assert [len(rows) for rows in batched(np.arange(33), 16)] == [16, 15, 2]
    assert np.concatenate(list(batched(np.arange(33), 16))).tolist() == list(range(33))
    assert [len(rows) for rows in batched(np.arange(1), 16)] == [1]


def test_global_random_state_is_left_alone():
    before = np.random.get_state()[1].tolist()
    correlated_order(np.arange(100) % 10)
    shuffled_order(100)
    assert np.random.get_state()[1].tolist() == before


def test_shifts_are_made_when_their_turn_comes():
    made = []

    def shifts():
        for name in "abc":
            made.append(name)
            yield make_shift(name, 4)

    stream = stream_batches(shifts(), batch_size=4)
    next(stream)
    assert made == ["a"]


def test_unlabelled_images_stream_without_labels():
    shift = ImageSet("site", np.zeros((5, 2, 2, 3), np.uint8), None, ())
    assert [batch.labels for batch in stream_batches([shift], batch_size=3)] == [None, None]
    with pytest.raises(ValueError, match="order must not be 'correlated' for site: it has no labels"):
        list(stream_batches([shift], order="correlated"))


def shares(order: np.ndarray, labels: np.ndarray, slot_size: int) -> np.ndarray:
    """The share of each class in each slot."""
    return np.array([np.bincount(labels[rows], minlength=10) / len(rows) for rows in batched(order, slot_size)])


def test_small_alpha_gives_slots_of_one_class_and_large_alpha_shuffles():
    labels = np.arange(4000) % 10
    pure = shares(correlated_order(labels, alpha=1e-4, slot_size=20), labels, 20)[:100]
    assert np.median(pure.max(axis=1)) == 1.0
    mixed = shares(correlated_order(labels, alpha=1e4, slot_size=200), labels, 200)
    assert abs(mixed - 0.1).max() < 0.1  # a multinomial share of 200 draws deviates by 0.02


def test_slot_shares_spread_as_a_dirichlet_multinomial():
    # Of n draws from Dirichlet(a, ..., a) over K classes: var(share) = m (1 - m) / n * (n + Ka) / (1 + Ka), m = 1 / K.
    labels = np.arange(200_000) % 10
    alpha, size, classes = 0.5, 50, 10
    early = shares(correlated_order(labels, alpha=alpha, slot_size=size, seed=1), labels, size)[:800]
    total = classes * alpha
    expected = 0.1 * 0.9 / size * (size + total) / (1 + total)
    assert early.var() == pytest.approx(expected, rel=0.1)


def test_unequal_classes_keep_their_shares_along_the_stream():
    labels = np.repeat([0, 1], [9000, 1000])
    order = correlated_order(labels, alpha=0.5, slot_size=10, seed=2)
    for part in np.array_split(labels[order], 4):
        assert part.mean() == pytest.approx(0.1, abs=0.06)


def test_class_imbalance_and_single_classes_are_served():
    labels = np.array([7] * 30 + [2])
    for alpha in (1e-300, 0.1, 1e6):
        assert sorted(correlated_order(labels, alpha=alpha, slot_size=8).tolist()) == list(range(31))
    assert correlated_order(np.array([], np.int64)).tolist() == []


def test_names_of_continual_and_gradual_runs():
    assert continual_names("cifar10-c") == [f"cifar10-c/{name}/5" for name in TEST]
    assert continual_names("imagenet-c", ["fog"], severity=3, suffix="@published") == ["imagenet-c/fog/3@published"]
    names = gradual_names("cifar10-c", ["fog", "snow"])
    assert [name.rsplit("/", 1)[-1] for name in names] == list("123454321") * 2
    assert [name.split("/")[1] for name in names] == ["fog"] * 9 + ["snow"] * 9


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"batch_size": 0}, "batch_size must be >= 1, got 0"),
        ({"order": "correlated", "alpha": 0.0}, "alpha must be > 0, got 0.0"),
    ],
)
def test_wrong_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        list(stream_batches([make_shift("a", 4)], **arguments))
