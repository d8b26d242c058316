"""A stream that guards itself: it holds still, goes back, sets weights aside and takes them up again, and gathers."""

import copy
import itertools

import pytest
import torch

import bacs
from bacs.control import candidates, decide, standing, steps
from bacs.control.looks import Gain
from bacs.control.signals import ENOUGH
from bacs.control.watch import Watch
from blobs import blobs, shifted

RATE = {"learning_rate": 3e-3, "posterior_weight": 1e-6, "objective": "information_maximisation"}


def follow(stream, points, labels, batch=64):
    """Share of the points that a stream gets right, batch by batch in their order."""
    steps = [stream.step(part) for part in points.split(batch)]
    return (torch.cat(steps).argmax(dim=1) == labels).double().mean().item()


def rubbish(count, seed=50):
    return 30 * torch.randn(count, 8, generator=torch.Generator().manual_seed(seed)) - 20


def weights_of(stream):
    return [p.detach().clone() for member in stream.members for p in member.model.parameters()]


def same(first, second):
    return all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


def test_without_a_guard_a_stream_is_what_it_was(ensemble):
    points, _ = blobs(512, 1)
    plain, told = bacs.stream(ensemble, "bacs", **RATE), bacs.stream(ensemble, "bacs", **RATE, guard=False)
    for part in shifted(points).split(64):
        assert torch.equal(plain.step(part), told.step(part))
    assert type(plain) is type(told) is bacs.Stream


def test_a_guarded_method_does_what_it_would_as_long_as_that_does_no_harm(ensemble):
    points, _ = blobs(1280, 2)
    plain, watched = bacs.stream(ensemble, "bacs", **RATE), bacs.stream(ensemble, "bacs", **RATE, guard=True)
    for part in shifted(points).split(64):
        assert torch.equal(plain.step(part), watched.step(part))
    assert watched.history == []


@pytest.mark.parametrize("method", ["bn", "tent", "bacs"])
def test_a_guarded_method_is_held_back_on_sorted_streams(ensemble, method):
    points, labels = blobs(1920, 3)
    order = labels.argsort(stable=True)
    points, labels = points[order], labels[order]
    plain = follow(bacs.stream(ensemble, "vanilla"), points, labels)
    alone = follow(bacs.stream(ensemble, method), points, labels)
    watched = follow(bacs.stream(ensemble, method, guard=True), points, labels)
    assert alone < plain - 0.3  # where this matters
    assert watched >= plain - 0.02


def test_weights_hold_still_from_the_moment_at_which_the_world_changes(ensemble):
    points, labels = blobs(1280, 4)
    stream = bacs.stream(ensemble, "bacs", **RATE, guard=True)
    follow(stream, shifted(points), labels)
    before = weights_of(stream)
    stream.step(rubbish(64))
    assert stream.history[0].what == {"looks": "anew"}
    assert not same(before, weights_of(bacs.stream(ensemble, "bacs")))  # they had moved
    kept = weights_of(stream) if stream.adapts else [t for own in stream._watch.aside.weights for t in own.values()]
    assert {tuple(t.flatten().tolist()) for t in before} <= {tuple(t.flatten().tolist()) for t in kept}


@pytest.mark.parametrize("method", ["auto", "bacs"])
def test_rubbish_in_the_middle_leaves_no_trace(ensemble, method):
    how = RATE | {"guard": True} if method == "bacs" else {}
    points, labels = blobs(64 * 60, 5)
    first, rest = 64 * 28, 64 * 32
    spared, struck = bacs.stream(ensemble, method, **how), bacs.stream(ensemble, method, **how)
    for stream in (spared, struck):
        follow(stream, shifted(points[:first]), labels[:first])
    for part in rubbish(64 * 20).split(64):
        struck.step(part)
    wanted = follow(spared, shifted(points[first:]), labels[first:])
    assert follow(struck, shifted(points[first:]), labels[first:]) >= wanted - 0.01
    assert len(points[first:]) == rest


def test_black_frames_and_one_picture_a_thousand_times_leave_no_trace(ensemble):
    points, labels = blobs(64 * 40, 6)
    stream, spared = bacs.stream(ensemble, "auto"), bacs.stream(ensemble, "auto")
    for each in (stream, spared):
        follow(each, shifted(points[:1280]), labels[:1280])
    for part in (torch.zeros(64, 8), points[:1].repeat(64, 1)):
        for _ in range(16):
            p = stream.step(part)
        assert torch.isfinite(p).all()
    wanted = follow(spared, shifted(points[1280:]), labels[1280:])
    assert follow(stream, shifted(points[1280:]), labels[1280:]) >= wanted - 0.01


