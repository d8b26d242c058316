"""Schedules of tasks by hand and by bounds that hold for any, and docs/scale.md beside its records."""

import json
import random
from collections import Counter

import pytest
from pages import ROOT, with_table
from scale import IMAGES, PAGE, TABLES, cells, cost, seconds_of
from scale_schedule import Span, facts, most_at_once, schedule

RECORD = json.loads((ROOT / "results" / "scale" / "ray.json").read_text())


def test_each_worker_takes_the_next_task_as_soon_as_it_is_free():
    spans = schedule({"a": 3, "b": 1, "c": 1, "d": 4}, 2)
    assert spans == [Span("a", 0, 3), Span("b", 0, 1), Span("c", 1, 2), Span("d", 2, 6)]
    assert facts(spans, 2) == (6, 4.5, 3, 0, 0)  # 9 of work; one worker has nothing left to do from 3 on
    assert facts(schedule({"d": 4, "a": 3, "b": 1, "c": 1}, 2), 2).makespan == 5


def test_what_a_lost_worker_was_at_begins_again_before_anything_that_waits():
    spans = schedule({"a": 4, "b": 6, "c": 2, "d": 1}, 2, lost=1, lost_at=3)
    assert spans == [Span("a", 0, 4), Span("b", 0, 3, False), Span("b", 4, 10), Span("c", 10, 12), Span("d", 12, 13)]
    # 13 of work: two workers do 6 until the loss, one the other 7.
    assert facts(spans, 2, lost=1, lost_at=3) == (13, 3 + 7, 0, 1, 3)
    last = schedule({"a": 4, "b": 6, "c": 2, "d": 1}, 2, lost=1, lost_at=3, again_last=True)
    assert last[2:] == [Span("c", 4, 6), Span("d", 6, 7), Span("b", 7, 13)]
    late = schedule({"a": 4, "b": 6}, 2, lost=1, lost_at=100)
    assert facts(late, 2, lost=1, lost_at=100) == (6, 5, 2, 0, 0)


@pytest.mark.parametrize("lost", [0, 1, 3])
@pytest.mark.parametrize("seed", range(10))
def test_any_schedule_does_everything_once_and_keeps_to_the_bounds_of_list_scheduling(seed, lost):
    numbers = random.Random(seed)
    tasks = {str(i): numbers.uniform(1, 9) for i in range(40)}
    loss = {"lost": lost, "lost_at": 15.0} if lost else {}
    spans = schedule(tasks, 5, **loss)
    assert sorted(span.task for span in spans if span.finished) == sorted(tasks)
    assert all(s.end - s.begin == pytest.approx(tasks[s.task]) for s in spans if s.finished)
    check_workers(spans, 5, lost, 15.0)
    found = facts(spans, 5, **loss)
    assert found.lost == lost
    # Graham's bound, of the workers that stay: they are never idle but in the tail, which is no longer than a task.
    assert found.ideal <= found.makespan <= found.ideal + (max(tasks.values()) + found.lost_work)
    assert found.tail <= max(tasks.values())


def check_workers(spans, workers, lost, lost_at):
    """No more attempts at a time than there are workers."""
    for at in (span.begin for span in spans):
        busy = sum(span.begin <= at < span.end for span in spans)
        assert busy <= (workers - lost if lost and at >= lost_at else workers)


def test_a_loss_of_all_workers_is_refused():
    with pytest.raises(ValueError, match="lost must be at least 0 and below 2 workers, got 2"):
        schedule({"a": 1}, 2, lost=2)


def test_groups_are_open_from_their_first_task_to_their_last():
    spans = [Span("a", 0, 1), Span("b", 1, 2), Span("c", 1, 3), Span("d", 4, 5)]
    assert most_at_once(spans, {"a": "x", "b": "y", "c": "z", "d": "x"}) == 3
    assert most_at_once(spans, {"a": "x", "b": "x", "c": "z", "d": "w"}) == 2


def test_a_cell_takes_its_steps_and_its_predictions_for_every_member_and_image():
    every = cells()
    assert len(every) == 15 * 5 * 4
    step = {method: turns["median"] for method, turns in cost()["seconds_per_image"].items()}
    hours = {cell.method: seconds_of(cell, 1) for cell in every}
    assert hours["vanilla"] == pytest.approx(10 * 50_000 * step["vanilla"])
    assert hours["bacs"] == pytest.approx(10 * 50_000 * (step["bacs"] + step["bn"]))
    bacs = next(cell for cell in every if cell.method == "bacs")
    assert [seconds_of(bacs, threads) / hours["bacs"] for threads in (2, 4, 10)] == pytest.approx([0.5, 0.3, 0.1])
    assert IMAGES == 50_000


def test_on_ray_every_cell_was_finished_once_and_only_lost_ones_were_begun_twice():
    spans = [Span(*span) for span in RECORD["spans"]]
    finished = Counter(span.task for span in spans if span.finished)
    assert finished == Counter(cell.id for cell in cells())
    broken = [span.task for span in spans if not span.finished]
    assert 0 < len(broken) <= RECORD["lost"]
    assert all(span.begin < RECORD["lost_at"] for span in spans if not span.finished)
    assert len(spans) == len(finished) + len(broken)


@pytest.mark.parametrize("title", TABLES)
def test_the_page_shows_what_the_records_hold(title):
    page = (ROOT / PAGE).read_text()
    assert with_table(page, title, TABLES[title]()) == page
