"""Whether classes arrive in runs: by how much the labels of batches differ from each other."""

import numpy as np
import pytest
import torch
from scipy.stats import chi2_contingency

import bacs
from bacs.control.class_runs import MEMORY, UNEVEN, ClassRuns, unevenness
from blobs import blobs, shifted


def counts_of(rng, shares, batches=8, images=64):
    return torch.from_numpy(np.stack([rng.multinomial(images, shares) for _ in range(batches)]))


@pytest.mark.parametrize("seed", range(3))
def test_it_is_the_chi_square_of_homogeneity_in_standard_errors(seed):
    counts = counts_of(np.random.default_rng(seed), [0.1, 0.2, 0.3, 0.4], batches=5)
    counts = torch.cat([counts, torch.zeros(5, 2, dtype=torch.int64)], dim=1)  # classes that nobody names do not count
    expected = chi2_contingency(counts[:, :4].numpy(), correction=False)
    wanted = (expected.statistic - expected.dof) / (2 * expected.dof) ** 0.5
    assert unevenness(counts) == pytest.approx(wanted)


@pytest.mark.parametrize("shares", [[0.1] * 10, [0.91, *[0.01] * 9], [1e-3] * 1000])
def test_batches_of_one_mixture_are_even_however_few_classes_it_has(shares):
    rng = np.random.default_rng(0)
    found = [unevenness(counts_of(rng, shares)) for _ in range(500)]
    assert np.mean(np.array(found) > UNEVEN) <= 0.01
    assert abs(np.mean(found)) < 0.5


def test_runs_are_seen_through_labels_that_are_mostly_wrong():
    """Of batches of one class or two, where two of three labels are drawn from what the network calls everything."""
    rng = np.random.default_rng(1)
    wrong = rng.dirichlet([0.5] * 10)
    seen = []
    for _ in range(50):
        batches = [(rng.dirichlet([0.1] * 10) + 2 * wrong) / 3 for _ in range(4)]
        seen.append(unevenness(torch.from_numpy(np.stack([rng.multinomial(64, shares) for shares in batches]))))
    assert np.mean(np.array(seen) > UNEVEN) > 0.9


def test_one_batch_or_one_class_says_nothing():
    assert unevenness(torch.tensor([[60, 4]])) == 0
    assert unevenness(torch.tensor([[64, 0], [64, 0]])) == 0


def test_runs_are_ruled_out_by_as_many_batches_as_are_compared_and_not_by_fewer():
    runs = ClassRuns()
    for number in range(MEMORY):
        assert not runs.are_ruled_out
        assert not runs.are_seen
        runs.add(torch.arange(64) % 10, 10)
        assert len(runs.counts) == number + 1
    assert runs.are_ruled_out
    runs.add(torch.zeros(64, dtype=torch.int64), 10)
    assert runs.are_seen
    assert not runs.are_ruled_out
    assert len(runs.counts) == MEMORY
    runs.forget()
    assert not runs.are_seen


@pytest.mark.parametrize("method", ["bn", "tent", "auto"])
def test_a_stream_that_was_mixed_and_comes_in_runs_is_gathered(ensemble, method):
    points, labels = blobs(64 * 60, 20)
    first = 64 * 12
    blocks = labels[first:].argsort(stable=True).split(64)
    order = torch.randperm(len(blocks), generator=torch.Generator().manual_seed(0))
    order = torch.cat([torch.arange(first), *(first + blocks[block] for block in order)])
    points, labels = shifted(points[order]), labels[order]
    stream, bn = bacs.stream(ensemble, method, guard=True), bacs.stream(ensemble, "bn")
    p = torch.cat([stream.step(part) for part in points.split(64)])
    assert {"batches": "gathered"} in [event.what for event in stream.history]
    late = slice(first + 64 * 8, None)
    alone = torch.cat([bn.step(part) for part in points.split(64)])
    vanilla = ensemble.predict(points)
    guarded, unguarded, still = (bacs.metrics.accuracy(rows[late], labels[late]) for rows in (p, alone, vanilla))
    assert guarded >= still
    assert guarded > unguarded + 0.2  # where this matters
