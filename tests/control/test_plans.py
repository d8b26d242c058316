"""What looks ask and cost, case by case."""

from bacs.control.decide import Choices
from bacs.control.gather import DRAW, SMALL
from bacs.control.plans import plan_batch, plan_memory
from bacs.control.standing import FIRST, Standing

KNOWN, NEW = Standing(settled=FIRST), Standing()
HOME = Choices(adapts=False, batch_weight=0.0, statistics="source", aside=False, may_adapt=True, guard=True)
ADAPTING = HOME._replace(adapts=True, batch_weight=1.0)


def test_a_home_that_rests_is_asked_for_one_pass_more_than_its_answer():
    plan = plan_batch(KNOWN, HOME, 3)
    assert plan == ((0.0, 0.25), 0.0, False)
    assert plan.passes(64) == 64


def test_a_new_world_is_looked_at_under_every_share():
    assert plan_batch(NEW, HOME, 3).passes(64) == 2 * 64
    assert plan_batch(NEW, ADAPTING, 3) == ((0.0, 0.25, 1.0), None, False)
    assert plan_batch(NEW, HOME._replace(aside=True), 3).passes(64) == 3 * 64


def test_one_network_has_not_said_what_it_says_of_mirror_images():
    assert plan_batch(KNOWN, HOME, 1).said is None


def test_running_statistics_are_not_among_the_shares():
    assert plan_batch(KNOWN, HOME._replace(batch_weight=0.25, statistics="running"), 3).said is None


def test_few_classes_at_a_time_are_asked_about_half_of_a_memory():
    few = Standing(settled=FIRST, few=True)
    assert plan_memory(few, HOME, grown=True) == ((0.0, 0.5), DRAW, False)
    assert plan_memory(few, HOME, grown=True).passes() == DRAW + 2 * DRAW
    assert plan_memory(KNOWN, HOME, grown=False).shares == (0.0, 0.25, 1.0)


def test_a_home_that_rests_on_a_memory_is_asked_of_fewer_images():
    few = Standing(settled=FIRST, few=True)
    assert plan_memory(few, HOME, grown=False).images == SMALL
    assert plan_memory(Standing(few=True), HOME, grown=False).images == DRAW
    assert plan_memory(few, HOME._replace(batch_weight=0.5), grown=False).images == DRAW


def test_weights_aside_are_asked_once_home_needs_the_memory():
    few = Standing(settled=FIRST, few=True)
    aside = HOME._replace(aside=True)
    assert not plan_memory(few, aside, grown=True).away
    assert plan_memory(few, aside._replace(batch_weight=0.5), grown=True).away
    assert plan_memory(KNOWN, aside, grown=True).away
    assert plan_memory(few, ADAPTING, grown=True).away
