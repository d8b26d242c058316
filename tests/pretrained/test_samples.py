"""Members by draws from a posterior."""

from dataclasses import replace

import pytest
import torch

import bacs
from bacs.parameters import read
from bacs.posteriors import fisher_diag, recentred, swag_diag
from bacs.pretrained import from_samples, temperature_for
from small import noisy_iterates


def with_width(member, deviation):
    """The member with a SWAG-D posterior whose weights all deviate by about this much."""
    state = swag_diag.init(read(member.model))
    for iterate in noisy_iterates(member.model, count=20, deviation=deviation):
        state = swag_diag.update(state, iterate)
    return bacs.Member(member.model, recentred(state, read(member.model)), member.preprocessing)


def test_draws_differ_by_the_posteriors_deviation_times_the_root_of_the_temperature(untouched, source):
    member = with_width(untouched, 0.01)
    members = from_samples(member, source[0], 6, temperature=0.25)
    assert len(members) == 6
    scaled = []
    for drawn in members:
        for name, p in drawn.model.named_parameters():
            deviation = swag_diag.variance(member.posterior)[name].sqrt()
            scaled.append(((p.detach() - member.posterior.mean[name]) / deviation).flatten())
    assert torch.cat(scaled).std().item() == pytest.approx(0.5, rel=0.03)


def test_each_draw_is_the_mean_of_its_own_posterior_of_the_old_width(untouched, source):
    member = replace(with_width(untouched, 0.01), posterior_scale=30.0)
    drawn = from_samples(member, source[0], 2)[1]
    assert drawn.posterior_scale == 30.0  # of the same width, so of the same scale
    for name, p in drawn.model.named_parameters():
        assert torch.equal(p, drawn.posterior.mean[name].float())
        torch.testing.assert_close(
            swag_diag.variance(drawn.posterior)[name], swag_diag.variance(member.posterior)[name], rtol=1e-6, atol=0
        )
    assert drawn.architecture == member.architecture


def test_draws_have_batch_norm_statistics_of_their_own(untouched, source):
    (drawn,) = from_samples(with_width(untouched, 0.1), source[0], 1)
    stem = next(layer for layer in drawn.model.modules() if isinstance(layer, torch.nn.BatchNorm2d))
    outputs = []
    handle = stem.register_forward_pre_hook(lambda layer, inputs: outputs.append(inputs[0]))
    with torch.no_grad():
        drawn.model(drawn.prepare(torch.from_numpy(source[0])))
    handle.remove()
    torch.testing.assert_close(stem.running_mean, outputs[0].mean(dim=(0, 2, 3)), rtol=1e-4, atol=1e-5)


def test_the_temperature_is_the_highest_that_still_agrees_with_the_model(untouched, source):
    assert temperature_for(with_width(untouched, 1e-4), source[0]) == 1.0
    wide = with_width(untouched, 3.0)
    temperature = temperature_for(wide, source[0], agreement=0.9)
    assert 0 < temperature < 1
    answers = bacs.Ensemble([untouched]).predict(source[0]).argmax(dim=1)

    def agreement(at):
        drawn = bacs.Ensemble(from_samples(wide, source[0], 1, temperature=at))
        return (drawn.predict(source[0]).argmax(dim=1) == answers).double().mean()

    assert agreement(temperature) >= 0.9
    assert agreement(4 * temperature) < 0.9


def test_a_fisher_posterior_can_be_drawn_from(untouched, source):
    member = bacs.pretrained.with_fisher(untouched, source[0][:16], source_size=10**8)
    (drawn,) = from_samples(member, source[0], 1, temperature=1e-4)
    assert isinstance(drawn.posterior, fisher_diag.FisherDiag)
    assert bacs.adapt(bacs.Ensemble([drawn]), source[0], "bacs").predict(source[0]).shape == (96, 3)


def test_what_cannot_be_drawn_is_said(untouched, source):
    with pytest.raises(ValueError, match="'flat' is improper and cannot be sampled"):
        from_samples(untouched, source[0], 2)
    with pytest.raises(ValueError, match="count must be at least 1, got 0"):
        from_samples(untouched, source[0], 0)
    with pytest.raises(ValueError, match="temperature must be > 0, got -1"):
        from_samples(untouched, source[0], 2, temperature=-1)
    with pytest.raises(TypeError, match="images must be a tensor, an array or images of bacs.data.load, got list"):
        from_samples(with_width(untouched, 0.01), list(source[0]), 2)
    with pytest.raises(ValueError, match="agreement must be between 0 and 1, got 2"):
        temperature_for(untouched, source[0], agreement=2)
