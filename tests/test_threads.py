"""Members on threads of their own give the numbers that they give one after another."""

import threading
import time

import pytest
import torch
from torch.utils.data import TensorDataset

import bacs
from bacs.threads import Threads, can_share


@pytest.fixture
def two_threads():
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(1)


def probabilities(ensemble, images):
    running = bacs.stream(ensemble, "bacs")
    return {
        "adapt and predict": bacs.adapt(ensemble, images, "bacs", batch_size=16).predict(images, batch_size=16),
        "stream": torch.cat([running.step(batch) for batch in images.split(20)]),
    }


@pytest.mark.parametrize("protocol", ["offline", "online"])
def test_evaluations_are_those_of_one_thread_bit_for_bit(protocol, ensemble, images, labels):
    expected = bacs.evaluate(ensemble, images, labels, "bacs", protocol=protocol, batch_size=16)
    torch.set_num_threads(2)
    try:
        found = bacs.evaluate(ensemble, images, labels, "bacs", protocol=protocol, batch_size=16)
    finally:
        torch.set_num_threads(1)
    assert found.members == expected.members
    assert torch.equal(found.probabilities, expected.probabilities)


def test_predictions_and_streams_are_those_of_one_thread_bit_for_bit(ensemble, images):
    expected = probabilities(ensemble, images)
    torch.set_num_threads(2)
    try:
        found = probabilities(ensemble, images)
    finally:
        torch.set_num_threads(1)
    for name, rows in expected.items():
        assert torch.equal(found[name], rows), name


def test_every_image_of_every_member_is_heard_of(two_threads, ensemble, images):
    heard = []
    bacs.adapt(ensemble, images, "bacs", epochs=2, batch_size=16, on_batch=heard.append)
    assert sum(heard) == 2 * len(images) * len(ensemble)


def test_results_come_in_order_with_one_thread_each_and_no_more_than_two_at_a_time(two_threads):
    running, most = set(), []

    def work(number, on_batch):
        running.add(number)
        most.append(len(running))
        time.sleep(0.02 if number % 2 else 0.04)
        running.remove(number)
        return number, torch.get_num_threads(), threading.current_thread() is threading.main_thread()

    with Threads(6) as threads:
        assert list(threads.imap(work, range(6))) == [(number, 1, False) for number in range(6)]
    assert max(most) == 2
    assert torch.get_num_threads() == 2


def test_members_that_do_not_divide_evenly_take_turns_at_the_threads(two_threads):
    done, running, most, when_first_ended = [0, 0, 0], set(), [], []

    def work(number, on_batch):
        for _ in range(30):
            running.add(number)
            most.append(len(running))
            time.sleep(0.001)
            running.remove(number)
            done[number] += 1
            on_batch(1)
        when_first_ended.append(list(done))
        return number

    heard = []
    with Threads(3) as threads:
        assert list(threads.imap(work, range(3), on_batch=heard.append)) == [0, 1, 2]
    assert max(most) == 2
    assert min(when_first_ended[0]) >= 15  # one after the other, the third would not have begun
    assert sum(heard) == 90


def test_an_error_stops_the_others_and_gives_the_threads_back(two_threads):
    batches = []

    def work(number, on_batch):
        if number == 0:
            raise ValueError("member 0 is broken")
        for _ in range(10_000):
            time.sleep(0.001)
            on_batch(1)

    with Threads(4) as threads, pytest.raises(ValueError, match="member 0 is broken"):
        list(threads.imap(work, range(4), on_batch=batches.append))
    assert len(batches) < 10_000
    assert torch.get_num_threads() == 2


def test_a_datasets_own_code_and_shared_models_are_used_by_one_thread_alone(ensemble, images):
    models = [member.model for member in ensemble.members]
    assert can_share(images, models)
    assert can_share(images.numpy(), models, "cpu")
    assert not can_share(TensorDataset(images), models)
    assert not can_share(images, [models[0], models[0]])
    assert not can_share(images, models, "cuda")
