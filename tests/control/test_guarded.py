"""A stream under `auto`: it chooses on its first batches, watches itself, and chooses again when the world changes."""

import pytest
import torch
from torch import nn

import bacs
from bacs.control.standing import AGAIN
from bacs.parameters import read
from bacs.posteriors import flat
from blobs import CLASSES, blobs, shifted
from small import small_member


def follow(stream, points, labels, batch=64):
    """Share of the points that a stream gets right, batch by batch in their order."""
    steps = [stream.step(part) for part in points.split(batch)]
    right = torch.cat(steps).argmax(dim=1) == labels
    return right.double().mean().item()


def test_a_shifted_stream_is_as_good_as_an_unshifted_one_almost(ensemble):
    points, labels = blobs(1280, 1)
    still = follow(bacs.stream(ensemble, "vanilla"), shifted(points), labels)
    stream = bacs.stream(ensemble, "auto")
    found = follow(stream, shifted(points), labels)
    assert found > still + 0.1
    assert stream.settings.batch_weight > 0
    assert stream.history[0].step == 0  # before the first batch is predicted
    assert "instead of" in stream.history[0].reason


@pytest.mark.parametrize("classes", [tuple(range(CLASSES)), (1,), (0, 3)])
def test_where_nothing_has_shifted_nothing_is_lost(ensemble, classes):
    points, labels = blobs(640, 2, classes)
    plain = follow(bacs.stream(ensemble, "vanilla"), points, labels)
    assert follow(bacs.stream(ensemble, "auto"), points, labels) >= plain - 0.01


def test_a_sorted_stream_is_left_alone(ensemble):
    points, labels = blobs(960, 3)
    order = labels.argsort(stable=True)
    points, labels = points[order], labels[order]
    plain = follow(bacs.stream(ensemble, "vanilla"), points, labels)
    batch = follow(bacs.stream(ensemble, "bn"), points, labels)
    found = follow(bacs.stream(ensemble, "auto"), points, labels)
    assert batch < plain - 0.3  # where this matters
    assert found >= plain - 0.02


def test_weights_move_only_after_the_first_images_and_in_mixed_classes(ensemble):
    points, labels = blobs(640, 4)
    stream = bacs.stream(ensemble, "auto")
    seen = []
    for part in shifted(points).split(64):
        stream.step(part)
        seen.append(stream.adapts)
    assert seen[: AGAIN // 64 - 1] == [False] * (AGAIN // 64 - 1)  # it is clear by then
    assert seen[-1]
    few = bacs.stream(ensemble, "auto")
    follow(few, shifted(blobs(640, 5, (0, 3))[0]), labels)
    assert not few.adapts


def test_a_changed_world_is_noticed_and_chosen_for_anew(ensemble):
    points, labels = blobs(1920, 6)
    stream = bacs.stream(ensemble, "auto")
    follow(stream, points[:640], labels[:640])
    assert stream.settings.batch_weight == 0
    follow(stream, shifted(points[640:1280]), labels[640:1280])
    assert stream.settings.batch_weight > 0
    assert any(event.what == {"looks": "anew"} for event in stream.history)
    back = follow(stream, points[1280:], labels[1280:])
    assert back >= follow(bacs.stream(ensemble, "vanilla"), points[1280:], labels[1280:]) - 0.03


def test_weights_that_agree_less_are_taken_back(ensemble, monkeypatch):
    points, _ = blobs(64 * 60, 7)
    ruinous = {"method": "bacs-no-posterior", "learning_rate": 3.0, "batch_weight": 1.0}
    monkeypatch.setattr("bacs.control.steered.stream_arguments_for", lambda ensemble: ruinous)
    monkeypatch.setattr("bacs.control.guarded.share_of_way_home", lambda rate: 0.0)
    monkeypatch.setattr("bacs.control.signals.SURPRISE", 1e9)  # the check alone must see it
    stream = bacs.stream(ensemble, "auto")
    for part in shifted(points).split(64):
        stream.step(part)
    assert any("adapted weights agree less" in event.reason for event in stream.history)
    assert not stream.adapts
    for member, source in zip(stream.members, ensemble.members, strict=True):
        assert all(torch.equal(a, b) for a, b in zip(member.model.parameters(), source.model.parameters(), strict=True))


def test_it_goes_on_after_saving_as_if_never_stopped(tmp_path):
    images = torch.randn(64 * 9, 3, 12, 12, generator=torch.Generator().manual_seed(0))
    ensemble = bacs.Ensemble([small_member(seed) for seed in range(3)])
    whole = bacs.stream(ensemble, "auto")
    expected = [whole.step(part) for part in images.split(64)]
    first = bacs.stream(ensemble, "auto")
    for part in images.split(64)[:5]:
        first.step(part)
    first.save(tmp_path / "stream")
    again = bacs.load(tmp_path / "stream")
    assert again.begun_with == "auto"
    for part, wanted in zip(images.split(64)[5:], expected[5:], strict=True):
        assert torch.equal(again.step(part), wanted)
    assert again.history == whole.history
    again.reset()
    assert torch.equal(again.step(images[:64]), expected[0])


def test_where_nothing_can_be_asked_it_predicts_as_it_is(ensemble):
    points, _ = blobs(256, 8)
    plain = nn.Sequential(nn.Linear(8, CLASSES)).eval()
    for each in (
        bacs.Ensemble(ensemble.members[:1]),
        bacs.Ensemble([bacs.Member(plain, flat.init(read(plain)))] * 2),
    ):
        stream = bacs.stream(each, "auto")
        wanted = each.predict(points[:64])
        assert torch.equal(stream.step(points[:64]).argmax(dim=1), wanted.argmax(dim=1))
        assert stream.history == []
    one = bacs.stream(ensemble, "auto")
    assert one.step(points[:1]).shape == (1, CLASSES)


def test_a_single_network_asks_mirrored_pictures(monkeypatch):
    asked = []
    monkeypatch.setattr("bacs.control.probe.mirror", lambda probe: asked.append(probe) or probe.flip(-1))
    images = torch.randn(320, 3, 12, 12, generator=torch.Generator().manual_seed(0))
    stream = bacs.stream(bacs.Ensemble([small_member()]), "auto")
    for part in images.split(32):
        p = stream.step(part)
    torch.testing.assert_close(p.sum(dim=1), torch.ones(32))
    assert len(asked) == 3 + 2  # the first batch, and once 256 images are gathered of few classes, under every share
    assert torch.equal(asked[0], images[:32])


def test_what_it_chooses_is_not_given(ensemble):
    with pytest.raises(ValueError, match="batch_weight must be left out with method 'auto', which chooses it"):
        bacs.stream(ensemble, "auto", batch_weight=0.5)


@pytest.mark.parametrize("protocol", ["offline", "online"])
def test_evaluate_scores_it_beside_the_others(ensemble, protocol):
    points, labels = blobs(640, 9)
    plain = bacs.evaluate(ensemble, shifted(points), labels, "vanilla", protocol=protocol, batch_size=64)
    found = bacs.evaluate(ensemble, shifted(points), labels, "auto", protocol=protocol, batch_size=64)
    assert found.ensemble["accuracy"] > plain.ensemble["accuracy"] + 0.1
    assert found.ensemble["nll"] < plain.ensemble["nll"]
    assert len(found.members) == len(ensemble)
