import math

import pytest

from bacs.training import Constant, Cosine, Linear


@pytest.mark.parametrize(("epoch", "rate"), [(0, 0.1), (150, 0.1), (210, 0.055), (270, 0.01), (299, 0.01), (300, 0.01)])
def test_linear_is_the_papers_schedule_by_default(epoch, rate):
    assert 0.1 * Linear()(epoch / 300) == pytest.approx(rate)


@pytest.mark.parametrize("epoch", [0, 40, 79, 80, 81, 100, 143, 144, 145, 160, 299])
def test_linear_can_be_the_schedule_of_swags_own_code(epoch):
    t = epoch / 160  # relative to the first snapshot instead of the end
    expected = 1.0 if t <= 0.5 else 1 - 0.9 * (t - 0.5) / 0.4 if t <= 0.9 else 0.1
    assert Linear(start=0.5 * 160 / 300, end=0.9 * 160 / 300)(epoch / 300) == pytest.approx(expected)


def test_cosine_warms_up_descends_to_zero_and_stays_at_the_final_rate():
    schedule = Cosine(warmup=0.05, end=0.9, final=0.00025)
    assert schedule(0) == 0
    assert schedule(0.025) == pytest.approx(0.5)
    assert schedule(0.05) == 1
    assert schedule(0.05 + 0.85 / 3) == pytest.approx((1 + math.cos(math.pi / 3)) / 2)
    assert schedule(0.8999999) == pytest.approx(0, abs=1e-9)
    assert 0.4 * schedule(0.9) == pytest.approx(1e-4)
    assert 0.4 * schedule(1.0) == pytest.approx(1e-4)


def test_constant_is_one():
    assert [Constant()(p) for p in (0, 0.5, 1)] == [1, 1, 1]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Linear(start=0.9, end=0.5), "0 <= start < end <= 1, got start=0.9, end=0.5"),
        (lambda: Linear(final=-1), "final >= 0, got -1"),
        (lambda: Cosine(warmup=1.0), "0 <= warmup < end <= 1"),
    ],
)
def test_impossible_schedules_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
