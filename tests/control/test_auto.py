"""`bacs.choose` and `method="auto"` on blobs: a shift is found and undone, and where there is none nothing is lost."""

import copy
from dataclasses import replace

import pytest
import torch
from torch import nn

import bacs
from bacs.control import auto
from bacs.parameters import read
from bacs.posteriors import flat
from blobs import CLASSES, accuracy, blobs, shifted
from small import small_member


class TestChoose:
    def test_a_shift_of_mixed_classes_calls_for_batch_statistics_and_weights(self, ensemble):
        points, _ = blobs(600, 1)
        choice = bacs.choose(ensemble, shifted(points))
        assert choice.batch_weight > 0
        assert choice.adapts
        assert choice.arguments["method"] == "bacs"
        assert len(choice.candidates) == 5
        assert "instead of" in choice.reasons[0]
        assert f"> {choice.batch_weight:g}" in str(choice)

    @pytest.mark.parametrize("classes", [(2,), (0, 4)])
    def test_few_classes_without_a_shift_call_for_nothing(self, ensemble, classes):
        points, _ = blobs(400, 2, classes)
        choice = bacs.choose(ensemble, points)
        assert (choice.batch_weight, choice.adapts) == (0.0, False)
        assert any("few classes" in reason for reason in choice.reasons)

    def test_it_looks_at_a_bounded_probe_and_costs_less_than_an_epoch_of_bacs(self, ensemble):
        seen = []
        own = copy.deepcopy(ensemble.members[0].model)
        own.register_forward_hook(lambda module, inputs, output: seen.append(len(output)))
        watched = bacs.Ensemble([replace(ensemble.members[0], model=own), *ensemble.members[1:]])
        bacs.choose(watched, shifted(blobs(3000, 3)[0]), probe=400)
        assert sum(seen) <= 3 * 400

    def test_equal_calls_choose_the_same_and_change_nothing(self, ensemble):
        points = shifted(blobs(300, 4)[0])
        before = copy.deepcopy([member.model.state_dict() for member in ensemble.members])
        assert bacs.choose(ensemble, points) == bacs.choose(ensemble, points)
        after = [member.model.state_dict() for member in ensemble.members]
        assert all(torch.equal(a[n], b[n]) for a, b in zip(before, after, strict=True) for n in a)

    def test_where_nothing_can_be_asked_nothing_is_changed(self, ensemble):
        points = shifted(blobs(50, 5)[0])
        alone = bacs.Ensemble(ensemble.members[:1])
        copies = bacs.Ensemble(
            [replace(ensemble.members[0], model=copy.deepcopy(ensemble.members[0].model)) for _ in range(3)]
        )
        plain = nn.Sequential(nn.Linear(8, CLASSES)).eval()
        without = bacs.Ensemble([bacs.Member(plain, flat.init(read(plain)))])
        bare = nn.Sequential(nn.BatchNorm1d(8, track_running_stats=False), nn.Linear(8, CLASSES)).eval()
        untracked = bacs.Ensemble([bacs.Member(copy.deepcopy(bare), flat.init(read(bare))) for _ in range(2)])
        for each, reason in (
            (alone, "a single network of rows or tokens has nobody to agree with"),
            (copies, "members are near copies of each other"),
            (without, "there are no batch-norm layers"),
            (untracked, "batch norm has no statistics from training"),
        ):
            choice = bacs.choose(each, points)
            assert (choice.batch_weight, choice.adapts) == (0.0, False)
            assert reason in choice.reasons[0]
        assert "one image says nothing" in bacs.choose(ensemble, points[:1]).reasons[0]
        with pytest.raises(ValueError, match="probe must be at least 2 images, got 1"):
            bacs.choose(ensemble, points, probe=1)


