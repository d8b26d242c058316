"""The scale of a posterior, and the posterior_weight that goes with it."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from bacs.methods.settings import Settings
from bacs.posteriors import (
    fisher_diag,
    flat,
    gaussian,
    posterior_scale_for,
    posterior_weight_for,
    precision_quantiles,
    pull_quantiles,
    swag_diag,
    swag_low_rank,
)
from bacs.posteriors.scale import USUAL_WEIGHT
from small import small_member


@pytest.fixture
def state():
    squares = torch.rand(501, generator=torch.Generator().manual_seed(0)) * 100
    return fisher_diag.update(fisher_diag.init({"w": torch.zeros(501)}), {"w": squares})


def test_quantiles_are_those_of_the_precision(state):
    precision = fisher_diag.precision(state)["w"].numpy()
    expected = np.quantile(precision, [0.01, 0.5, 0.99])
    np.testing.assert_allclose(precision_quantiles(state), expected, rtol=1e-9)


def test_low_rank_covariances_count_with_their_marginal_variances():
    state = swag_low_rank.init({"w": torch.zeros(7)})
    for row in torch.randn(4, 7, generator=torch.Generator().manual_seed(0)):
        state = swag_low_rank.update(state, {"w": row})
    q = swag_low_rank.gaussian(state)
    covariance = torch.diag(q.variance["w"]) + q.factor["w"].T @ q.factor["w"]
    assert precision_quantiles(state).median == pytest.approx((1 / covariance.diagonal()).median().item())


def test_a_weight_is_pulled_back_as_far_as_was_asked_for():
    """A step that moves nothing else takes w to (w + k mean) / (1 + k)."""
    mean = {"w": torch.zeros(2)}
    state = fisher_diag.update(fisher_diag.init(mean), {"w": torch.full((2,), 24.0)})
    settings = {"learning_rate": 0.01, "momentum": 0.5}
    weight = posterior_weight_for(state, 0.25, **settings)
    moved = gaussian.proximal(fisher_diag.gaussian(state), {"w": torch.ones(2).double()}, weight * 0.01 / (1 - 0.5))
    torch.testing.assert_close(moved["w"], torch.full((2,), 1 / 1.25).double())
    assert pull_quantiles(state, posterior_weight=weight, **settings).median == pytest.approx(0.25)


def test_by_its_scale_a_member_is_pulled_as_usual_at_the_default_weight(state):
    assert Settings().posterior_weight == USUAL_WEIGHT
    assert posterior_scale_for(state) == pytest.approx(2e5 / precision_quantiles(state).median)
    plain = small_member()
    member = replace(plain, posterior_scale=posterior_scale_for(plain.posterior))
    assert pull_quantiles(member).median == pytest.approx(0.2)
    assert posterior_weight_for(member) == pytest.approx(Settings().posterior_weight)


def test_a_member_is_asked_for_the_weight_relative_to_its_scale():
    member = replace(small_member(), posterior_scale=250.0)
    assert posterior_weight_for(member, 0.7) * 250 == pytest.approx(posterior_weight_for(member.posterior, 0.7))
    assert pull_quantiles(member, posterior_weight=3.0) == pytest.approx(
        pull_quantiles(member.posterior, posterior_weight=750.0)
    )


def test_weights_that_never_moved_do_not_count_for_the_scale():
    still, moving = torch.zeros(9), torch.arange(4.0)
    state = swag_diag.init({"still": still, "moving": moving})
    for shift in (0.0, 0.2):
        state = swag_diag.update(state, {"still": still, "moving": moving + shift})
    assert posterior_scale_for(state) == pytest.approx(2e5 * 0.1**2)  # their deviation is 0.1
    frozen = swag_diag.init({"still": still})
    for _ in range(2):
        frozen = swag_diag.update(frozen, {"still": still})
    assert posterior_scale_for(frozen) == 1.0


def test_a_flat_posterior_has_no_scale():
    with pytest.raises(ValueError, match="'flat' has no scale"):
        precision_quantiles(flat.init({"w": torch.zeros(2)}))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"pull": 0.0}, "pull must be > 0 and finite, got 0.0"),
        ({"pull": 0.1, "learning_rate": 0.0}, "learning_rate must be > 0 and finite, got 0.0"),
        ({"pull": 0.1, "momentum": 1.0}, "momentum must be at least 0 and below 1, got 1.0"),
    ],
)
def test_impossible_arguments_are_refused(state, arguments, message):
    with pytest.raises(ValueError, match=message):
        posterior_weight_for(state, **arguments)
