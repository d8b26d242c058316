"""What decisions are made of, each by itself: scores, counted classes, rates, and a part of the way home."""

import copy
import math
from dataclasses import replace

import pytest
import torch

import bacs
from bacs.control import candidates, probe, steps
from bacs.control.auto import part_of_the_way
from bacs.control.probe import Votes
from bacs.posteriors import flat
from blobs import blobs, shifted
from small import small_member


def moved(member):
    """A member with every weight one higher."""
    model = copy.deepcopy(member.model)
    with torch.no_grad():
        for p in model.parameters():
            p += 1
    return replace(member, model=model)


def seen_of(*rows, classes=4):
    return Votes(torch.tensor(rows), classes, 0.5)


VARIED = seen_of([0, 1, 2, 3], [0, 1, 2, 3])  # four classes, in full agreement
NARROW = seen_of([0, 0, 1, 1], [0, 0, 1, 1])  # two
SPLIT = seen_of([0, 1, 2, 3], [0, 1, 3, 2])  # four, half agreed on


def test_collapse_is_what_is_lost_of_the_anchors_classes_and_never_what_is_won():
    assert probe.collapse(NARROW, VARIED) == pytest.approx(math.log(2))
    assert probe.collapse(VARIED, NARROW) == 0


def test_a_collapse_costs_a_tenth_of_its_nats():
    assert probe.score(NARROW, VARIED) == pytest.approx(1 - 0.1 * math.log(2))
    assert probe.score(SPLIT, VARIED) == pytest.approx(0.5)


def test_a_gain_is_a_difference_of_scores_with_the_standard_error_over_images():
    better, error = probe.gain(VARIED, VARIED, SPLIT)
    differences = [0.0, 0.0, 1.0, 1.0]
    mean = sum(differences) / 4
    deviation = math.sqrt(sum((each - mean) ** 2 for each in differences) / 3)
    assert better == pytest.approx(mean)
    assert error == pytest.approx(deviation / 2)
    assert probe.gain(VARIED, VARIED, VARIED) == (0, 0.5 / 4)  # never surer than half an image


@pytest.mark.parametrize(("errors", "share"), [(1.7, 0.5), (1.8, 0.0)])
def test_statistics_are_picked_if_they_are_better_by_so_many_standard_errors(errors, share):
    """The gain of a half is of sqrt(3) standard errors here."""
    assert candidates.pick({0.0: SPLIT, 0.5: VARIED}, mirrored=False, errors=errors).batch_weight == share


def test_pictures_are_mirrored_left_to_right_in_either_layout():
    pixels = torch.arange(2 * 3 * 5 * 3, dtype=torch.uint8).reshape(2, 3, 5, 3)
    assert torch.equal(probe.mirror(pixels)[0, 1, 0], pixels[0, 1, 4])
    floats = pixels.permute(0, 3, 1, 2).float()
    assert torch.equal(probe.mirror(floats)[0, :, 1, 0], floats[0, :, 1, 4])


def test_classes_are_counted_under_the_chosen_share_but_never_under_less_than_the_anchor():
    found = {0.0: NARROW, 0.25: VARIED, 1.0: SPLIT}
    assert candidates.basis_of_count(found, 0.0) is VARIED
    assert candidates.basis_of_count(found, 1.0) is SPLIT


def test_masked_classes_are_not_possible(ensemble):
    assert candidates.possible_classes(ensemble, 6) == 6
    masked = replace(ensemble, class_mask=torch.tensor([True, True, False, True, False, False]))
    assert candidates.possible_classes(masked, 6) == 3


def test_few_and_many_steps_go_the_same_way(ensemble):
    rates = [steps.arguments_for(ensemble, count)["learning_rate"] for count in (2, 8, 16, 160, 8000)]
    assert rates == pytest.approx([0.08, 0.02, 0.01, 0.001, 0.00002])
    assert steps.arguments_for(ensemble, 1)["learning_rate"] == 0.08  # no further than was tried


def test_without_a_posterior_no_step_is_large():
    member = small_member()
    loose = bacs.Ensemble([replace(member, posterior=flat.init(dict(member.model.named_parameters())))])
    rates = [steps.arguments_for(loose, count)["learning_rate"] for count in (1, 16, 160)]
    assert rates == pytest.approx([0.01, 0.01, 0.001])


def test_without_a_posterior_only_scales_and_shifts_move():
    member = small_member()
    loose = replace(member, posterior=flat.init(dict(member.model.named_parameters())))
    assert steps.arguments_for(bacs.Ensemble([member]), 1)["method"] == "bacs"
    assert steps.arguments_for(bacs.Ensemble([member, loose]), 1)["method"] == "tent"


def test_few_images_move_no_weight(ensemble):
    points, _ = blobs(128, 5)
    assert bacs.choose(ensemble, shifted(points), batch_size=32).adapts
    few = bacs.choose(ensemble, shifted(points[:60]), batch_size=30)
    assert not few.adapts
    assert few.reasons[-1] == "60 images are too few to adapt weights"


def test_a_part_of_the_way_is_counted_from_home(ensemble):
    away = replace(ensemble, members=[moved(member) for member in ensemble.members])
    quarter = part_of_the_way(ensemble, away, 0.25)
    assert str(quarter.statistics) == "batch statistics"  # those that were gathered are of other weights
    for member, home in zip(quarter.members, ensemble.members, strict=True):
        for own, theirs in zip(member.model.parameters(), home.model.parameters(), strict=True):
            torch.testing.assert_close(own, theirs + 0.25)  # of a way of 1
    for member, home in zip(away.members, ensemble.members, strict=True):
        own, theirs = next(member.model.parameters()), next(home.model.parameters())
        torch.testing.assert_close(own, theirs + 1)  # and the ends stay where they were
