"""Temperatures against logits, against a grid of labels' NLL, and against what the members agree on."""

import copy
import math

import numpy as np
import pytest
import torch

import bacs
from bacs import temperature
from bacs.agreement import Reference, estimate, observe, of_labels, pairwise
from bacs.predictive import average
from small import small_member


@pytest.fixture
def logits():
    """Three members that see the same signal through noise of their own, and are too sure of it."""
    generator = torch.Generator().manual_seed(0)
    labels = torch.arange(400) % 5
    signal = 1.2 * torch.eye(5, dtype=torch.float64)[labels]
    noise = torch.randn(3, 400, 5, generator=generator, dtype=torch.float64)
    shared = torch.randn(400, 5, generator=generator, dtype=torch.float64)
    return 8 * (signal + 0.5 * noise + 0.5 * shared), labels


@pytest.mark.parametrize("t", [0.3, 1.0, 4.0])
def test_tempered_probabilities_are_those_of_divided_logits(logits, t):
    z, _ = logits
    torch.testing.assert_close(temperature.tempered(z.softmax(dim=-1), t), (z / t).softmax(dim=-1))


def test_a_masked_class_stays_at_zero():
    p = torch.tensor([[0.7, 0.0, 0.3]])
    found = temperature.tempered(p, 2.0)
    assert found[0, 1] == 0
    assert found.sum().item() == pytest.approx(1)


def test_the_fitted_temperature_has_the_best_nll_of_a_grid(logits):
    z, labels = logits
    found = temperature.fit(z.softmax(dim=-1), labels)

    def nll(t):
        return bacs.metrics.nll((z / t).softmax(dim=-1).mean(dim=0), labels)

    assert nll(found) <= min(nll(t) for t in np.geomspace(0.2, 20, 200)) + 1e-6
    assert found > 1.5


def test_a_confidence_that_no_temperature_gives_ends_at_the_nearest_bound():
    even = torch.full((2, 10, 4), 0.25, dtype=torch.float64)  # 0.25 at every temperature
    assert temperature.as_confident_as(0.9, even) == temperature.LOWEST
    assert temperature.as_confident_as(0.1, even) == temperature.HIGHEST


@pytest.mark.parametrize("t", [0.5, 1.0, 3.0])
def test_peer_nll_is_that_of_each_members_labels_under_the_mean_of_the_others(logits, t):
    z, _ = logits
    total = 0.0
    for i in range(3):
        others = (z[[j for j in range(3) if j != i]] / t).softmax(dim=-1).mean(dim=0)
        total += torch.nn.functional.nll_loss(others.log(), z[i].argmax(dim=-1)).item() / 3
    assert temperature.peer_nll(z.softmax(dim=-1), t) == pytest.approx(total)


def test_what_others_find_nearly_impossible_keeps_its_probability():
    sure = torch.tensor([[[1 - 1e-30, 1e-30]], [[1e-30, 1 - 1e-30]]], dtype=torch.float64)
    assert temperature.peer_nll(sure, 1.0) == pytest.approx(30 * math.log(10))


def drawn_alike(members, scale):
    """Logits of members and the true labels: each member sees the same kind of evidence, `scale` times too sure of it.

    The truth is drawn as one more member's label would be, which is what agreement rests on.
    """
    generator = torch.Generator().manual_seed(1)
    shared = 2 * torch.randn(1, 4000, 5, generator=generator, dtype=torch.float64)
    own = torch.randn(members + 1, 4000, 5, generator=generator, dtype=torch.float64)
    z = shared + own
    return scale * z[:-1], z[-1].argmax(dim=-1)


@pytest.mark.parametrize("members", [2, 3, 4, 8])
def test_by_agreement_comes_near_the_temperature_of_the_best_nll(members):
    z, labels = drawn_alike(members, scale=4.0)
    p = z.softmax(dim=-1)
    found, best = temperature.by_agreement(p), temperature.fit(p, labels)
    assert found == pytest.approx(best, rel=0.15)
    assert best > 2

    def nll(t):
        return bacs.metrics.nll((z / t).softmax(dim=-1).mean(dim=0), labels)

    assert nll(1.0) - nll(found) > 0.95 * (nll(1.0) - nll(best)) > 0.05


def test_by_agreement_is_the_best_of_a_grid_for_the_others_and_falls_with_another_member(logits):
    p = logits[0].softmax(dim=-1)
    grid = np.geomspace(1, 20, 400)
    others = grid[np.argmin([temperature.peer_nll(p, t) for t in grid])]
    assert temperature.by_agreement(p) == pytest.approx(others * (1 + 0.6 / 3) / (1 + 0.6 / 2), rel=0.01)


def test_a_reference_makes_confidence_meet_the_estimate(logits):
    z, _ = logits
    p = z.softmax(dim=-1)
    known = Reference(images=500, agreement=0.7, vote_agreement=0.8, member_accuracy=0.65, ensemble_accuracy=0.7)
    found = temperature.by_agreement(p, known)
    confidence = (z / found).softmax(dim=-1).mean(dim=0).max(dim=-1).values.mean().item()
    assert confidence == pytest.approx(estimate(observe(average(p.double())), 400, known).ensemble, abs=1e-3)


