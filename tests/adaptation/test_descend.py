"""One step against hand-written arithmetic."""

import copy

import pytest
import torch

from bacs.adaptation import loop, statistics
from bacs.adaptation.descend import Descent
from bacs.adaptation.loop import Mover
from bacs.adaptation.statistics import BATCH
from bacs.errors import DivergenceError
from bacs.objectives import compose
from bacs.parameters import read, select
from bacs.posteriors import gaussian, gaussian_of
from bacs.posteriors.swag_diag import SwagDiag
from small import small_member, small_model

SETTINGS = {
    "posterior_weight": 0.0,
    "posterior_step": "proximal",
    "learning_rate": 0.1,
    "momentum": 0.9,
    "optimizer": "sgd",
}


def mover(model, which="all", *, log_q=None, proximal=None, **settings):
    statistics.use(model, BATCH)
    descent = Descent(model, select(model, which), log_q=log_q, proximal=proximal, **SETTINGS | settings)
    return Mover(model, lambda batch: batch, BATCH, descent, compose("entropy"))


def take_step(mover, batch):
    return loop.step([mover], [batch])[0]


def hand_written_entropy_gradient(model, inputs, names):
    """-sum p log p by its definition, with torch's own batch norm in training mode."""
    model = copy.deepcopy(model)
    model.train()
    p = torch.softmax(model(inputs), dim=1)
    loss = -(p * torch.log(p)).sum(dim=1).mean()
    params = dict(model.named_parameters())
    return dict(zip(names, torch.autograd.grad(loss, [params[name] for name in names]), strict=True))


def test_tents_step_is_the_entropy_step_on_batch_norm_scales_and_shifts_alone(images):
    model = small_model()
    before = read(model)
    affine = [name for name in before if "norm" in name or "shortcut.1" in name]
    gradient = hand_written_entropy_gradient(model, images, affine)
    take_step(mover(model, "norm_affine"), images)
    after = read(model)
    assert len(affine) == 18
    for name in before:
        if name in affine:
            torch.testing.assert_close(after[name], before[name] - 0.1 * gradient[name], rtol=1e-4, atol=1e-7)
            assert not torch.equal(after[name], before[name])
        else:
            assert torch.equal(after[name], before[name])


def test_momentum_is_heavy_ball(images):
    model = small_model()
    first, second = images[:20], images[20:]
    running = mover(model)
    start = read(model)
    g1 = hand_written_entropy_gradient(model, first, list(start))
    take_step(running, first)
    g2 = hand_written_entropy_gradient(model, second, list(start))
    take_step(running, second)
    for name, value in read(model).items():
        expected = start[name] - 0.1 * g1[name] - 0.1 * (0.9 * g1[name] + g2[name])
        torch.testing.assert_close(value, expected, rtol=1e-4, atol=1e-6)


def test_predictions_are_those_from_before_the_step(images):
    model = small_model()
    running = mover(model)
    with torch.no_grad():
        expected = model(images)
    torch.testing.assert_close(take_step(running, images), expected)


