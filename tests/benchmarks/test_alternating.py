"""The benchmark suite: sides take turns, ratios are those of the turns, and the plain side does what ours does."""

import copy

import pytest
import torch
from benchmarks.performance import gemm, other_ways, plain
from benchmarks.performance.alternating import alternate, ratio
from benchmarks.performance.line import fit
from torch import nn

import bacs
from bacs.parameters import read
from small import small_member


class Clock:
    """Time that passes only when a side spends it."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now

    def side(self, name, durations, heard):
        durations = iter(durations)

        def run():
            heard.append(name)
            self.now += next(durations)

        return run


def test_sides_take_turns_backwards_every_other_time_after_a_warm_up():
    clock, heard = Clock(), []
    sides = {name: clock.side(name, [1.0] * 4, heard) for name in "AB"}
    alternate(sides, turns=3, warm_up=1, clock=clock)
    assert "".join(heard) == "AB" + "AB" + "BA" + "AB"


def test_ratios_are_taken_turn_by_turn_and_without_the_warm_up():
    clock, heard = Clock(), []
    # The machine is slow in the second turn for both: the ratio there is 3, not 30 / 2 or 6 / 10.
    sides = {"slow": clock.side("slow", [99, 6, 30, 8], heard), "fast": clock.side("fast", [1, 2, 10, 2], heard)}
    seconds = alternate(sides, turns=3, clock=clock)
    assert seconds == {"slow": [6, 30, 8], "fast": [2, 10, 2]}
    assert ratio(seconds["slow"], seconds["fast"]) == (3, 3, 4)


@pytest.mark.parametrize(("names", "turns"), [("A", 3), ("AB", 0)])
def test_one_side_or_no_turn_is_refused(names, turns):
    with pytest.raises(ValueError, match="at least 2 sides and 1 turn, got"):
        alternate(dict.fromkeys(names, lambda: None), turns=turns)


@pytest.mark.parametrize(("method", "plainly"), [("tent", plain.tent), ("bacs-no-posterior", plain.all_weights)])
def test_the_plain_steps_are_ours(method, plainly, images):
    member = small_member()
    model = copy.deepcopy(member.model).double()
    ours = bacs.Ensemble([bacs.Member(copy.deepcopy(model), member.posterior)])
    stream = bacs.stream(ours, method, learning_rate=0.05)
    step = plainly(model, learning_rate=0.05, momentum=0.9)
    before = read(model)
    for batch in images.double().split(20):
        # Sums in another order, by the other memory layout: rounding of float64 and what two steps make of it.
        torch.testing.assert_close(step(batch).softmax(dim=1), stream.step(batch), rtol=0, atol=1e-10)
    assert stream.steps == 2
    theirs = read(stream.members[0].model)
    moved = [name for name, p in read(model).items() if not torch.equal(p, before[name])]
    assert len(moved) == (len(before) if method != "tent" else sum("norm" in n or "shortcut.1" in n for n in before))
    for name, p in read(model).items():
        torch.testing.assert_close(p, theirs[name], rtol=0, atol=1e-10)


def test_stacked_members_take_the_steps_that_plain_ones_take(images):
    models = [small_member(seed).model.double() for seed in (0, 1)]
    together = other_ways.stacked([copy.deepcopy(model) for model in models], learning_rate=0.05)
    apart = [plain.all_weights(model, learning_rate=0.05) for model in models]
    for batch in images.double().split(16)[:2]:
        weights = together(batch)
        for step in apart:
            step(batch)
    for place, model in enumerate(models):
        for name, value in model.named_parameters():
            torch.testing.assert_close(weights[name][place], value.detach(), rtol=1e-9, atol=1e-10)


def test_the_work_of_a_step_is_counted_without_what_nobody_needs():
    model = nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(4 * 5 * 5, 6))
    images = torch.randn(8, 3, 5, 5, generator=torch.Generator().manual_seed(0))
    convolution, linear = 2 * 8 * 25 * 4 * 27, 2 * 8 * 100 * 6
    # All weights: the images' gradient is left out. TENT: the gradient through the head alone.
    assert gemm.step_operations(copy.deepcopy(model), "bacs", images) == 2 * convolution + 3 * linear
    assert gemm.step_operations(copy.deepcopy(model), "tent", images) == convolution + 2 * linear


def test_a_line_through_points_has_their_slope():
    assert fit([1, 2, 4], [5.0, 7.0, 11.0]) == pytest.approx((2, 3, 1))
    # By hand: x - 1 = (-1, 0, 1), y = (0, 3, 3), slope 3/2, residuals (-1/2, 1, -1/2), R^2 = 1 - 1.5 / 6.
    assert fit([0, 1, 2], [0.0, 3.0, 3.0]) == pytest.approx((1.5, 0.5, 0.75))
    assert fit([1, 2, 3], [4.0, 4.0, 4.0]).r_squared == 1
