"""Mixed statistics against the plain formula, with gradients by autograd, and what layers keep of themselves."""

import copy

import pytest
import torch
from torch import nn

from bacs.adaptation.statistics import BATCH, SOURCE, Statistics, keep_running, use, using

LAYERS = {
    "1d, rows": (nn.BatchNorm1d, (9, 5)),
    "1d, series": (nn.BatchNorm1d, (9, 5, 7)),
    "2d": (nn.BatchNorm2d, (6, 5, 4, 3)),
    "3d": (nn.BatchNorm3d, (4, 5, 3, 2, 2)),
    "synchronised": (nn.SyncBatchNorm, (6, 5, 4, 3)),
}


def trained(kind, **arguments):
    """A layer with statistics, scale and shift that are not the trivial ones."""
    layer = kind(5, dtype=torch.float64, **arguments)
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        layer.running_mean.copy_(torch.randn(5, generator=generator))
        layer.running_var.copy_(0.5 + torch.rand(5, generator=generator))
        if layer.affine:
            layer.weight.copy_(torch.randn(5, generator=generator))
            layer.bias.copy_(torch.randn(5, generator=generator))
    return layer


def by_the_formula(layer, x, r):
    """(1 - r) source + r batch, by elementary operations that autograd follows."""
    over = [0, *range(2, x.ndim)]
    mean = (1 - r) * layer.running_mean + r * x.mean(over)
    variance = (1 - r) * layer.running_var + r * x.var(over, correction=0)
    shape = (1, -1, *[1] * (x.ndim - 2))
    y = (x - mean.view(shape)) / (variance.view(shape) + layer.eps).sqrt()
    return y * layer.weight.view(shape) + layer.bias.view(shape) if layer.affine else y


def inputs(shape, seed=0, dtype=torch.float64):
    return 2 * torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=dtype) + 1


@pytest.mark.parametrize("r", [1e-3, 0.25, 0.9])
@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize("name", LAYERS)
def test_values_and_gradients_are_those_of_the_formula(name, affine, r):
    kind, shape = LAYERS[name]
    layer = trained(kind, affine=affine)
    use(layer, Statistics(r))
    weights = torch.randn(shape, generator=torch.Generator().manual_seed(5), dtype=torch.float64)
    results = []
    for normalise in (layer, lambda x: by_the_formula(layer, x, r)):
        x = inputs(shape).requires_grad_()
        y = normalise(x)
        wanted = [x, *layer.parameters()]
        results.append([y.detach(), *torch.autograd.grad((y * weights).sum(), wanted)])
    for ours, formula in zip(*results, strict=True):
        torch.testing.assert_close(ours, formula, rtol=1e-9, atol=1e-10)


def test_channels_last_gives_the_same():
    layer = trained(nn.BatchNorm2d)
    use(layer, Statistics(0.4))
    x = inputs((6, 5, 4, 3))
    torch.testing.assert_close(layer(x.to(memory_format=torch.channels_last)), layer(x))


def test_frozen_scales_and_inputs_without_gradient_are_left_out():
    layer = trained(nn.BatchNorm2d)
    layer.weight.requires_grad_(False)
    use(layer, Statistics(0.4))
    layer(inputs((6, 5, 4, 3))).sum().backward()
    assert layer.weight.grad is None
    assert layer.bias.grad is not None


def test_the_ends_of_the_scale_are_torchs_own_layers_bit_for_bit():
    layer, x = trained(nn.BatchNorm2d), inputs((6, 5, 4, 3))
    use(layer, SOURCE)
    assert torch.equal(layer(x), copy.deepcopy(layer).eval()(x))
    use(layer, BATCH)
    assert torch.equal(layer(x), copy.deepcopy(layer).train()(x))
    use(layer, Statistics(0.5))
    use(layer, SOURCE)
    assert "forward" not in vars(layer)


def test_a_forward_pass_changes_no_buffer():
    layer = trained(nn.BatchNorm2d)
    before = copy.deepcopy(layer.state_dict())
    for statistics in (Statistics(0.5), Statistics(0.5, "running")):
        use(layer, statistics)
        layer(inputs((6, 5, 4, 3)))
        assert all(torch.equal(tensor, before[name]) for name, tensor in layer.state_dict().items())