def test_weights_that_agree_less_go_half_of_the_way_home_and_then_all_of_it(ensemble, monkeypatch):
    monkeypatch.setattr(decide, "CLEARLY", 1e9)
    monkeypatch.setattr("bacs.control.signals.SURPRISE", 1e9)
    points, _ = blobs(64 * 160, 7)
    stream = bacs.stream(ensemble, "bacs-no-posterior", learning_rate=2.0, guard=True)
    for part in shifted(points).split(64):
        stream.step(part)
    events = [event for event in stream.history if "reset" in event.what]
    assert events[0].what == {"reset": ["weights", "optimizer"], "share": 0.5}
    assert events[1].what == {"reset": ["weights", "optimizer"]}
    assert all("adapted weights agree less than statistics alone" in event.reason for event in events)
    assert not stream.adapts
    assert same(weights_of(stream), weights_of(bacs.stream(ensemble, "bacs")))


def test_a_rate_that_was_halved_in_one_world_is_whole_in_the_next(ensemble):
    """Or it would be nothing after months of false alarms."""
    points, labels = blobs(1280, 4)
    stream = bacs.stream(ensemble, "bacs", **RATE, guard=True)
    follow(stream, shifted(points), labels)
    stream._carry_out(decide.Decision("go halfway", "a false alarm"))
    assert stream.settings.learning_rate == RATE["learning_rate"] / 2
    assert stream._is_surprising([points[:64] + 9], [p.softmax(dim=1) for p in torch.zeros(3, 64, 6)])
    assert stream.settings.learning_rate == RATE["learning_rate"]


def test_each_step_of_auto_goes_a_little_of_the_way_home(ensemble, monkeypatch):
    points, _ = blobs(64 * 12, 15)
    *batches, last = shifted(points).split(64)
    ways = {}
    for name, share in (("some", 0.1), ("none", 0.0)):
        stream = bacs.stream(ensemble, "auto")
        monkeypatch.undo()
        for part in batches:
            stream.step(part)
        before = weights_of(stream)
        monkeypatch.setattr("bacs.control.guarded.share_of_way_home", lambda rate, share=share: share)
        stream.step(last)
        assert not same(before, weights_of(stream))
        ways[name] = weights_of(stream)
    home = [p.detach() for member in ensemble.members for p in member.model.parameters()]
    for start, far, near in zip(home, ways["none"], ways["some"], strict=True):
        torch.testing.assert_close(near, start + 0.9 * (far - start))


def test_what_a_stream_takes_back_leaves_it_the_way_of_adaptation_to_a_folder():
    """Of steps of one length, all in one direction, so many are not faded that their lengths add up to WAY."""
    share = steps.share_of_way_home(steps.STREAM_RATE)
    way = 0.0
    for _ in range(10_000):
        way = (way + steps.STREAM_RATE) * (1 - share)
    assert way == pytest.approx(steps.WAY, rel=0.03)
    assert steps.share_of_way_home(1.0) == 1.0


def test_short_questions_leave_a_reserve_for_looks_at_new_worlds(ensemble):
    points, _ = blobs(64 * 60, 16)
    stream = bacs.stream(ensemble, "bacs", **RATE, guard=True)
    credits = []
    for part in shifted(points).split(64):
        stream.step(part)
        credits.append(stream._watch.now.credit)
    assert stream._watch.now.asked > 0
    assert min(credits) >= standing.RESERVE


def test_debts_are_let_go_so_that_home_is_soon_asked_again():
    assert standing.pay(standing.Standing(credit=300.0), 100).credit == 200
    assert standing.pay(standing.Standing(credit=300.0), 5000).credit == 0


