"""Each objective against another formula: NumPy and SciPy on probabilities instead of logits."""

import inspect

import numpy as np
import pytest
import torch
from scipy.special import softmax
from scipy.stats import entropy as scipy_entropy

from bacs.objectives import (
    OBJECTIVES,
    Seen,
    compose,
    consistency,
    ensemble_teacher,
    entropy,
    information_maximisation,
    mean_entropy,
    needs,
    terms,
)


@pytest.fixture
def logits():
    return 3 * torch.randn(6, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


@pytest.fixture
def seen(logits):
    generator = torch.Generator().manual_seed(1)
    peers = torch.randn(2, 6, 4, generator=generator, dtype=torch.float64)
    return Seen(logits, peers=peers, view=torch.randn(6, 4, generator=generator, dtype=torch.float64))


def test_entropy_is_scipys(logits):
    p = softmax(logits.numpy(), axis=1)
    np.testing.assert_allclose(entropy(logits), scipy_entropy(p, axis=1), atol=1e-12)
    assert mean_entropy(logits).item() == pytest.approx(scipy_entropy(p, axis=1).mean())


def test_certain_predictions_have_no_entropy_and_finite_gradients():
    logits = torch.tensor([[1000.0, 0.0, -1000.0]], requires_grad=True)
    mean_entropy(logits).backward()
    assert mean_entropy(logits).item() == 0
    assert torch.isfinite(logits.grad).all()


def test_information_maximisation_is_minus_the_mutual_information_of_inputs_and_labels(logits):
    joint = softmax(logits.numpy(), axis=1) / len(logits)  # p(x, y), each x equally often
    product = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0, keepdims=True)
    mutual = (joint * np.log(joint / product)).sum()
    assert information_maximisation(logits).item() == pytest.approx(-mutual)


def test_information_maximisation_gains_nothing_by_one_class_for_all():
    collapsed = torch.tensor([[50.0, 0.0, 0.0]]).expand(5, 3)
    varied = 50 * torch.eye(3)[[0, 1, 2, 0, 1]]
    assert information_maximisation(collapsed).item() == pytest.approx(0, abs=1e-6)
    assert information_maximisation(varied).item() < -1


def test_consistency_is_scipys_jensen_shannon_divergence(logits, seen):
    from scipy.spatial.distance import jensenshannon

    p, other = softmax(logits.numpy(), axis=1), softmax(seen.view.numpy(), axis=1)
    expected = (jensenshannon(p, other, axis=1) ** 2).mean()
    assert consistency(logits, seen.view).item() == pytest.approx(expected)
    assert consistency(logits, logits).item() == pytest.approx(0, abs=1e-12)


def test_the_teacher_is_the_mean_of_all_members_and_learns_nothing(logits, seen):
    own = logits.clone().requires_grad_()
    members = softmax(np.stack([logits.numpy(), *seen.peers.numpy()]), axis=-1)
    teacher = members.mean(axis=0)
    value = ensemble_teacher(own, seen.peers)
    assert value.item() == pytest.approx(-(teacher * np.log(members[0])).sum(axis=1).mean())
    value.backward()
    # d/dz of a cross-entropy to a constant teacher t is p - t.
    np.testing.assert_allclose(own.grad, (members[0] - teacher) / len(logits), atol=1e-12)


def test_an_objectives_parameters_say_what_it_looks_at():
    known = {
        "entropy": set(),
        "information_maximisation": set(),
        "consistency": {"view"},
        "ensemble_teacher": {"peers"},
    }
    assert known.keys() <= OBJECTIVES.keys()
    assert {name: set(needs(name)) for name in known} == known
    assert all(needs(name) <= {"view", "peers"} for name in OBJECTIVES)
    assert needs("entropy + 0.5 * consistency + 2*ensemble_teacher") == {"view", "peers"}
    assert needs(lambda z: z.sum()) == set()


@pytest.mark.parametrize("name", list(OBJECTIVES))
@pytest.mark.parametrize("temperature", [1.0, 2.5])
def test_every_objective_gives_one_number_and_a_gradient(name, temperature, seen):
    own = seen.logits.clone().requires_grad_()
    value = compose(name, temperature=temperature)(seen._replace(logits=own))
    assert value.shape == ()
    value.backward()
    assert own.grad.abs().sum() > 0


@pytest.mark.parametrize("name", list(OBJECTIVES))
def test_a_tempered_objective_is_t_times_that_of_divided_logits(name, seen):
    divided = [getattr(seen, field) / 3 for field in inspect.signature(OBJECTIVES[name]).parameters]
    expected = 3 * OBJECTIVES[name](*divided)
    assert compose(name, temperature=3.0)(seen).item() == pytest.approx(expected.item())


def test_a_sum_has_the_weights_that_it_names(seen):
    parts = {name: compose(name)(seen).item() for name in OBJECTIVES}
    value = compose("entropy + 0.5 * consistency + 2e-1*ensemble_teacher")(seen).item()
    expected = parts["entropy"] + 0.5 * parts["consistency"] + 0.2 * parts["ensemble_teacher"]
    assert value == pytest.approx(expected)
    assert [weight for weight, _ in terms("0.25 * entropy")] == [0.25]
