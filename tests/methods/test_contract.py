"""The contract of every method under every kind of statistics and every objective, on one thread and on two."""

from contextlib import contextmanager
from itertools import product

import pytest
import torch

import bacs
from bacs.objectives import OBJECTIVES
from small import small_member

STATISTICS = {
    "of the row": {},
    "mixture": {"batch_weight": 0.4},
    "source": {"batch_weight": 0.0},
    "running": {"statistics": "running", "batch_weight": 0.2},
    "accumulated": {"statistics": "accumulated"},
}
SUM = "entropy + 0.5 * consistency + 0.5 * ensemble_teacher"
CHOOSING = [name for name, row in bacs.METHODS.items() if row.chooses]
ADAPTING = [name for name, row in bacs.METHODS.items() if row.adapts and not row.chooses]
STILL = [name for name, row in bacs.METHODS.items() if not row.adapts]
CHOICES = [
    *product(STILL, STATISTICS, ["entropy"]),
    *product(ADAPTING, STATISTICS, [*OBJECTIVES, SUM]),
]


@pytest.fixture(scope="module")
def pair():
    """Two members: enough for peers, and for two threads."""
    return bacs.Ensemble([small_member(seed) for seed in range(2)])


@pytest.fixture
def few(images):
    return images[:16]


@contextmanager
def threads(number):
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(1)


def state(ensemble):
    return [{name: tensor.clone() for name, tensor in m.model.state_dict().items()} for m in ensemble.members]


def parameters(ensemble):
    return [{name: p.detach().clone() for name, p in m.model.named_parameters()} for m in ensemble.members]


def equal(first, second):
    return all(torch.equal(a[name], b[name]) for a, b in zip(first, second, strict=True) for name in a)


def arguments(statistics, objective):
    return STATISTICS[statistics] | {"objective": objective, "objective_temperature": 1.5, "learning_rate": 0.02}


@pytest.mark.parametrize(("method", "statistics", "objective"), CHOICES)
class TestEveryChoice:
    def test_offline(self, pair, few, method, statistics, objective):
        how = arguments(statistics, objective) | {"batch_size": 8}
        before, weights, predictions = state(pair), parameters(pair), []
        for number in (1, 2, 2):  # equal calls agree bit for bit, on one thread and on two
            with threads(number):
                adapted = bacs.adapt(pair, few, method, **how)
                predictions.append(adapted.predict(few, batch_size=8))
        assert torch.equal(predictions[0], predictions[1])
        assert torch.equal(predictions[1], predictions[2])
        torch.testing.assert_close(predictions[0].sum(dim=1), torch.ones(16))
        assert equal(before, state(pair))
        assert equal(weights, parameters(adapted)) == (method in STILL)
        assert equal(weights, parameters(bacs.adapt(pair, few, method, epochs=0, **how)))

    def test_online(self, pair, few, labels, method, statistics, objective):
        how = arguments(statistics, objective)
        if statistics == "accumulated":
            with pytest.raises(ValueError, match="statistics must not be 'accumulated' for a stream"):
                bacs.stream(pair, method, **how)
            return
        before = state(pair)
        stream = bacs.stream(pair, method, **how)
        first = torch.cat([stream.step(batch) for batch in few.split(8)])
        stream.reset()
        with threads(2):
            assert torch.equal(first, torch.cat([stream.step(batch) for batch in few.split(8)]))
        assert equal(before, state(pair))
        found = bacs.evaluate(pair, few, labels[:16], method, protocol="online", batch_size=8, **how).probabilities
        assert torch.equal(found.float(), first)


@pytest.mark.parametrize("method", CHOOSING)
def test_a_method_that_chooses(pair, images, labels, method):
    before = state(pair)
    predictions, steps = [], []
    for number in (1, 2, 2):
        with threads(number):
            predictions.append(bacs.adapt(pair, images, method, batch_size=8).predict(images, batch_size=8))
            stream = bacs.stream(pair, method)
            steps.append(torch.cat([stream.step(batch) for batch in images.split(8)]))
    for found in (predictions, steps):
        assert torch.equal(found[0], found[1])
        assert torch.equal(found[1], found[2])
    stream.reset()
    assert torch.equal(steps[0], torch.cat([stream.step(batch) for batch in images.split(8)]))
    assert equal(before, state(pair))
    for protocol, wanted in (("offline", predictions[0]), ("online", steps[0])):
        found = bacs.evaluate(pair, images, labels, method, protocol=protocol, batch_size=8).probabilities
        torch.testing.assert_close(found.float(), wanted)


def test_the_contract_covers_the_catalogue():
    assert {*ADAPTING, *STILL, *CHOOSING} == set(bacs.METHODS)
    # Each row under five kinds of statistics; those that adapt under every objective and a sum of three as well.
    objectives = len(OBJECTIVES) + 1
    assert len(CHOICES) == 5 * (len(STILL) + len(ADAPTING) * objectives)
    assert len(STILL) >= 2
    assert len(ADAPTING) >= 3
    assert objectives >= 5
