"""Whether the world has changed, by what batches look like and by what is said of them."""

import pytest
import torch

from bacs.control.signals import ENOUGH, NAMES, YOUNG, Usual
from bacs.control.standing import AGAIN, FIRST
from bacs.control.watch import Watch


def jump_among(values):
    """What is found in batches whose signals have these means, and a deviation of 1 from image to image."""
    generator = torch.Generator().manual_seed(0)
    usual, found = Usual(), None
    for value in values:
        signals = value + torch.randn(len(NAMES), 64, generator=generator, dtype=torch.float64)
        found = usual.jump_to(signals)
        usual.add(signals)
    return found


def test_several_batches_together_surprise_where_one_by_itself_does_not():
    usual = Usual()
    signals = torch.zeros(len(NAMES), 64, dtype=torch.float64)
    for batch in range(2 * ENOUGH):
        usual.add(signals + (-1) ** batch)  # batches differ much, as where classes come in runs
    moved = signals + 3.5  # about three of their deviations
    told = []
    for _ in range(4):
        told.append(usual.surprise_in(moved))
        usual.add(moved)
    assert told[:3] == [None] * 3
    assert "agreement went from 0 to 3.5" in told[3]


@pytest.mark.parametrize("values", [[0, 0, 3], [0, 3], [0, 1.5, 3], [0, 0, 1.4, 3, 3], [3, 3, 3, 3, 0]])
def test_a_jump_is_found_among_fewer_batches_than_surprise_needs(values):
    """Three deviations of images are 17 standard errors of the mean of 64; one batch may be of both worlds."""
    found = jump_among(values)
    assert found is not None
    assert found.startswith(("brightness went from", "contrast went from", "roughness went from"))


@pytest.mark.parametrize(
    "values",
    [[], [3], [0] * 6, [0, 3, 0, 3, 0, 3], [0, 1, 2, 3, 4, 5], [0, 1], [0, 3] + [3] * YOUNG],
    ids=["none", "one", "alike", "alternate", "climb", "little", "long ago"],
)
def test_batches_that_are_alike_or_that_differ_all_the_time_have_no_jump(values):
    assert jump_among(values) is None


def test_what_networks_say_is_no_jump_of_the_images():
    of_networks = torch.tensor([[1], [1], [0], [0], [0]])
    assert jump_among([0, 0, 9 * of_networks]) is None
    assert jump_among([0, 0, 9 * (1 - of_networks)]) is not None


@pytest.mark.parametrize("few", [False, True])
def test_a_young_world_that_jumps_is_a_new_one_except_where_classes_come_in_runs(ensemble, few):
    watch = Watch(ensemble, seed=0)
    watch.update(few=few)
    generator = torch.Generator().manual_seed(0)
    told = []
    for batch in range(4):
        signals = torch.randn(len(NAMES), 64, generator=generator, dtype=torch.float64) + 3 * (batch > 1)
        watch.class_runs.add(torch.full((64,), int(batch > 1)), 6)
        told.append(watch.notice_change(signals, adapts=True))
    assert [each is not None for each in told] == [False, False, not few, False]
    assert watch.now.holds is not few
    assert watch.now.settled == (0 if few else FIRST - AGAIN)
    assert watch.runs_are_seen is few
    assert len(watch.usual.means) == (4 if few else 2)
