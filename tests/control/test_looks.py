"""Looks: how trust is taken, what single looks and several together say, and what surprises."""

import pytest
import torch

from bacs.control import probe
from bacs.control.looks import Look, Looks, is_clear
from bacs.control.probe import Votes, votes_in
from bacs.predictive import average


def rows(seed, images=12, members=3, classes=4):
    logits = torch.randn(members, images, classes, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return list((2 * logits).softmax(dim=-1))


def test_trust_is_what_the_ensemble_gives_to_its_members_labels():
    members = rows(1)
    found = votes_in(average(members), trusting=True).trust
    for image in range(12):
        labels = [int(own[image].argmax()) for own in members]
        given = [sum(float(own[image, label]) for own in members) / 3 for label in labels]
        assert float(found[image]) == pytest.approx(sum(given) / 3)


def test_trust_in_two_views_of_one_network_is_of_both_together():
    own, other = rows(2, members=2)
    found = votes_in(average([own]), average([other]), trusting=True)
    wanted = votes_in(average([own, other]), trusting=True)
    torch.testing.assert_close(found.trust, wanted.trust)
    assert torch.equal(found.labels, wanted.labels)


def test_votes_are_scored_by_trust_only_if_it_was_asked_for():
    seen = votes_in(average(rows(3)))
    trusting = votes_in(average(rows(3)), trusting=True)
    assert probe.score(seen, seen) == pytest.approx(seen.agreement)
    assert probe.score(trusting, trusting) == pytest.approx(float(trusting.trust.mean()))
    assert probe.join([seen, trusting]).trust is None  # what some have not, all together have not


def look(image, trusts, count=64):
    """Of members that agree always, with the given trust under each share, give or take a little."""
    labels = torch.arange(count).remainder(10).expand(3, count)
    spread = torch.linspace(-0.05, 0.05, count, dtype=torch.float64)
    home = {}
    for place, (share, trust) in enumerate(trusts.items()):
        home[share] = Votes(labels, 10, 0.5, trust + spread.roll(place * 17))
    return Look(image, home, None)


def test_looks_are_joined_by_the_shares_that_all_of_them_have():
    looks = Looks(window=512, age=4096)
    looks.add(look(64, {0.0: 0.5, 0.25: 0.6, 1.0: 0.7}))
    looks.add(look(128, {0.0: 0.5, 0.25: 0.6}))
    assert {share: seen.labels.shape[1] for share, seen in looks.home().items()} == {0.0: 128, 0.25: 128}


@pytest.mark.parametrize(("better", "clear"), [(0.1, True), (-0.1, True), (0.01, False), (-0.01, False)])
def test_it_is_clear_where_one_side_is_better_by_three_standard_errors(better, clear):
    home = look(64, {0.0: 0.5, 0.25: 0.5 + better}).home
    assert is_clear(home) is clear
    gain = (home[0.25].trust - home[0.0].trust).double()
    assert (abs(float(gain.mean())) > 3 * float(gain.std()) / 8) is clear


def test_a_look_by_itself_contradicts_what_is_in_force_only_clearly():
    looks = Looks(window=512, age=4096)
    looks.add(look(64, {0.0: 0.7, 0.25: 0.5}))
    looks.add(look(128, {0.0: 0.5, 0.25: 0.6}))
    assert looks.contradict(0.0)
    assert not looks.contradict(0.25)
    assert not looks.contradict(1.0)  # of which it says nothing
    looks.add(look(192, {0.0: 0.5, 0.25: 0.51}))
    assert not looks.contradict(0.0)
