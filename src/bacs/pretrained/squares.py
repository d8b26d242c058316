"""Squared gradients of log p(y | x, w), example by example: what the Fisher information is made of.

The gradient of log p(y | x) is J^T (e_y - p), with J the Jacobian of the logits and p their softmax. So the diagonal of
the Fisher information of one example is the sum of (J^T u)^2 over a few directions u in logit space:

labels given   u = e_y - p                         one direction: the "empirical" Fisher
exact          u_c = sqrt(p_c) (e_c - p)           one per class: the expectation over y ~ p(y | x), no label needed
sampled        u = sqrt(p) s - p (sqrt(p) . s)     one, with random signs s: its covariance is that of e_y - p

Drawing labels y ~ p has the same mean as `sampled`. But a network that is sure of itself then draws its own answer
almost always and the rare others hardly ever, which hold most of the information.
"""

from typing import Literal

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn
from torch.func import functional_call, vjp, vmap

from bacs.adaptation.forward import forward, logits_of
from bacs.adaptation.statistics import SOURCE, using
from bacs.types import Params

Expectation = Literal["exact", "sampled"]
EXPECTATIONS = ("exact", "sampled")

GRADIENT_BYTES = 2**28
"""How much memory the gradients of single examples may take at a time."""


def squared_gradients(
    model: nn.Module,
    inputs: Tensor,
    labels: Tensor | None = None,
    *,
    expectation: Expectation = "exact",
    generator: torch.Generator | None = None,
    chunk: int | None = None,
) -> Params:
    """The sum over examples of E_y (d log p(y | x, w) / dw)^2 for every parameter, in float64.

    Batch norm uses its source statistics: under those of the batch, an example has no gradient of its own.

    Args:
        inputs: what the model takes; `Member.prepare` makes it.
        labels: of the examples; without them, the expectation over the model's own p(y | x) is taken.
        expectation: `exact`, one backward pass per class, or `sampled`, a single one.
        generator: of the random signs; one with seed 0 if None.
        chunk: examples whose gradients are held at a time; as many as fit into 256 MB if None.
    """
    params = {name: p.detach() for name, p in model.named_parameters()}
    size = sum(p.numel() * p.element_size() for p in params.values())
    chunk = chunk or min(64, max(1, GRADIENT_BYTES // (3 * max(size, 1))))
    total = {name: torch.zeros_like(p, dtype=torch.float64) for name, p in params.items()}
    with using(model, SOURCE):
        with torch.no_grad():
            logits = forward(model, inputs)
        rows = directions(logits, labels, expectation, generator or torch.Generator().manual_seed(0))
        for part, along in zip(inputs.split(chunk), rows.split(chunk), strict=True):
            try:
                squares = square_vectorised(model, params, part, along)
            except (RuntimeError, ValueError, NotImplementedError):  # vmap cannot run every module
                squares = square_one_by_one(model, params, part, along)
            for name, value in squares.items():
                total[name] += value
    return total


def directions(
    logits: Float[Tensor, "batch classes"],
    labels: Int64[Tensor, "batch"] | None,
    expectation: Expectation,
    generator: torch.Generator,
) -> Float[Tensor, "batch directions classes"]:
    """The u of every example; in float64 until the end, since 1 - p of a sure network is lost in less."""
    p = logits.double().softmax(dim=1)
    if labels is not None:
        return (nn.functional.one_hot(labels.to(p.device), p.shape[1]) - p)[:, None].to(logits.dtype)
    root = p.sqrt()
    if expectation == "exact":
        unit = torch.eye(p.shape[1], dtype=p.dtype, device=p.device)
        return (root[:, :, None] * (unit - p[:, None])).to(logits.dtype)
    coins = torch.randint(0, 2, p.shape, generator=generator, device=generator.device)
    signed = root * (2 * coins - 1).to(p)
    return (signed - p * signed.sum(dim=1, keepdim=True))[:, None].to(logits.dtype)


def square_vectorised(model: nn.Module, params: Params, inputs: Tensor, along: Tensor) -> Params:
    """Squared gradients of a chunk by torch.func: one vectorised forward pass, one backward pass per direction."""

    def of_example(example: Tensor, rows: Tensor) -> Params:
        pull_back = vjp(lambda weights: logits_of(functional_call(model, weights, (example[None],)))[0], params)[1]
        total: Params = {}
        for row in rows:
            for name, gradient in pull_back(row)[0].items():
                total[name] = total[name] + gradient.square() if name in total else gradient.square()
        return total

    return {name: value.sum(dim=0) for name, value in vmap(of_example)(inputs, along).items()}


def square_one_by_one(model: nn.Module, params: Params, inputs: Tensor, along: Tensor) -> Params:
    """The same by plain autograd, for modules that torch.func cannot take."""
    live = {name: p.detach().requires_grad_() for name, p in params.items()}
    total = {name: torch.zeros_like(p) for name, p in params.items()}
    for example, rows in zip(inputs, along, strict=True):
        logits = logits_of(functional_call(model, live, (example[None],)))[0]
        for row in rows:
            gradients = torch.autograd.grad(logits, list(live.values()), row, retain_graph=True, allow_unused=True)
            for name, gradient in zip(total, gradients, strict=True):
                if gradient is not None:
                    total[name] += gradient.square()
    return total
