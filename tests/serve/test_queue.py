"""Batches: whole requests of one form, in order, up to a size or a delay."""

from threading import Thread

import numpy as np
import pytest

from bacs.serve.queue import PATIENCE, Action, Queue, QueueClosed, QueueFull


def filled(queue, *counts, kind=np.uint8):
    places = [queue.reserve(count) for count in counts]
    for place in places:
        queue.fill(place, (np.zeros((place.images, 2), kind),))
    return places


def test_a_batch_holds_whole_requests_up_to_its_size():
    queue = Queue(100)
    places = filled(queue, 3, 3, 3)
    assert queue.take(8, 0.0) == places[:2]
    assert queue.images == 3
    assert queue.take(8, 0.0) == places[2:]


def test_a_full_batch_does_not_wait():
    queue = Queue(100)
    places = filled(queue, 4, 4)
    assert queue.take(8, delay=1e9) == places


def test_a_request_that_does_not_fit_any_more_ends_the_wait():
    queue = Queue(100)
    places = filled(queue, 5, 4)
    assert queue.take(8, delay=1e9) == places[:1]


def test_requests_of_another_form_are_another_batch():
    queue = Queue(100)
    places = filled(queue, 2) + filled(queue, 2, kind=np.float32) + filled(queue, 2)
    assert [queue.take(8, 0.0) for _ in places] == [[place] for place in places]


def test_a_place_is_kept_while_its_pictures_are_decoded():
    queue = Queue(100)
    slow, quick = queue.reserve(1), queue.reserve(1)
    queue.fill(quick, (np.zeros((1, 2)),))
    taken = []
    thread = Thread(target=lambda: taken.append(queue.take(2, 1e9)))
    thread.start()
    queue.fill(slow, (np.zeros((1, 2)),))
    thread.join()
    assert taken == [[slow, quick]]


def test_a_dropped_place_holds_nobody_up():
    queue = Queue(100)
    broken, good = queue.reserve(1), queue.reserve(1)
    queue.fill(good, (np.zeros((1, 2)),))
    queue.drop(broken)
    assert queue.take(1, 0.0) == [good]
    queue.drop(good)  # too late: nothing happens
    assert queue.images == 0


def test_a_full_queue_refuses_and_room_is_given_back():
    queue = Queue(4)
    places = filled(queue, 3)
    with pytest.raises(QueueFull):
        queue.reserve(2)
    queue.drop(places[0])
    queue.reserve(4)


def test_actions_go_before_batches():
    queue = Queue(4)
    filled(queue, 1)
    queue.ask(int)
    assert isinstance(queue.take(1, 0.0), Action)


def test_in_a_hurry_no_batch_waits():
    queue = Queue(4)
    places = filled(queue, 1)
    queue.hurry()
    assert queue.take(4, delay=1e9) == places


def test_a_closed_queue_hands_out_what_it_has():
    queue = Queue(4)
    places = filled(queue, 1)
    queue.close()
    assert queue.take(4, delay=1e9) == places
    assert queue.take(4, 0.0) is None
    for refused in (lambda: queue.reserve(1), lambda: queue.ask(int)):
        with pytest.raises(QueueClosed):
            refused()


class Clock:
    """Time that passes only while somebody waits."""

    def __init__(self, monkeypatch, queue, arrivals=()):
        self.now, self.arrivals = 100.0, list(arrivals)
        monkeypatch.setattr("bacs.serve.queue.time.monotonic", lambda: self.now)
        monkeypatch.setattr(queue._changed, "wait", lambda left: self.wait(queue, left))

    def wait(self, queue, left):
        if self.arrivals and self.arrivals[0] <= self.now + left:
            self.now = self.arrivals.pop(0)
            filled(queue, 1)
        else:
            self.now += left


def test_a_batch_waits_while_more_requests_come_each_within_the_delay(monkeypatch):
    queue = Queue(100)
    clock = Clock(monkeypatch, queue, arrivals=[101.0, 102.5, 105.0])
    filled(queue, 1)
    assert len(queue.take(8, delay=2.0)) == 3  # the fourth came 2.5 seconds after the third
    assert clock.now == pytest.approx(104.5)


def test_a_batch_that_requests_go_on_joining_waits_no_longer_than_its_patience(monkeypatch):
    queue = Queue(100)
    clock = Clock(monkeypatch, queue, arrivals=np.arange(101.0, 140.0))
    filled(queue, 1)
    assert len(queue.take(64, delay=2.0)) == 1 + 2 * PATIENCE
    assert clock.now == pytest.approx(100 + 2 * PATIENCE)


def test_a_batch_that_is_ready_when_the_worker_comes_back_still_waits_for_those_who_were_just_answered(monkeypatch):
    queue = Queue(100)
    clock = Clock(monkeypatch, queue, arrivals=[150.5])
    filled(queue, 1)
    clock.now = 150.0
    assert len(queue.take(64, delay=2.0)) == 2
    assert clock.now == pytest.approx(152.5)
