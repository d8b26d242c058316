"""Claims about the Fisher posterior's state: what it counts, what it warns of, how it scales."""

import pytest
import torch
from torch.distributions import Independent, Normal

from bacs.posteriors import fisher_diag

WEIGHTS = {"weight": torch.tensor([1.0, -2.0, 0.5])}


def seen(*rows, **options):
    state = fisher_diag.init(WEIGHTS, **options)
    for row in rows:
        state = fisher_diag.update(state, {"weight": torch.tensor(row)})
    return state


def test_precision_is_the_prior_plus_the_source_sets_share_of_the_squares():
    state = seen([4.0, 0.0, 1.0], [2.0, 0.0, 3.0], prior_precision=0.5, source_size=100)
    assert fisher_diag.precision(state)["weight"].tolist() == [0.5 + 100 * 3, 0.5, 0.5 + 100 * 2]


def test_without_a_source_size_the_examples_seen_are_the_whole_set():
    assert fisher_diag.precision(seen([4.0, 0.0, 1.0], [2.0, 0.0, 3.0]))["weight"].tolist() == [7.0, 1.0, 5.0]


def test_parts_give_the_same_as_the_whole():
    parts = seen([4.0, 0.0, 1.0], [2.0, 0.0, 3.0], source_size=10)
    whole = fisher_diag.update(
        fisher_diag.init(WEIGHTS, source_size=10), {"weight": torch.tensor([6.0, 0.0, 4.0])}, count=2
    )
    assert parts.count == whole.count == 2
    assert torch.equal(parts.sum_squares["weight"], whole.sum_squares["weight"])


def test_log_prob_equals_torch_distributions():
    state = seen([4.0, 0.0, 1.0], prior_precision=2.0)
    expected = Independent(Normal(WEIGHTS["weight"].double(), torch.tensor([6.0, 2.0, 3.0]).double().rsqrt()), 1)
    value = torch.tensor([0.3, 0.1, 0.7])
    torch.testing.assert_close(
        fisher_diag.log_prob(state, {"weight": value}), expected.log_prob(value.double()), rtol=1e-6, atol=0
    )


def test_prior_share_counts_weights_that_the_data_say_little_about():
    assert fisher_diag.prior_share(seen([4.0, 0.0, 0.9], prior_precision=1.0)) == pytest.approx(2 / 3)


def test_what_are_no_squares_is_refused():
    for wrong in ([1.0, -1.0, 0.0], [1.0, float("nan"), 0.0]):
        with pytest.raises(ValueError, match="squares must be squared gradients, >= 0 throughout, got .* in 'weight'"):
            seen(wrong)


def test_nothing_seen_is_no_posterior():
    with pytest.raises(ValueError, match="at least 1 example, got 0"):
        fisher_diag.log_prob(seen(), WEIGHTS)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"prior_precision": 0.0}, "prior_precision must be > 0 and finite, got 0.0"),
        ({"prior_precision": float("inf")}, "prior_precision must be > 0 and finite, got inf"),
        ({"source_size": 0}, "source_size must be at least 1, got 0"),
    ],
)
def test_impossible_options_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        fisher_diag.init(WEIGHTS, **options)
    with pytest.raises(ValueError, match="count must be at least 1, got 0"):
        fisher_diag.update(fisher_diag.init(WEIGHTS), WEIGHTS, count=0)