def test_the_gradient_step_adds_the_gradient_of_log_q(images):
    model = small_model()
    start = read(model)
    target = {name: value + 1 for name, value in start.items()}
    gradient = hand_written_entropy_gradient(model, images, list(start))

    def log_q(params):
        return -0.5 * sum(((params[n] - target[n]) ** 2).sum() for n in params)

    take_step(mover(model, log_q=log_q, posterior_step="gradient", posterior_weight=0.01), images)
    for name, value in read(model).items():
        expected = start[name] - 0.1 * (gradient[name] - 0.01 * (target[name] - start[name]))
        torch.testing.assert_close(value, expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(("optimizer", "momentum"), [("sgd", 0.0), ("sgd", 0.9), ("adam", 0.9)])
def test_proximal_and_whole_gradient_steps_share_their_fixed_point(optimizer, momentum):
    """At a stationary point of objective - beta log q, no step moves the weights: checked on 1/2 a (w - c)^2."""
    beta, variance, mean, centre, curvature = 0.3, 0.2, 1.0, -2.0, 0.7
    fixed = (curvature * centre + beta / variance * mean) / (curvature + beta / variance)
    model = torch.nn.Linear(1, 1, bias=False, dtype=torch.float64)
    torch.nn.init.constant_(model.weight, 0.0)

    def proximal(params, step_length):
        step = step_length if isinstance(step_length, dict) else dict.fromkeys(params, step_length)
        return {n: (p + step[n] / variance * mean) / (1 + step[n] / variance) for n, p in params.items()}

    descent = Descent(
        model,
        dict(model.named_parameters()),
        log_q=lambda params: torch.zeros(()),
        proximal=proximal,
        posterior_weight=beta,
        posterior_step="proximal",
        learning_rate=0.05,
        momentum=momentum,
        optimizer=optimizer,
    )
    for _ in range(3000):
        logits = model(torch.ones(4, 1, dtype=torch.float64))
        descent.descend(0.5 * curvature * (logits - centre).square().mean())
    assert model.weight.item() == pytest.approx(fixed, abs=1e-4)


def test_a_model_that_diverged_says_so_before_anything_changes(images):
    model = small_model()
    running = mover(model)
    with torch.no_grad():
        model.head.bias[0] = float("nan")
    before = read(model)
    with pytest.raises(DivergenceError, match="NaN or infinite logits"):
        take_step(running, images)
    assert all(torch.equal(before[n], p) or n == "head.bias" for n, p in read(model).items())


def test_only_adapted_parameters_get_gradients(images):
    model = small_model()
    running = mover(model, "norm_affine")
    take_step(running, images)
    assert {n for n, p in model.named_parameters() if p.grad is not None} == set(running.descent.params)


@pytest.mark.parametrize(("which", "step"), [("norm_affine", "proximal"), ("all", "proximal"), ("all", "gradient")])
def test_while_a_cuda_graph_is_recorded_a_step_reads_nothing_back(monkeypatch, images, which, step):
    # Tensors on "meta" have shapes and no values, so whatever would wait for a value raises. This is all of a GPU's
    # rules that can be tried without one.
    member = small_member()
    model = copy.deepcopy(member.model).to("meta")
    state = member.posterior
    q = gaussian_of(SwagDiag(*(to_meta(part) for part in state)), min_variance=1e-12)
    running = mover(
        model,
        which,
        log_q=lambda params: gaussian.log_prob(gaussian.marginal(q, params), params),
        proximal=lambda params, length: gaussian.proximal(gaussian.marginal(q, params), params, length),
        posterior_weight=1e-4,
        posterior_step=step,
    )
    with pytest.raises(RuntimeError, match="cannot be called on meta tensors"):
        take_step(running, images.to("meta"))  # the check for finite logits
    monkeypatch.setattr("bacs.adaptation.forward.is_recording", lambda device: True)
    for _ in range(2):
        assert take_step(running, images.to("meta")).device.type == "meta"


def to_meta(part):
    return {name: value.to("meta") for name, value in part.items()} if isinstance(part, dict) else part


def test_momentum_is_the_decay_of_adams_mean_gradient():
    model = small_model()
    one = mover(model, optimizer="adam", momentum=0.6)
    generator = torch.Generator().manual_seed(0)
    gradients = []
    for _ in range(2):
        batch = torch.randn(8, 3, 12, 12, generator=generator)
        gradients.append(hand_written_entropy_gradient(model, batch, ["head.bias"])["head.bias"])
        take_step(one, batch)
    memory = one.descent.optimizer.state[dict(model.named_parameters())["head.bias"]]
    expected = 0.6 * 0.4 * gradients[0] + 0.4 * gradients[1]
    torch.testing.assert_close(memory["exp_avg"], expected, atol=1e-6, rtol=1e-3)