class TestAuto:
    def test_a_shift_is_undone(self, ensemble):
        points, labels = blobs(600, 6)
        before = accuracy(ensemble, shifted(points), labels)
        adapted = bacs.adapt(ensemble, shifted(points), method="auto")
        after = accuracy(adapted, shifted(points), labels)
        assert after > before + 0.1
        found = adapted.adaptation["estimate"]
        assert found["low"] - 0.02 < after < found["high"] + 0.02
        assert adapted.adaptation["statistics"] == "accumulated"
        alone = torch.cat([adapted.predict(point[None]) for point in shifted(points)[:20]])
        torch.testing.assert_close(alone, adapted.predict(shifted(points))[:20])  # whatever the batch

    @pytest.mark.parametrize("classes", [tuple(range(CLASSES)), (1,), (0, 3), (0, 2, 5)])
    @pytest.mark.parametrize("count", [1, 4, 16, 400])
    def test_where_nothing_has_shifted_nothing_is_lost(self, ensemble, classes, count):
        points, labels = blobs(count, 7, classes)
        adapted = bacs.adapt(ensemble, points, method="auto")
        lost = accuracy(ensemble, points, labels) - accuracy(adapted, points, labels)
        assert lost <= max(0.01, 1 / count if count < 400 else 0)

    def test_what_does_not_help_is_taken_back(self, ensemble, monkeypatch):
        points = shifted(blobs(600, 8)[0])
        choice = bacs.choose(ensemble, points, batch_size=64)
        ruinous = replace(choice, arguments={"method": "bacs-no-posterior", "learning_rate": 5.0, "epochs": 3})
        monkeypatch.setattr(auto, "choose", lambda *arguments, **options: ruinous)
        adapted = bacs.adapt(ensemble, points, method="auto")
        assert "were taken back" in adapted.adaptation["reasons"][-1]
        for member, source in zip(adapted.members, ensemble.members, strict=True):
            assert all(
                torch.equal(a, b) for a, b in zip(member.model.parameters(), source.model.parameters(), strict=True)
            )

    def test_it_is_saved_with_its_reasons(self, tmp_path, images):
        members = bacs.Ensemble([small_member(seed) for seed in range(3)])
        adapted = bacs.adapt(members, images, method="auto")
        adapted.save(tmp_path / "run")
        again = bacs.load(tmp_path / "run")
        assert again.adaptation == adapted.adaptation
        assert again.adaptation["method"] == "auto"
        assert again.adaptation["reasons"]
        assert again.temperature == adapted.temperature == adapted.adaptation["temperature"]
        assert torch.equal(again.predict(images), adapted.predict(images))

    def test_what_it_chooses_is_not_given(self, ensemble):
        with pytest.raises(ValueError, match="learning_rate must be left out with method 'auto', which chooses it"):
            bacs.adapt(ensemble, blobs(40, 0)[0], method="auto", learning_rate=0.1)


def test_a_single_network_asks_mirrored_pictures():
    images = torch.randn(60, 3, 12, 12, generator=torch.Generator().manual_seed(0))
    choice = bacs.choose(bacs.Ensemble([small_member()]), images)
    assert choice.mirrored
    assert choice.candidates
    p = bacs.adapt(bacs.Ensemble([small_member()]), images, method="auto").predict(images)
    torch.testing.assert_close(p.sum(dim=1), torch.ones(60))


def test_it_is_what_happens_where_no_method_is_named(ensemble):
    points, labels = blobs(256, 12)
    moved = shifted(points)
    named = bacs.adapt(ensemble, moved, "auto", batch_size=64)
    found = bacs.adapt(ensemble, moved, batch_size=64)
    assert found.adaptation["method"] == "auto"
    assert torch.equal(found.predict(moved), named.predict(moved))
    assert bacs.stream(ensemble).begun_with == "auto"
    scored = bacs.evaluate(ensemble, moved, labels, batch_size=64)
    assert scored.ensemble == bacs.evaluate(ensemble, moved, labels, "auto", batch_size=64).ensemble
    with pytest.raises(
        ValueError, match="learning_rate must be left out with method 'auto', which chooses it; method='bacs'"
    ):
        bacs.adapt(ensemble, moved, learning_rate=0.1)
