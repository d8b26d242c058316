"""Who answers, as a pure function: each rule by itself, on figures that leave no other rule a say."""

import pytest

from bacs.control.candidates import Picked
from bacs.control.decide import Choices, Evidence, decide, home_takes_over
from bacs.control.looks import Gain
from bacs.control.standing import AGAIN, FIRST, MEMORY, Standing, begin_world, count_classes, count_look, earn

KNOWN = Standing(settled=FIRST)
ADAPTING = Choices(adapts=True, batch_weight=1.0, statistics="source", aside=False, may_adapt=True, guard=True)
HOME = ADAPTING._replace(adapts=False, batch_weight=0.0)
SHIFTED = Evidence(Picked(1.0, "shifted"), 0.9, "9.0 of 10", Gain(0.0, 0.01))
FEW = "few classes at a time (9.0 of 10)"
LESS = "adapted weights agree less than statistics alone"


def told(now, chosen, seen):
    return [tuple(decision) for decision in decide(now, chosen, seen)]


def test_weights_that_agree_as_well_go_on():
    assert told(KNOWN, ADAPTING, SHIFTED) == []


def test_weights_that_agree_less_go_half_of_the_way_once_and_then_all_of_it():
    worse = SHIFTED._replace(gain=Gain(-0.02, 0.01))
    reason = f"{LESS} (-0.020 ± 0.010)"
    assert told(KNOWN, ADAPTING, worse) == [("go halfway", reason)]
    second = Standing(settled=FIRST, halved=True)
    assert told(second, ADAPTING, worse) == [("set aside", reason), ("normalise", "shifted")]


def test_weights_that_clearly_agree_less_go_all_of_the_way_at_once():
    worse = SHIFTED._replace(gain=Gain(-0.031, 0.01))
    assert [decision.what for decision in decide(KNOWN, ADAPTING, worse)] == ["set aside", "normalise"]


def test_where_nothing_has_shifted_weights_must_be_better_than_home():
    clean = SHIFTED._replace(picked=Picked(0.0, "clean"))
    assert told(KNOWN, ADAPTING, clean) == [("set aside", "clean")]
    better = clean._replace(gain=Gain(0.02, 0.01))
    assert told(KNOWN, ADAPTING, better) == []


def test_few_classes_end_adapting_and_begin_gathering():
    few = SHIFTED._replace(part=0.5)
    assert told(KNOWN, ADAPTING, few) == [("gather", FEW), ("set aside", FEW)]
    gathering = Standing(settled=FIRST, few=True)
    assert told(gathering, HOME._replace(batch_weight=1.0), few) == []
    unguarded = HOME._replace(guard=False, batch_weight=1.0)
    assert told(KNOWN, unguarded, few) == []


def test_weights_begin_in_a_shifted_world_of_mixed_classes_that_is_known():
    begin = [("begin", "shifted; classes are mixed (9.0 of 10): weights move too")]
    assert told(KNOWN, HOME, SHIFTED) == begin
    still = [("normalise", "shifted")]
    assert told(Standing(settled=FIRST - 1), HOME, SHIFTED) == still
    assert told(Standing(settled=FIRST, refused=True), HOME, SHIFTED) == still
    assert told(KNOWN, HOME._replace(may_adapt=False), SHIFTED) == still
    assert told(KNOWN, HOME, SHIFTED._replace(picked=Picked(0.0, "clean"))) == []


@pytest.mark.parametrize(("better", "expected"), [(0.0, "take up"), (-0.001, "normalise")])
def test_weights_set_aside_are_taken_up_when_they_agree_as_well(better, expected):
    chosen, seen = HOME._replace(aside=True), SHIFTED._replace(gain=Gain(better, 0.01))
    assert [decision.what for decision in decide(Standing(), chosen, seen)] == [expected]


def test_other_averages_than_those_of_training_are_let_go_of():
    running = HOME._replace(batch_weight=1.0, statistics="running", may_adapt=False)
    assert told(KNOWN, running, SHIFTED) == [("normalise", "shifted")]


def test_a_new_world_is_unknown_until_enough_of_it_was_looked_at():
    known = Standing(images=900, credit=3.0, settled=FIRST, refused=True, halved=True, picked=0.5)
    now = begin_world(known, holds=True)
    assert now == Standing(images=900, credit=3.0, picked=0.5, holds=True, settled=FIRST - AGAIN)
    almost = count_look(now, AGAIN - 1)
    assert (almost.holds, almost.knows_world) == (True, False)
    assert count_look(almost, 1) == Standing(images=900, credit=3.0, picked=0.5, settled=FIRST)


def test_the_first_world_takes_longer_unless_it_is_clear():
    now = Standing()
    assert not count_look(now, AGAIN).knows_world  # 128 images may be of one class
    assert not count_look(now, AGAIN - 1, clear=True).knows_world
    assert count_look(now, AGAIN, clear=True) == Standing(settled=FIRST)


def test_looks_earn_fifteen_percent_of_other_passes():
    assert earn(Standing(credit=0.0), 3, 64).credit == pytest.approx(0.15 * 192)


def test_a_memory_is_let_go_of_after_enough_mixed_batches_that_are_alike_and_no_sooner():
    now = Standing(few=True)
    for _ in range(MEMORY - 1):
        now = count_classes(now, 0.8, even=True)
    assert now.few
    assert count_classes(now, 0.8, even=True) == Standing()
    assert count_classes(now, -0.1, even=True).few  # 0.6875 in the mean
    assert count_classes(now, 0.8, even=False).few


def test_runs_of_classes_are_not_mixed_however_many_are_named():
    runs = SHIFTED._replace(runs=True)
    reason = "classes arrive in runs"
    assert told(KNOWN, ADAPTING, runs) == [("gather", reason), ("set aside", reason)]
    assert told(KNOWN, HOME, runs) == [("gather", reason)]


@pytest.mark.parametrize(
    ("better", "proven", "goes_home"),
    [(-0.011, False, False), (-0.009, False, True), (0.019, True, False), (0.021, True, True)],
)
def test_who_answered_in_the_old_world_must_agree_better_than_home_in_the_new_one(better, proven, goes_home):
    assert home_takes_over(Gain(better, 0.01), proven=proven) is goes_home


@pytest.mark.parametrize(("few", "settled", "errors"), [(True, AGAIN, 2), (True, FIRST, 1), (False, AGAIN, 1)])
def test_statistics_must_be_better_by_twice_as_much_while_few_runs_were_seen_of_a_world(few, settled, errors):
    assert Standing(few=few, settled=settled).errors_of_chance == errors