def test_running_statistics_begin_at_the_source_and_follow_by_hand():
    layer, r = trained(nn.BatchNorm2d), 0.3
    use(layer, Statistics(r, "running"))
    mean, variance = layer.running_mean.clone(), layer.running_var.clone()
    for seed in range(4):
        x = inputs((6, 5, 4, 3), seed) + seed
        expected = by_the_formula(layer, x, r)
        torch.testing.assert_close(layer(x), expected)
        layer(inputs((6, 5, 4, 3), 99)) if seed == 2 else None  # a pass that is not kept leaves no trace
        layer(x)
        keep_running(layer)
        mean = (1 - r) * mean + r * x.mean((0, 2, 3))
        variance = (1 - r) * variance + r * x.var((0, 2, 3), correction=0)
        torch.testing.assert_close(layer.running_mean, mean)
        torch.testing.assert_close(layer.running_var, variance)


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("statistics", [Statistics(0.5), Statistics(0.2, "running"), SOURCE])
def test_one_image_works_below_r_1(name, statistics):
    kind, shape = LAYERS[name]
    layer, x = trained(kind), inputs((1, *shape[1:])).requires_grad_()
    use(layer, statistics)
    y = layer(x)
    y.sum().backward()
    assert torch.isfinite(y).all()
    assert torch.isfinite(x.grad).all()


class WithActivation(nn.BatchNorm2d):
    """As timm has it: a batch norm whose own forward does more."""

    def forward(self, x):
        y = nn.functional.batch_norm(
            x, self.running_mean, self.running_var, self.weight, self.bias, self.training, self.momentum, self.eps
        )
        return nn.functional.relu(y)


def test_what_a_subclass_adds_stays():
    layer, x = trained(WithActivation), inputs((6, 5, 4, 3))
    use(layer, Statistics(0.5))
    torch.testing.assert_close(layer(x), by_the_formula(layer, x, 0.5).relu())


def test_bfloat16_activations_are_summed_in_float32():
    layer = trained(nn.BatchNorm2d).float()
    use(layer, Statistics(0.5))
    x = inputs((16, 5, 8, 8), dtype=torch.float32)
    half = x.bfloat16().requires_grad_()
    y = layer(half)
    assert y.dtype == torch.bfloat16
    torch.testing.assert_close(y.float(), by_the_formula(layer, x, 0.5), atol=0.05, rtol=0.02)
    y.sum().backward()
    assert half.grad.dtype == torch.bfloat16


def test_a_copy_of_a_mixing_model_is_on_its_own():
    model = nn.Sequential(trained(nn.BatchNorm2d))
    use(model, Statistics(0.5, "running"))
    other, x = copy.deepcopy(model), inputs((6, 5, 4, 3))
    before = model[0].running_mean.clone()
    other(x)
    keep_running(other)
    assert torch.equal(model[0].running_mean, before)
    assert not torch.equal(other[0].running_mean, before)


def test_using_takes_the_mixture_back():
    layer, x = trained(nn.BatchNorm2d).eval(), inputs((6, 5, 4, 3))
    expected = layer(x)
    with using(layer, Statistics(0.5)):
        assert not torch.allclose(layer(x), expected)
        with using(layer, SOURCE):
            assert torch.equal(layer(x), expected)
        assert not torch.allclose(layer(x), expected)
    assert torch.equal(layer(x), expected)


def test_a_mixture_without_a_reference_is_refused_before_any_change():
    model = nn.Sequential(nn.BatchNorm2d(5), nn.BatchNorm2d(5, track_running_stats=False)).train()
    with pytest.raises(ValueError, match="its layer '1' has no running statistics to mix with") as raised:
        use(model, Statistics(0.5))
    assert len(str(raised.value).splitlines()) <= 2
    assert model.training
    for statistics in (SOURCE, BATCH):
        use(model, statistics)
        model(torch.randn(4, 5, 2, 2))


def test_other_batch_norms_in_other_threads_are_not_answered_for():
    """The layer's call is answered in its own thread alone."""
    from concurrent.futures import ThreadPoolExecutor

    mixing, plain, x = trained(nn.BatchNorm2d), trained(nn.BatchNorm2d).eval(), inputs((6, 5, 4, 3))
    expected = plain(x)
    use(mixing, Statistics(0.5))
    with ThreadPoolExecutor(2) as pool:
        results = list(pool.map(lambda turn: (plain if turn % 2 else mixing)(x), range(200)))
    assert all(torch.equal(result, expected) for result in results[1::2])


def test_words_of_version_0_1_still_mean_what_they_meant():
    assert Statistics.from_json({"statistics": "batch"}) == BATCH
    assert Statistics.from_json({"statistics": "source"}) == SOURCE
    assert Statistics.from_json({"statistics": "accumulated"}) == Statistics(0.0, "accumulated")
    for statistics in (SOURCE, BATCH, Statistics(0.3, "running")):
        assert Statistics.from_json(statistics.as_json()) == statistics