def test_members_that_always_or_never_agree_give_the_bounds():
    p = torch.tensor([[0.6, 0.4]]).expand(2, 3, 2)
    assert temperature.by_agreement(p) == 1  # that they agree makes nobody surer
    known = Reference(images=500, agreement=0.9, vote_agreement=0.9, member_accuracy=0.9, ensemble_accuracy=0.9)
    assert temperature.by_agreement(p, known) < 0.1
    apart = torch.stack([torch.tensor([[0.6, 0.4]]), torch.tensor([[0.4, 0.6]])])
    assert temperature.by_agreement(apart) > 0.8 * temperature.HIGHEST
    with pytest.raises(ValueError, match="temperature 'agreement' needs two members or more"):
        temperature.by_agreement(p[:1])


def test_pairwise_agreement_is_the_mean_over_pairs(logits):
    rows = logits[0].softmax(dim=-1)
    labels = rows.argmax(dim=-1).numpy()
    expected = np.mean([(labels[i] == labels[j]).mean() for i in range(3) for j in range(3) if i != j])
    assert pairwise(list(rows)) == pytest.approx(expected)
    assert of_labels(torch.zeros(1, 4, dtype=torch.int64)) is None
    assert observe(average(rows)).agreement == pytest.approx(expected)
    with pytest.raises(ValueError, match="two members or more: one has nobody to agree with"):
        pairwise([rows[0]])


class TestEnsembles:
    def test_every_member_is_divided_before_the_mean(self, ensemble, images):
        warm = bacs.adapt(ensemble, images, "vanilla", temperature=3.0)
        expected = torch.stack([(m.model(images) / 3).softmax(dim=1) for m in ensemble.members]).mean(dim=0)
        torch.testing.assert_close(warm.predict(images), expected.detach())
        assert "temperature 3" in repr(warm)
        assert "temperature" not in repr(ensemble)

    def test_it_changes_how_sure_predictions_are_and_not_the_weights(self, ensemble, images):
        cold, warm = (bacs.adapt(ensemble, images, "bacs", temperature=t) for t in (None, 5.0))
        pairs = zip(cold.members, warm.members, strict=True)
        assert all(
            torch.equal(a, b) for x, y in pairs for a, b in zip(x.model.parameters(), y.model.parameters(), strict=True)
        )
        assert warm.predict(images).max() < cold.predict(images).max()

    def test_an_ensembles_own_temperature_is_kept_by_what_is_made_of_it(self, tmp_path, ensemble, images, labels):
        own = bacs.calibrate(ensemble, images, labels)
        rows = torch.stack([ensemble.predict_member(i, images) for i in range(3)])
        assert own.temperature == pytest.approx(temperature.fit(rows, labels))
        own.save(tmp_path / "run")
        again = bacs.load(tmp_path / "run")
        assert again.temperature == own.temperature
        assert again.reference == own.reference
        assert own.reference.agreement == pytest.approx(pairwise(list(rows)))
        assert own.reference.ensemble_accuracy == bacs.metrics.accuracy(ensemble.predict(images), labels)
        members = [bacs.metrics.accuracy(each, labels) for each in rows]
        assert own.reference.member_accuracy == pytest.approx(np.mean(members))
        assert bacs.adapt(again, images, "bacs").temperature == own.temperature
        assert bacs.stream(again, "bacs").temperature == own.temperature
        expected = bacs.stream(ensemble, "bacs", temperature=own.temperature).step(images)
        torch.testing.assert_close(bacs.stream(again, "bacs").step(images), expected)

    def test_by_agreement_after_adaptation(self, ensemble, images, labels):
        adapted = bacs.adapt(ensemble, images, "bacs", temperature="agreement", learning_rate=0.02, batch_size=16)
        plain = bacs.adapt(ensemble, images, "bacs", learning_rate=0.02, batch_size=16)
        rows = torch.stack([plain.predict_member(i, images, batch_size=16) for i in range(3)])
        assert adapted.temperature == pytest.approx(temperature.by_agreement(rows))
        scored = bacs.evaluate(
            ensemble, images, labels, "bacs", temperature="agreement", learning_rate=0.02, batch_size=16
        )
        torch.testing.assert_close(scored.probabilities.float(), adapted.predict(images, batch_size=16))

    def test_calibration_leaves_the_given_ensemble_alone(self, ensemble, images, labels):
        before = copy.deepcopy(ensemble.members[0].model.state_dict())
        bacs.calibrate(ensemble, images, labels)
        assert ensemble.temperature == 1
        assert all(torch.equal(t, before[n]) for n, t in ensemble.members[0].model.state_dict().items())

    @pytest.mark.parametrize("wrong", [0, -1, math.inf, math.nan, "warm"])
    def test_bad_temperatures(self, ensemble, wrong):
        with pytest.raises(ValueError, match="temperature must be a finite number > 0"):
            bacs.Ensemble(ensemble.members, temperature=wrong)

    def test_bad_calls(self, ensemble, images, labels):
        with pytest.raises(ValueError, match=r"labels must be one class per image, shape \[40\], got \[39\]"):
            bacs.calibrate(ensemble, images, labels[:39])
        alone = bacs.Ensemble([small_member()])
        with pytest.raises(ValueError, match="it has nobody to agree with"):
            bacs.calibrate(alone, images)
        with pytest.raises(ValueError, match="one has nobody to agree with"):
            bacs.adapt(alone, images, "bacs", temperature="agreement")
