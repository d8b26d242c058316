"""A member's posterior_scale: what posterior_weight is relative to, in every driver."""

from dataclasses import replace

import pytest
import torch

import bacs
from bacs.control import steps
from bacs.parameters import read
from bacs.posteriors import gaussian, swag_diag, swag_low_rank
from small import small_member

HOW = {"learning_rate": 0.1, "batch_size": 16}


def scaled(ensemble, *scales):
    pairs = zip(ensemble.members, scales, strict=True)
    return replace(ensemble, members=[replace(member, posterior_scale=scale) for member, scale in pairs])


def assert_near(actual, expected):
    for name, value in read(expected.model).items():
        torch.testing.assert_close(read(actual.model)[name], value, rtol=1e-5, atol=1e-7)


def differ(a, b):
    return max((read(a.model)[name] - value).abs().max().item() for name, value in read(b.model).items())


@pytest.mark.parametrize("module", [swag_diag, swag_low_rank])
@pytest.mark.parametrize(
    "other", [{}, {"posterior_step": "gradient", "learning_rate": 1e-3}, {"optimizer": "adam", "learning_rate": 1e-3}]
)
def test_weight_times_scale_is_the_weight_that_adapts(images, module, other):
    plain = bacs.Ensemble([small_member(module=module)])
    settings = HOW | other
    (actual,) = bacs.adapt(scaled(plain, 50.0), images, "bacs", posterior_weight=2e-5, **settings).members
    (expected,) = bacs.adapt(plain, images, "bacs", posterior_weight=1e-3, **settings).members
    (unscaled,) = bacs.adapt(plain, images, "bacs", posterior_weight=2e-5, **settings).members
    assert_near(actual, expected)
    assert differ(actual, unscaled) > 1e-4


def test_each_member_has_its_own(images):
    plain = bacs.Ensemble([small_member(seed) for seed in range(2)])
    both = bacs.adapt(scaled(plain, 8.0, 0.125), images, "bacs", posterior_weight=1e-4, **HOW).members
    for index, weight in enumerate((8e-4, 1.25e-5)):
        alone = bacs.adapt(plain, images, "bacs", posterior_weight=weight, **HOW).members[index]
        assert_near(both[index], alone)


def test_at_scale_1_no_bit_of_the_posterior_changes():
    member = small_member(module=swag_low_rank)
    q = gaussian.marginal(swag_low_rank.gaussian(member.posterior), read(member.model))
    for before, after in zip(q, gaussian.temper(q, 1.0), strict=True):
        assert all(torch.equal(before[name], after[name]) for name in before)


def test_a_tempered_gaussian_is_proportional_to_its_power():
    member = small_member(module=swag_low_rank)
    q, points = swag_low_rank.gaussian(member.posterior), [read(small_member(seed).model) for seed in (0, 1)]
    rise = [
        float(gaussian.log_prob(each, points[1]) - gaussian.log_prob(each, points[0]))
        for each in (q, gaussian.temper(q, 0.3))
    ]
    assert rise[1] == pytest.approx(0.3 * rise[0], rel=1e-9)
    assert abs(rise[0]) > 1


def test_a_stream_and_what_is_changed_on_its_way(images):
    plain = bacs.Ensemble([small_member()])
    stream = bacs.stream(scaled(plain, 64.0), "bacs", learning_rate=0.1, posterior_weight=1e-5)
    other = bacs.stream(plain, "bacs", learning_rate=0.1, posterior_weight=64e-5)
    for weight in (None, 1e-4):
        if weight is not None:
            stream.change(posterior_weight=weight)
            other.change(posterior_weight=64 * weight)
        torch.testing.assert_close(stream.step(images), other.step(images))
        assert_near(stream.members[0], other.members[0])
    assert stream.observed.posterior_weight == 1e-4


def test_evaluate(images, labels):
    plain = bacs.Ensemble([small_member()])
    actual = bacs.evaluate(scaled(plain, 64.0), images, labels, "bacs", posterior_weight=1e-5, **HOW)
    expected = bacs.evaluate(plain, images, labels, "bacs", posterior_weight=64e-5, **HOW)
    assert actual.ensemble["nll"] == pytest.approx(expected.ensemble["nll"], rel=1e-5)


def test_auto_pulls_as_hard_whatever_the_scale():
    plain = bacs.Ensemble([small_member(seed) for seed in range(3)])
    weight = steps.arguments_for(plain, 4)["posterior_weight"]
    assert steps.arguments_for(scaled(plain, 1.0, 1.0, 1.0), 4)["posterior_weight"] == weight
    assert 50 * steps.arguments_for(scaled(plain, 50.0, 50.0, 50.0), 4)["posterior_weight"] == pytest.approx(weight)


def test_what_was_adapted_keeps_its_scale(images, tmp_path):
    given = scaled(bacs.Ensemble([small_member(seed) for seed in range(2)]), 3.5, 1.0)
    adapted = bacs.adapt(given, images, "bacs", **HOW)
    stream = bacs.stream(given, "bacs", learning_rate=0.1)
    stream.step(images)
    adapted.save(tmp_path / "adapted")
    stream.save(tmp_path / "stream")
    again = bacs.load(tmp_path / "stream")
    for members in (adapted.members, bacs.load(tmp_path / "adapted").members, stream.members, again.members):
        assert [member.posterior_scale for member in members] == [3.5, 1.0]
    assert torch.equal(stream.step(images), again.step(images))
    assert_near(again.members[0], stream.members[0])
