"""Squared gradients against brute force, closed forms, and modules of every kind."""

import pytest
import torch
from torch import nn

from bacs.pretrained import squared_gradients
from bacs.pretrained.squares import directions, square_one_by_one, square_vectorised
from small import small_model


def brute_force(model, inputs, labels=None):
    """Example by example and class by class, by backward() on log p: p(y|x) (d log p / dw)^2 summed."""
    total = {name: torch.zeros_like(p) for name, p in model.named_parameters()}
    for i in range(len(inputs)):
        log_p = model(inputs[i : i + 1]).log_softmax(dim=1)[0]
        for y in range(len(log_p)):
            weight = log_p[y].exp().item() if labels is None else float(labels[i] == y)
            model.zero_grad()
            model(inputs[i : i + 1]).log_softmax(dim=1)[0, y].backward()
            for name, p in model.named_parameters():
                if p.grad is not None:
                    total[name] += weight * p.grad**2
    model.zero_grad()
    return total


def assert_same(actual, expected, tolerance=1e-5):
    assert actual.keys() == expected.keys()
    for name, value in expected.items():
        scale = value.abs().max().item()
        torch.testing.assert_close(actual[name].to(value.dtype), value, rtol=tolerance, atol=tolerance * scale)


@pytest.fixture
def network():
    """A small residual network whose batch norm has statistics of its own."""
    model = small_model(classes=4)
    generator = torch.Generator().manual_seed(3)
    for layer in model.modules():
        if isinstance(layer, nn.BatchNorm2d):
            layer.running_mean.normal_(generator=generator)
            layer.running_var.uniform_(0.5, 2, generator=generator)
    return model


@pytest.fixture
def inputs():
    return torch.randn(5, 3, 8, 8, generator=torch.Generator().manual_seed(1))


def test_without_labels_it_is_the_fisher_information_by_brute_force(network, inputs):
    assert_same(squared_gradients(network, inputs), brute_force(network, inputs))


def test_with_labels_it_is_the_empirical_fisher_by_brute_force(network, inputs):
    labels = torch.tensor([0, 3, 1, 1, 2])
    assert_same(squared_gradients(network, inputs, labels), brute_force(network, inputs, labels))


def test_a_linear_softmax_model_has_its_closed_form(inputs):
    """d log p_y / dW_cj = (1[y=c] - p_c) x_j, so the Fisher is x_j^2 p_c (1 - p_c)."""
    model = nn.Linear(6, 3)
    x = inputs.flatten()[:60].reshape(10, 6)
    p = (x @ model.weight.T + model.bias).softmax(dim=1).detach().double()
    expected = torch.einsum("nj,nc->cj", x.double() ** 2, p * (1 - p))
    actual = squared_gradients(model, x)
    torch.testing.assert_close(actual["weight"], expected, rtol=1e-5, atol=0)
    torch.testing.assert_close(actual["bias"], (p * (1 - p)).sum(dim=0), rtol=1e-5, atol=0)


@pytest.mark.parametrize("expectation", ["exact", "sampled"])
def test_directions_have_the_covariance_of_a_label(expectation):
    """E[(e_y - p)(e_y - p)^T] = diag(p) - p p^T; random signs have it in the mean of 40,000 draws."""
    logits = torch.tensor([[2.0, -1.0, 0.5, -4.0]])
    p = logits.double().softmax(dim=1)[0]
    copies = logits.expand(40_000 if expectation == "sampled" else 1, 4)
    rows = directions(copies, None, expectation, torch.Generator().manual_seed(0)).double()
    covariance = torch.einsum("nri,nrj->ij", rows, rows) / len(rows)
    tolerance = 0.02 * p.max().item() if expectation == "sampled" else 1e-6
    torch.testing.assert_close(covariance, torch.diag(p) - torch.outer(p, p), rtol=0, atol=tolerance)


def test_sampled_squares_come_close_to_the_exact_ones_over_many_images(network):
    inputs = torch.randn(300, 3, 8, 8, generator=torch.Generator().manual_seed(2))
    exact, sampled = (squared_gradients(network, inputs, expectation=e) for e in ("exact", "sampled"))
    for name in exact:
        ratio = sampled[name].sum() / exact[name].sum()
        assert 0.6 < ratio < 1.6, name


def test_one_seed_gives_one_sample(network, inputs):
    first, again, other = (
        squared_gradients(network, inputs, expectation="sampled", generator=torch.Generator().manual_seed(seed))
        for seed in (0, 0, 1)
    )
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert not all(torch.equal(first[name], other[name]) for name in first)


def test_examples_together_and_one_by_one_give_equal_numbers(network, inputs):
    params = {name: p.detach() for name, p in network.named_parameters()}
    along = torch.randn(5, 2, 4, generator=torch.Generator().manual_seed(0))
    assert_same(square_vectorised(network, params, inputs, along), square_one_by_one(network, params, inputs, along))


@pytest.mark.parametrize("chunk", [1, 2, 5, 64])
def test_the_chunk_changes_memory_alone(network, inputs, chunk):
    assert_same(squared_gradients(network, inputs, chunk=chunk), squared_gradients(network, inputs))


class Stubborn(nn.Module):
    """Looks at a number while it runs, which torch.func does not allow."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 2)

    def forward(self, x):
        return self.layer(x) * (2.0 if x.abs().sum().item() > 0 else 1.0)


def test_a_module_that_torch_func_refuses_gives_the_same_as_brute_force():
    model, x = Stubborn(), torch.randn(6, 3, generator=torch.Generator().manual_seed(0))
    params = dict(model.named_parameters())
    with pytest.raises(RuntimeError):
        square_vectorised(model, params, x, torch.ones(6, 1, 2))
    assert_same(squared_gradients(model, x), brute_force(model, x))


class Tied(nn.Module):
    """Token inputs, a weight that two layers share, a parameter that takes no part, an output object."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(5, 4)
        self.decode = nn.Linear(4, 5, bias=False)
        self.decode.weight = self.embed.weight
        self.unused = nn.Parameter(torch.ones(2))

    def forward(self, tokens):
        return self.decode(self.embed(tokens).mean(dim=1).tanh())


def test_tied_weights_tokens_and_unused_parameters():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = Tied()
    tokens = torch.tensor([[0, 1, 2], [3, 3, 4]])
    actual = squared_gradients(model, tokens)
    assert set(actual) == {"embed.weight", "unused"}
    assert actual["unused"].abs().max() == 0
    assert_same(actual, brute_force(model, tokens))


def test_the_model_is_left_as_it_was(network, inputs):
    network.train()
    before = {name: value.clone() for name, value in network.state_dict().items()}
    next(network.parameters()).requires_grad_(False)
    squared_gradients(network, inputs)
    assert all(torch.equal(value, network.state_dict()[name]) for name, value in before.items())
    assert all(layer.training for layer in network.modules())
    assert [p.requires_grad for p in network.parameters()].count(False) == 1
    assert all(p.grad is None for p in network.parameters())