@pytest.mark.parametrize("batch", [1, 3, 16])
def test_small_batches_gain_what_large_ones_do_almost(ensemble, batch):
    points, labels = blobs(1920, 8)
    still = follow(bacs.stream(ensemble, "vanilla"), shifted(points), labels, batch)
    large = follow(bacs.stream(ensemble, "auto"), shifted(points), labels, 64)
    small = bacs.stream(ensemble, "auto")
    assert follow(small, shifted(points), labels, batch) > (still + 3 * large) / 4
    assert small.steps == -(-1920 // batch)


def test_a_small_batch_is_predicted_by_the_statistics_of_those_before_it(ensemble):
    points, _ = blobs(68, 9)
    stream = bacs.stream(ensemble, "bn", guard=True)
    for part in shifted(points[:64]).split(16):
        stream.step(part)
    found = stream.step(shifted(points[64:]))
    layers = [m for m in ensemble.members[0].model if isinstance(m, torch.nn.BatchNorm1d)]
    before = [layer.running_mean.clone() for layer in layers]
    bn = bacs.stream(ensemble, "bn").step(shifted(points[:64]))
    assert torch.isfinite(bn).all()
    model = ensemble.members[0].model
    inputs = shifted(points[:64])
    rows, share = [], stream.settings.batch_weight
    assert share > 0
    for member in ensemble.members:
        x, y = inputs, shifted(points[64:])
        for layer in member.model:
            if isinstance(layer, torch.nn.BatchNorm1d):
                mean = torch.lerp(layer.running_mean, x.mean(dim=0), share)
                variance = torch.lerp(layer.running_var, x.var(dim=0, unbiased=False), share)
                scale = layer.weight / (variance + layer.eps).sqrt()
                x, y = (x - mean) * scale + layer.bias, (y - mean) * scale + layer.bias
            else:
                x, y = layer(x), layer(y)
        rows.append(y.softmax(dim=1))
    torch.testing.assert_close(found, torch.stack(rows).mean(dim=0), atol=1e-5, rtol=1e-4)
    for layer, mean in zip([m for m in model if isinstance(m, torch.nn.BatchNorm1d)], before, strict=True):
        assert torch.equal(layer.running_mean, mean)


def test_looks_cost_no_more_than_their_share(ensemble, monkeypatch):
    asked = []
    original = candidates.try_weights
    monkeypatch.setattr(candidates, "try_weights", lambda *a, **k: asked.append(len(a[2])) or original(*a, **k))
    points, _ = blobs(64 * 200, 10)
    stream = bacs.stream(ensemble, "auto")
    passes = 0
    for part in points.split(64):
        stream.step(part)
        passes += 3 if stream.adapts else 1
    assert sum(asked) * 64 <= standing.SHARE * passes * 64 + standing.GRACE
    assert len(asked) > standing.FIRST // 64


@pytest.mark.parametrize("stop", [3, 21, 30])
def test_it_goes_on_after_saving_in_the_middle_of_trouble(ensemble, tmp_path, stop):
    points, _ = blobs(64 * 20, 11)
    batches = [*shifted(points).split(64), *rubbish(64 * 8).split(64), *shifted(points[:128]).split(8)]
    whole = bacs.stream(ensemble, "auto")
    expected = [whole.step(part) for part in batches]
    first = bacs.stream(ensemble, "auto")
    for part in batches[:stop]:
        first.step(part)
    first.save(tmp_path / "stream")
    again = bacs.load(tmp_path / "stream", model=lambda: copy.deepcopy(ensemble.members[0].model))
    for part, wanted in zip(batches[stop:], expected[stop:], strict=True):
        assert torch.equal(again.step(part), wanted)
    assert again.history == whole.history


def test_auto_without_its_guard_decides_once(ensemble):
    points, labels = blobs(64 * 20, 12)
    stream = bacs.stream(ensemble, "auto", guard=False)
    follow(stream, shifted(points[:640]), labels[:640])
    assert stream.adapts
    told = len(stream.history)
    for part in rubbish(640).split(64):
        stream.step(part)
    assert stream.adapts
    assert len(stream.history) == told


def test_a_guard_decides_by_itself_when_to_go_back(ensemble):
    message = "reset_every must be left out with guard, which decides when to go back, got 10"
    with pytest.raises(ValueError, match=message):
        bacs.stream(ensemble, "bacs", reset_every=10, guard=True)
    with pytest.raises(ValueError, match=message):
        bacs.stream(ensemble, "bacs", guard=True).change(reset_every=10)
    with pytest.raises(ValueError, match="reset_every must be left out with method 'auto', which chooses it"):
        bacs.stream(ensemble, "auto", reset_every=10)


def test_guarded_members_are_evaluated_together(ensemble):
    points, labels = blobs(640, 13)
    stream = bacs.stream(ensemble, "tent", guard=True)
    wanted = torch.cat([stream.step_predictive(part).probabilities for part in points.split(64)])
    found = bacs.evaluate(ensemble, points, labels, "tent", protocol="online", batch_size=64, guard=True)
    assert torch.equal(found.probabilities, wanted)


@pytest.mark.parametrize("wrong", ["yes", 1, 0.5])
def test_what_is_no_guard_is_refused(ensemble, wrong):
    with pytest.raises(ValueError, match="guard must be True, False or None"):
        bacs.stream(ensemble, "bacs", guard=wrong)


@pytest.mark.parametrize(("parts", "share"), [(("weights",), 0.0), (("weights",), 1.5), (("optimizer",), 0.5)])
def test_a_share_of_the_way_is_one(ensemble, parts, share):
    stream = bacs.stream(ensemble, "bacs")
    with pytest.raises(ValueError, match="share must be above 0"):
        stream.reset(*parts, share=share)


@pytest.mark.parametrize(
    ("proven", "better", "goes_home"),
    [(True, 0.15, False), (True, 0.25, True), (False, -0.15, False), (False, -0.05, True)],
)
def test_home_is_asked_about_every_batch_of_a_new_world_in_runs_until_its_changes_are_noticed(
    ensemble, monkeypatch, proven, better, goes_home
):
    parts = [blobs(64, batch, (batch % 6, (batch + 2) % 6))[0] for batch in range(32)]
    stream = bacs.stream(ensemble, "auto")
    for part in parts[:20]:
        stream.step(shifted(part))
    assert stream.adapts
    watch = stream._watch
    assert watch.now.few
    asked = []

    def gain_of_home(self, home, images, rows):
        asked.append(self.now.images)
        return Gain(better, 0.1)

    monkeypatch.setattr(Watch, "gain_of_home", gain_of_home)
    monkeypatch.setattr(Watch, "look_is_due", lambda *arguments, **options: False)
    monkeypatch.setattr(Watch, "memory_says_more", False)
    for part in parts[20:22]:
        stream.step(shifted(part))
    assert asked == []  # in a world that it knows
    watch.usual.means = []  # as after a surprise
    if not proven:
        watch.looks.all = []
    for part in parts[22:]:
        stream.step(shifted(part))
    assert len(asked) == (1 if goes_home else ENOUGH)  # home need not be asked about itself
    assert stream.adapts is not goes_home
    assert ("source statistics" in stream.history[-1].reason) is goes_home


def test_home_is_compared_over_all_batches_of_a_new_world_with_those_who_answer(ensemble):
    parts = [blobs(64, batch, (batch % 6, (batch + 2) % 6))[0] for batch in range(24)]
    stream = bacs.stream(ensemble, "auto")
    for part in parts[:20]:
        stream.step(shifted(part))
    watch, home = stream._watch, stream._at_home()
    watch.short.forget()
    gained, own, other = [], [], []
    for part in parts[20:]:
        images = [shifted(part)] * len(ensemble)
        rows = watch.gathered.answer(stream._movers, images, stream._threads)
        gained.append(watch.gain_of_home(home, images, rows))
        own.append(torch.stack(rows).argmax(dim=2))
        other.append(ensemble.predict_members(shifted(part)).argmax(dim=2))
    for count, gain in enumerate(gained, 1):
        agree = [
            torch.stack([(a == b).double() for a, b in itertools.combinations(torch.cat(side[:count], dim=1), 2)]).mean(
                dim=0
            )
            for side in (other, own)
        ]
        difference = agree[0] - agree[1]
        assert gain.error == pytest.approx(max(float(difference.std()) / len(difference) ** 0.5, 0.5 / len(difference)))


def test_a_stream_that_is_saved_amid_the_first_batches_of_a_world_in_runs_goes_on_bit_for_bit(ensemble, tmp_path):
    parts = [shifted(blobs(64, batch, (batch % 6, (batch + 2) % 6))[0]) for batch in range(32)]
    stream = bacs.stream(ensemble, "auto")
    for part in parts[:20]:
        stream.step(part)
    stream._watch.usual.means, stream._watch.looks.all = [], []  # as after a surprise
    stream._watch.forget_answers()
    for part in parts[20:22]:
        stream.step(part)
    assert stream._watch.short.all
    stream.save(tmp_path / "stream")
    again = bacs.load(tmp_path / "stream", model=lambda: copy.deepcopy(ensemble.members[0].model))
    for part in parts[22:]:
        assert torch.equal(stream.step(part), again.step(part))
    assert stream.history == again.history
