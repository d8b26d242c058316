"""Label-free figures against loops and SciPy, and estimates of accuracy against labels that were drawn."""

import math
from collections import Counter

import numpy as np
import pytest
import torch
from scipy.special import expit, logit
from scipy.stats import entropy as scipy_entropy
from sklearn.metrics import cohen_kappa_score

from bacs.agreement import (
    Reference,
    above_chance,
    class_shares,
    cross_entropy,
    estimate,
    estimate_others,
    observe,
    pairwise,
    per_image,
    with_votes,
)
from bacs.predictive import average
from bacs.temperature import fit, tempered


@pytest.fixture
def members():
    """Probabilities [members, batch, classes] of four members."""
    return torch.from_numpy(np.random.default_rng(0).dirichlet(np.full(5, 0.4), size=(4, 300)))


def test_votes_are_counted_by_hand(members):
    predictive = average(members)
    p, labels, same = members.numpy(), predictive.labels.numpy(), []
    for i in range(4):
        for image in range(300):
            others = [j for j in range(4) if j != i]
            votes = Counter(labels[others, image])
            surest = {y: sum(p[j, image].max() for j in others if labels[j, image] == y) for y in votes}
            same.append(max(votes, key=lambda y: (votes[y], surest[y])) == labels[i, image])
    assert with_votes(predictive) == pytest.approx(np.mean(same))


def test_chance_is_cohens_for_two_members_of_the_same_shares():
    labels = torch.tensor([[0, 0, 1, 1, 2, 2], [0, 1, 1, 2, 2, 0]])
    agreement = float(per_image(labels).mean())
    expected = cohen_kappa_score(labels[0], labels[1])  # both name each class twice
    assert above_chance(agreement, class_shares(labels, 3)) == pytest.approx(expected)
    assert above_chance(1.0, torch.tensor([1.0, 0.0])) == 0


def test_cross_entropy_is_the_mean_over_ordered_pairs(members):
    p = members.numpy()
    pairs = [(i, j) for i in range(4) for j in range(4) if i != j]
    expected = np.mean([-(p[i] * np.log(p[j])).sum(axis=1).mean() for i, j in pairs])
    assert cross_entropy(list(members)) == pytest.approx(expected)
    with pytest.raises(ValueError, match="two members or more"):
        cross_entropy([members[0]])


def test_counted_classes_are_those_of_the_labels(members):
    labels = members.argmax(dim=-1).numpy().ravel()
    expected = math.exp(scipy_entropy(np.bincount(labels)))
    assert observe(average(members)).counted_classes == pytest.approx(expected)
    assert observe(average(members[:1])).vote_agreement is None


class TestEstimate:
    """The truth is the label of a sixth member that sees the images as the five do: the idea itself."""

    @pytest.fixture
    def drawn(self):
        rng = np.random.default_rng(1)
        signal = 2 * rng.standard_normal((20_000, 6))
        seen = torch.from_numpy(signal + rng.standard_normal((6, 20_000, 6)))
        return (2 * seen[:5]).softmax(dim=-1), seen[5].argmax(dim=-1).numpy()  # too sure of themselves, as networks are

    @pytest.mark.parametrize("count", [2, 3, 4, 5])
    def test_labels_that_look_like_one_more_member_are_estimated_right(self, drawn, count):
        members, truth = drawn[0][:count], drawn[1]
        predictive = average(members)
        found = estimate(observe(predictive), 20_000, count)
        single = (predictive.labels.numpy() == truth).mean()
        whole = (predictive.probabilities.argmax(dim=1).numpy() == truth).mean()
        assert found.members == pytest.approx(single, abs=0.01)
        assert found.ensemble == pytest.approx(whole, abs=0.02)
        assert found.low < whole < found.high
        assert not found.calibrated

    def test_a_reference_moves_log_odds_by_what_they_were_off(self, drawn):
        figures = observe(average(drawn[0]))
        reference = Reference(1000, agreement=0.9, vote_agreement=0.95, member_accuracy=0.86, ensemble_accuracy=0.92)
        found = estimate(figures, 500, 5, reference)
        assert found.members == pytest.approx(expit(logit(figures.agreement) + logit(0.86) - logit(0.9)))
        assert found.ensemble == pytest.approx(expit(logit(figures.vote_agreement) + logit(0.92) - logit(0.95)))
        assert found.calibrated

    @pytest.mark.parametrize(("share", "held"), [(1.0, 1 - 0.5 / 80), (0.0, 0.5 / 80)])
    def test_log_odds_of_all_and_of_none_are_half_an_image_away(self, drawn, share, held):
        figures = observe(average(drawn[0]))._replace(agreement=share, vote_agreement=share)
        found = estimate(figures, 500, 5, Reference(80, 0.9, 0.95, 0.86, 0.92))
        assert found.members == pytest.approx(expit(logit(held) + logit(0.86) - logit(0.9)))
        assert found.ensemble == pytest.approx(expit(logit(held) + logit(0.92) - logit(0.95)))

    def test_fewer_images_and_no_reference_make_wider_intervals(self, drawn):
        figures = observe(average(drawn[0]))
        reference = Reference(1000, 0.9, 0.95, 0.9, 0.95)
        few, many, known = estimate(figures, 50, 5), estimate(figures, 5000, 5), estimate(figures, 5000, 5, reference)
        assert few.high - few.low > many.high - many.low > known.high - known.low
        assert 0 <= few.low < few.high <= 1

    def test_members_that_agree_on_what_is_ambiguous_are_not_held_to_be_right(self):
        rows = torch.tensor([0.6, 0.3, 0.1], dtype=torch.float64).expand(4, 50, 3)
        found = estimate(observe(average(rows)), 50, 4)
        assert found.ensemble == pytest.approx(0.6)
        assert found.members == pytest.approx(0.6)
        known = Reference(1000, agreement=0.9, vote_agreement=0.9, member_accuracy=0.9, ensemble_accuracy=0.9)
        assert estimate(observe(average(rows)), 50, 4, known).ensemble > 0.99  # where source images have shown it

    def test_other_predictions_are_judged_by_honest_ones(self, drawn):
        rows, truth = drawn
        honest = average(tempered(rows, fit(rows, torch.from_numpy(truth))))
        worse = rows.clone()
        worse[:, ::3] = torch.eye(6, dtype=torch.float64)[0]  # a third of the images is called class 0, by all
        other = average(worse)
        found = estimate_others(other, honest)
        assert found.ensemble == pytest.approx((other.probabilities.argmax(dim=1).numpy() == truth).mean(), abs=0.02)
        assert found.members == pytest.approx((other.labels.numpy() == truth).mean(), abs=0.03)
        assert observe(other).agreement > observe(average(rows)).agreement  # which its own agreement would not tell
        assert found.low < found.ensemble < found.high
        itself = estimate_others(honest, honest)
        assert itself.ensemble == pytest.approx(observe(honest).confidence)

    def test_one_member_is_refused(self, members):
        with pytest.raises(ValueError, match="two members or more: one has nobody to agree with"):
            estimate(observe(average(members[:1])), 300, 1)


def test_pairwise_agreement_takes_arrays(members):
    assert pairwise([rows.numpy() for rows in members]) == pytest.approx(pairwise(list(members)))
