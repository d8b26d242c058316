import pytest
import torch

import bacs
from bacs.adaptation.statistics import BATCH
from bacs.parameters import batch_norm_layers, read
from bacs.posteriors import swag_diag
from bacs.training import at_mean
from small import noisy_iterates, small_model


def collected(model, count=6):
    state = swag_diag.init(read(model))
    for iterate in noisy_iterates(model, count, deviation=0.05):
        state = swag_diag.update(state, iterate)
    return state


def test_the_weights_are_the_mean_and_the_posterior_is_kept():
    model = small_model()
    state = collected(model)
    member = at_mean(model, state, torch.randn(20, 3, 12, 12, generator=torch.Generator().manual_seed(0)))
    assert member.model is model
    for name, p in model.named_parameters():
        torch.testing.assert_close(p.detach().double(), state.mean[name], rtol=1e-7, atol=1e-10)
    assert member.posterior.count == 6


def test_batch_norm_statistics_are_those_of_the_inputs_under_the_mean_weights():
    model = small_model()
    inputs = torch.randn(50, 3, 12, 12, generator=torch.Generator().manual_seed(0))
    seen = {}
    layers = batch_norm_layers(model)
    member = at_mean(model, collected(model), inputs, batch_size=50)
    handles = [
        layer.register_forward_hook(
            lambda layer, given, out: seen.__setitem__(layer, given[0].transpose(0, 1).flatten(1))
        )
        for layer in layers
    ]
    with bacs.adaptation.statistics.using(model, BATCH), torch.no_grad():
        model(inputs)
    assert len(layers) == len(handles) == len(seen) > 5
    for layer, values in seen.items():
        torch.testing.assert_close(layer.running_mean, values.mean(dim=1), rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(layer.running_var, values.var(dim=1), rtol=1e-4, atol=1e-5)
    assert not member.model.training


def test_a_model_without_batch_norm_needs_no_pass_over_the_inputs():
    model = torch.nn.Linear(3, 2)
    state = swag_diag.init(read(model))
    for _ in range(2):
        state = swag_diag.update(state, read(model))
    member = at_mean(model, state, inputs=None)
    assert torch.equal(member.model.weight.detach().double(), member.posterior.mean["weight"])


def test_rounding_the_posterior_for_storage_does_not_change_adaptation(images):
    model = small_model()
    state = collected(model)
    member = at_mean(model, state, images)
    exact = bacs.Member(model, swag_diag.SwagDiag(*state))
    rounded = bacs.adapt(bacs.Ensemble([member]), images, "bacs", learning_rate=0.01, epochs=3).predict(images)
    unrounded = bacs.adapt(bacs.Ensemble([exact]), images, "bacs", learning_rate=0.01, epochs=3).predict(images)
    # One float32 rounding of the variances, against probabilities of order 1.
    torch.testing.assert_close(rounded, unrounded, rtol=0, atol=1e-5)


def test_a_saved_member_takes_little_more_than_two_float32_numbers_a_weight(tmp_path, images):
    model = small_model(width=16)
    bacs.Ensemble([at_mean(model, collected(model), images)]).save(tmp_path / "run")
    weights = sum(p.numel() for p in model.parameters())
    (file,) = (tmp_path / "run").glob("*.safetensors")
    buffers = sum(b.numel() * b.element_size() for b in model.buffers())
    assert file.stat().st_size < 8 * weights + buffers + 20_000  # the names are the rest


def test_a_saved_member_comes_back_bit_for_bit(tmp_path, images):
    model = small_model()
    member = at_mean(model, collected(model), images)
    bacs.Ensemble([member]).save(tmp_path / "run")
    (loaded,) = bacs.load(tmp_path / "run").members
    for name, tensor in model.state_dict().items():
        assert torch.equal(loaded.model.state_dict()[name], tensor)
    for name, mean in member.posterior.mean.items():
        assert loaded.posterior.mean[name].dtype == torch.float64
        assert torch.equal(loaded.posterior.mean[name], mean)
        assert torch.equal(loaded.posterior.sum_square_deviation[name], member.posterior.sum_square_deviation[name])


def test_a_posterior_whose_mean_is_not_the_model_is_saved_with_its_mean(tmp_path, images):
    model = small_model()
    state = collected(model)  # the model stays where it was
    bacs.Ensemble([bacs.Member(model, state)]).save(tmp_path / "run")
    (loaded,) = bacs.load(tmp_path / "run").members
    for name, mean in state.mean.items():
        assert torch.equal(loaded.posterior.mean[name], mean)
        assert torch.equal(loaded.posterior.sum_square_deviation[name], state.sum_square_deviation[name])


@pytest.mark.parametrize("count", [0, 1])
def test_a_posterior_that_has_seen_too_little_is_refused(count):
    model = small_model()
    before = read(model)
    with pytest.raises(ValueError, match=f"posterior must hold at least 2 iterates, got {count}"):
        at_mean(model, collected(model, count), torch.randn(4, 3, 12, 12))
    assert all(torch.equal(p, before[name]) for name, p in model.named_parameters())
