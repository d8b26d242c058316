"""A stream says what it saw, can be steered between steps, goes part of the way back, and is saved with all of that."""

import copy
import threading
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.stats import entropy as scipy_entropy
from torch import nn

import bacs
from bacs import temperature
from bacs.inputs import PerMember
from bacs.parameters import read
from bacs.posteriors import flat
from small import small_member


def state(stream):
    return [{name: tensor.clone() for name, tensor in m.model.state_dict().items()} for m in stream.members]


def equal(first, second, names=lambda name: True):
    return all(torch.equal(a[n], b[n]) for a, b in zip(first, second, strict=True) for n in a if names(n))


class TestObserved:
    def test_it_is_what_the_predictions_show_by_other_formulas(self, ensemble, images):
        stream = bacs.stream(ensemble, "bacs", learning_rate=0.02)
        assert stream.observed is None
        other = bacs.stream(ensemble, "bacs", learning_rate=0.02)
        for batch in images.split(20):
            rows = np.stack([each.numpy() for each in other.step_members(batch)])
            p = stream.step(batch)
        seen = stream.observed
        labels, mean = rows.argmax(axis=-1), rows.mean(axis=0)
        pairs = [(labels[i] == labels[j]).mean() for i in range(3) for j in range(i)]
        assert (seen.step, seen.images) == (2, 20)
        assert seen.agreement == pytest.approx(np.mean(pairs))
        assert seen.confidence == pytest.approx(p.max(dim=1).values.mean().item(), rel=1e-6)
        assert seen.predictive_entropy == pytest.approx(scipy_entropy(mean, axis=1).mean())
        assert seen.expected_entropy == pytest.approx(scipy_entropy(rows, axis=-1).mean())
        assert seen.effective_classes == pytest.approx(np.exp(scipy_entropy(mean.mean(axis=0))))
        assert (seen.batch_weight, seen.learning_rate, seen.posterior_weight) == (1.0, 0.02, 1e-4)
        assert all(distance > 0 for distance in seen.moved)

    def test_it_tells_of_the_step_and_not_of_what_was_changed_after_it(self, ensemble, images):
        stream = bacs.stream(ensemble, "bacs", learning_rate=0.1)
        stream.step(images)
        stream.change(learning_rate=0.5, batch_weight=0.5)
        stream.reset("weights")
        assert (stream.observed.learning_rate, stream.observed.batch_weight) == (0.1, 1.0)
        assert min(stream.observed.moved) > 0
        stream.step(images)
        assert (stream.observed.learning_rate, stream.observed.batch_weight) == (0.5, 0.5)

    def test_one_member_agrees_with_nobody_and_nothing_moved_under_vanilla(self, images):
        stream = bacs.stream(bacs.Ensemble([small_member()]), "vanilla")
        stream.step(images)
        assert stream.observed.agreement is None
        assert stream.observed.moved == (None,)


class TestChange:
    def test_a_changed_rate_is_the_rate_of_the_next_step(self, ensemble, images):
        stream, other = (bacs.stream(ensemble, "tent", learning_rate=0.1, momentum=0.0) for _ in range(2))
        for each in (stream, other):
            each.step(images[:20])
        stream.change(learning_rate=0.2)
        middle = state(stream)
        for each in (stream, other):
            each.step(images[20:])
        for before, near, far in zip(middle, state(other), state(stream), strict=True):
            for name in near:
                torch.testing.assert_close(
                    far[name] - before[name], 2 * (near[name] - before[name]), atol=1e-6, rtol=1e-3
                )

    def test_a_changed_posterior_weight_pins_the_weights_from_then_on(self, ensemble, images):
        stream = bacs.stream(ensemble, "bacs", learning_rate=0.1)
        stream.step(images)
        far = stream.observed.moved
        stream.change(posterior_weight=1e12, reason="too far")
        stream.step(images)
        assert max(stream.observed.moved) < 1e-3 < min(far)

    def test_a_flat_posterior_stays_flat_whatever_its_weight(self, ensemble, images):
        stream, other = (bacs.stream(ensemble, "bacs-no-posterior", learning_rate=0.1) for _ in range(2))
        stream.change(posterior_weight=1e6)
        assert torch.equal(stream.step(images), other.step(images))
        assert torch.equal(stream.step(images), other.step(images))

    @pytest.mark.parametrize("change", [{"batch_weight": 0.3}, {"statistics": "running", "batch_weight": 0.3}])
    def test_statistics_change_between_steps(self, ensemble, images, change):
        stream, mixed = bacs.stream(ensemble, "bn"), bacs.stream(ensemble, "bn", **change)
        first = stream.step(images)
        stream.change(**change)
        assert torch.equal(stream.step(images), mixed.step(images))
        stream.change(batch_weight=1.0, statistics="source")
        assert torch.equal(stream.step(images), first)

    def test_another_method_goes_on_from_the_weights_that_were_reached(self, ensemble, images):
        stream = bacs.stream(ensemble, "tent", learning_rate=0.1)
        stream.step(images)
        reached = state(stream)
        stream.change("bacs-no-posterior")
        assert equal(reached, state(stream))
        stream.step(images)
        changed = {n for n, tensor in state(stream)[0].items() if not torch.equal(tensor, reached[0][n])}
        assert changed == set(read(ensemble.members[0].model))
        stream.change("vanilla")
        reached = state(stream)
        stream.step(images)
        assert equal(reached, state(stream))

    def test_the_optimisers_memory_stays_where_it_means_the_same(self, ensemble, images):
        """Under tent's momentum the next step depends on the last one; a change of r must not forget that."""
        stream = bacs.stream(ensemble, "tent", learning_rate=0.1)
        stream.step(images)
        stream.change(batch_weight=0.9)
        stream.change(batch_weight=1.0)
        other = bacs.stream(ensemble, "tent", learning_rate=0.1)
        other.step(images)
        assert torch.equal(stream.step(images), other.step(images))
        assert equal(state(stream), state(other))

    def test_decisions_are_kept_with_their_reasons(self, ensemble, images):
        stream = bacs.stream(ensemble, "bacs")
        stream.step(images)
        stream.change(learning_rate=0.01, reason="agreement rose")
        stream.change(learning_rate=0.01)
        stream.reset("weights", reason="a new camera")
        assert [tuple(event) for event in stream.history] == [
            (1, {"learning_rate": [1e-3, 0.01]}, "agreement rose"),
            (1, {"reset": ["weights"]}, "a new camera"),
        ]

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"method": "bax"}, "did you mean 'bacs'"),
            ({"learning_rat": 1}, "did you mean 'learning_rate'"),
            ({"batch_weight": 2}, "batch_weight must be a number from 0"),
            ({"statistics": "accumulated"}, "statistics must not be 'accumulated' for a stream"),
            ({"method": "auto"}, "method 'auto' decides by itself"),
        ],
    )
    def test_a_wrong_change_changes_nothing(self, ensemble, images, change, message):
        stream, other = bacs.stream(ensemble, "bacs"), bacs.stream(ensemble, "bacs")
        for each in (stream, other):
            each.step(images)
        with pytest.raises(ValueError, match=message):
            stream.change(**change)
        assert stream.history == []
        assert torch.equal(stream.step(images), other.step(images))


class TestReset:
    @pytest.mark.parametrize("part", ["weights", "statistics"])
    def test_only_the_named_part_goes_back(self, ensemble, images, part):
        stream = bacs.stream(ensemble, "bacs", learning_rate=0.1, statistics="running")
        start = state(stream)
        for batch in images.split(10):
            stream.step(batch)
        reached = state(stream)
        stream.reset(part)
        running = "running_mean", "running_var"
        back = (
            (lambda name: name.endswith(running)) if part == "statistics" else (lambda name: not name.endswith(running))
        )
        assert equal(start, state(stream), back)
        assert equal(reached, state(stream), lambda name: not back(name))
        assert not equal(start, reached, back)
        assert stream.steps == 4

    def test_the_optimiser_forgets(self, ensemble, images):
        stream = bacs.stream(ensemble, "tent", learning_rate=0.1)
        stream.step(images)
        stream.reset("optimizer")
        own = copy.deepcopy(stream.members[0].model)
        fresh = bacs.stream(bacs.Ensemble([replace(ensemble.members[0], model=own)]), "tent", learning_rate=0.1)
        stream.step(images)
        fresh.step(images)
        assert equal(state(stream)[:1], state(fresh))

    def test_a_whole_reset_takes_back_what_was_changed(self, ensemble, images):
        stream = bacs.stream(ensemble, "tent", learning_rate=0.1)
        first = stream.step(images)
        stream.change("bacs", learning_rate=0.5, batch_weight=0.5)
        stream.step(images)
        stream.reset()
        assert (stream.steps, stream.history, stream.observed) == (0, [], None)
        assert stream.method_name == "tent"
        assert torch.equal(stream.step(images), first)

    def test_an_unknown_part_is_named(self, ensemble):
        with pytest.raises(ValueError, match=r"parts must be one of weights, statistics, optimizer; got 'weight'"):
            bacs.stream(ensemble, "bacs").reset("weight")


class TestSaving:
    @pytest.mark.parametrize("optimizer", ["sgd", "adam"])
    def test_a_steered_stream_goes_on_as_if_never_stopped(self, tmp_path, ensemble, images, optimizer):
        stream = bacs.stream(ensemble, "tent", optimizer=optimizer, learning_rate=0.05, seed=7)
        batches = images.split(10)
        first = stream.step(batches[0])
        stream.change(
            "bacs", statistics="running", batch_weight=0.3, objective="consistency", view="shifted", reason="try"
        )
        stream.step(batches[1])
        stream.save(tmp_path / "stream")
        again = bacs.load(tmp_path / "stream")
        assert again.observed == stream.observed
        assert again.history == stream.history
        for batch in batches[2:]:
            assert torch.equal(stream.step(batch), again.step(batch))
        assert equal(state(stream), state(again))
        again.reset()
        assert torch.equal(again.step(batches[0]), first)

    def test_the_source_ensemble_is_written_once(self, tmp_path, ensemble, images):
        stream = bacs.stream(ensemble, "bacs", learning_rate=0.05)
        stream.step(images)
        stream.save(tmp_path / "stream")
        written = {file: file.stat().st_mtime_ns for file in (tmp_path / "stream").glob("member-*")}
        assert len(written) == 3
        stream.step(images)
        stream.save(tmp_path / "stream")
        assert {file: file.stat().st_mtime_ns for file in (tmp_path / "stream").glob("member-*")} == written
        assert len(list((tmp_path / "stream").glob("live-*"))) == 3
        stream.save(tmp_path / "elsewhere")
        next(iter(written)).unlink()
        stream.save(tmp_path / "stream")  # what was lost is written again
        p = stream.step(images)
        for place in ("stream", "elsewhere"):
            assert torch.equal(bacs.load(tmp_path / place).step(images), p)

    def test_device_and_compile_choice_come_back(self, tmp_path, ensemble, images):
        stream = bacs.stream(ensemble, "vanilla", device="cpu", compile=True)
        stream.save(tmp_path / "stream")
        again = bacs.load(tmp_path / "stream")
        assert (again.device, again.compiled) == ("cpu", True)
        assert bacs.load(tmp_path / "stream", device="meta").device == "meta"


class TestThreads:
    @pytest.fixture(autouse=True)
    def two_threads(self):
        torch.set_num_threads(2)
        yield
        torch.set_num_threads(1)

    def test_nobody_elses_thread_count_changes(self, ensemble, images):
        counts = []

        def ask(*_):
            new = threading.Thread(target=lambda: counts.append(torch.get_num_threads()))
            new.start()
            new.join()
            counts.append(torch.get_num_threads())

        stream = bacs.stream(ensemble, "bacs")
        for batch in images.split(10):
            stream.step(batch)
            ask()
        stream.reset()
        bacs.adapt(ensemble, images, "bacs", batch_size=10, on_batch=ask).predict(images)
        ask()
        # `ask` is called by members at work as well, whose own threads have one each; all others have two.
        assert counts[:8] == [2] * 8
        assert set(counts[8::2]) == {2}
        assert counts[-2:] == [2, 2]

    def test_two_streams_in_two_threads_give_the_numbers_that_they_give_alone(self, images):
        ensembles = [bacs.Ensemble([small_member(10 * turn + seed) for seed in range(3)]) for turn in range(2)]
        batches = images.split(10) * 3

        def follow(ensemble):
            stream = bacs.stream(ensemble, "bacs", learning_rate=0.05)
            return torch.cat([stream.step(batch) for batch in batches])

        alone = [follow(ensemble) for ensemble in ensembles]
        found = [None, None]

        def work(turn):
            found[turn] = follow(ensembles[turn])

        workers = [threading.Thread(target=work, args=(turn,)) for turn in range(2)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        assert all(torch.equal(a, b) for a, b in zip(alone, found, strict=True))

    def test_one_stream_used_by_two_threads_takes_one_step_after_another(self, ensemble, images):
        stream = bacs.stream(ensemble, "bacs", learning_rate=0.05)
        workers = [threading.Thread(target=lambda: [stream.step(images) for _ in range(5)]) for _ in range(2)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        other = bacs.stream(ensemble, "bacs", learning_rate=0.05)
        for _ in range(10):
            other.step(images)
        assert stream.steps == 10
        assert equal(state(stream), state(other))


class TestPeersAndViews:
    def test_a_lockstep_of_members_equals_the_hand_written_loop(self, ensemble, images):
        """Each member's cross-entropy to the mean of all: every forward pass comes before any step."""
        stream = bacs.stream(ensemble, "bacs-no-posterior", objective="ensemble_teacher", learning_rate=0.1)
        models = [copy.deepcopy(m.model).train() for m in ensemble.members]
        optimizers = [torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9) for model in models]
        for batch in images.split(10):
            rows = [model(batch).softmax(dim=1) for model in models]
            teacher = torch.stack(rows).mean(dim=0).detach()
            for optimizer, p in zip(optimizers, rows, strict=True):
                optimizer.zero_grad()
                (-(teacher * p.log()).sum(dim=1).mean()).backward()
                optimizer.step()
            torch.testing.assert_close(stream.step(batch), teacher, atol=1e-5, rtol=1e-4)

    def test_consistency_pulls_a_picture_and_its_mirror_image_together(self, ensemble, images):
        def apart(adapted):
            p, mirrored = adapted.predict(images), adapted.predict(images.flip(-1))
            return (p - mirrored).abs().sum()

        how = {"objective": "consistency", "learning_rate": 0.2, "epochs": 5, "batch_size": 20}
        assert apart(bacs.adapt(ensemble, images, "bacs-no-posterior", **how)) < 0.7 * apart(
            bacs.adapt(ensemble, images, "bn")
        )

    @pytest.mark.parametrize(
        "start",
        [
            lambda e, **how: bacs.stream(e, "bacs", **how),
            lambda e, **how: bacs.adapt(e, torch.randn(8, 3, 12, 12), "bacs", **how),
        ],
    )
    def test_one_member_has_no_peers(self, start):
        with pytest.raises(
            ValueError, match=r"objective 'ensemble_teacher' looks at other members: it needs two or more"
        ):
            start(bacs.Ensemble([small_member()]), objective="ensemble_teacher")

    @pytest.mark.parametrize(("shape", "dtype"), [((8, 6), torch.float32), ((8, 7), torch.int64)])
    def test_rows_and_tokens_have_no_second_view(self, shape, dtype):
        first = nn.Linear(6, 8) if dtype == torch.float32 else nn.EmbeddingBag(30, 8)
        model = nn.Sequential(first, nn.BatchNorm1d(8), nn.Linear(8, 3)).eval()
        ensemble = bacs.Ensemble([bacs.Member(model, flat.init(read(model)))])
        inputs = torch.ones(shape, dtype=dtype)
        stream = bacs.stream(ensemble, "bacs", objective="consistency")
        before = state(stream)
        for call in (
            lambda: stream.step(inputs),
            lambda: bacs.adapt(ensemble, inputs, "bacs", objective="consistency"),
        ):
            with pytest.raises(ValueError, match="a second view needs images") as raised:
                call()
            assert len(str(raised.value).splitlines()) <= 2
        assert equal(before, state(stream))

    def test_a_method_may_name_an_objective_with_needs(self, images):
        method = bacs.Method(adapts="all", objective="entropy + ensemble_teacher", posterior="member", batch_weight=0.7)
        with pytest.raises(ValueError, match="looks at other members"):
            bacs.adapt(bacs.Ensemble([small_member()]), images, method)


class TestViewsPerMember:
    """The same images, at each member's own size."""

    @pytest.fixture
    def views(self, images):
        return PerMember([images, images[:, :, 2:, 2:], images[:, :, :8]])

    def test_offline(self, ensemble, views):
        found = bacs.adapt(ensemble, views, "tent", batch_size=10, learning_rate=0.1).predict(views, batch_size=10)
        alone = []
        for member, view in zip(ensemble.members, views, strict=True):
            one = bacs.adapt(bacs.Ensemble([member]), view, "tent", batch_size=10, learning_rate=0.1)
            alone.append(one.predict(view, batch_size=10))
        torch.testing.assert_close(found, torch.stack(alone).mean(dim=0))

    def test_online(self, ensemble, views):
        stream = bacs.stream(ensemble, "bn")
        parts = zip(*(view.split(10) for view in views), strict=True)
        found = torch.cat([stream.step(PerMember(batches)) for batches in parts])
        alone = []
        for member, view in zip(ensemble.members, views, strict=True):
            one = bacs.stream(bacs.Ensemble([member]), "bn")
            alone.append(torch.cat([one.step(batch) for batch in view.split(10)]))
        torch.testing.assert_close(found, torch.stack(alone).mean(dim=0))

    @pytest.mark.parametrize("protocol", ["offline", "online"])
    def test_in_lockstep(self, ensemble, views, labels, protocol):
        result = bacs.evaluate(
            ensemble, views, labels, "bacs", protocol=protocol, objective="ensemble_teacher", batch_size=10
        )
        assert result.probabilities.shape == (40, 5)

    def test_views_that_do_not_fit_are_named_before_any_work(self, ensemble, images):
        with pytest.raises(ValueError, match="images must be given for each member, got 2 for 3 members"):
            bacs.adapt(ensemble, PerMember([images, images]), "bacs")
        with pytest.raises(ValueError, match=r"images of shape \[2, 2, 12, 12\] do not fit"):
            bacs.adapt(ensemble, PerMember([images, images, images[:, :2]]), "bacs")


def test_a_temperature_by_agreement_follows_the_images(ensemble, images):
    stream, plain = bacs.stream(ensemble, "bacs", temperature="agreement"), bacs.stream(ensemble, "bacs")
    batches = images.split(10)
    rows = []
    for batch in batches:
        found, own = stream.step_members(batch), plain.step_members(batch)
        rows.append(torch.stack(own))
        wanted = temperature.by_agreement(torch.cat(rows, dim=1))
        assert stream.temperature == pytest.approx(wanted)
        for member, untempered in zip(found, own, strict=True):
            torch.testing.assert_close(member, temperature.tempered(untempered, wanted))
    with pytest.raises(ValueError, match="temperature 'agreement' needs two members or more"):
        bacs.stream(bacs.Ensemble(ensemble.members[:1]), "bacs", temperature="agreement")


def test_what_members_share_is_opened_and_kept_once(ensemble, images, tmp_path):
    stream = bacs.stream(ensemble, "auto")
    array = images.numpy()
    for batch in (array[:4], array[4:8], array[8:12]):  # small ones, which a guarded stream keeps
        stream.step(batch)
        stream.save(tmp_path / "live")
    again = bacs.load(tmp_path / "live")
    assert torch.equal(again.step(array[12:16]), stream.step(array[12:16]))


class TestResetEvery:
    def test_the_step_after_a_reset_is_the_first_step_of_a_new_stream(self, ensemble, images):
        how = {"learning_rate": 0.05, "statistics": "running", "optimizer": "adam"}
        stream = bacs.stream(ensemble, "bacs", **how, reset_every=3)
        batches = [*images.split(10), *images.flip(0).split(10)][:7]
        rows = [stream.step(batch) for batch in batches]
        for start in (0, 3, 6):
            anew = bacs.stream(ensemble, "bacs", **how)
            for batch, wanted in zip(batches[start : start + 3], rows[start : start + 3], strict=False):
                assert torch.equal(anew.step(batch), wanted)
        assert stream.steps == 7
        parts = {"reset": ["weights", "statistics", "optimizer"]}
        assert stream.history == [(3, parts, "every 3 steps"), (6, parts, "every 3 steps")]

    def test_a_saved_stream_goes_on_with_it(self, ensemble, images, tmp_path):
        whole, first = (bacs.stream(ensemble, "tent", learning_rate=0.05, reset_every=3) for _ in range(2))
        batches = images.split(10)
        expected = [whole.step(batch) for batch in batches]
        first.step(batches[0])
        first.save(tmp_path / "stream")
        again = bacs.load(tmp_path / "stream")
        assert again.settings.reset_every == 3
        for batch, wanted in zip(batches[1:], expected[1:], strict=True):
            assert torch.equal(again.step(batch), wanted)
        assert again.history == whole.history

    def test_it_can_be_changed_on_the_way(self, ensemble, images):
        stream = bacs.stream(ensemble, "tent", learning_rate=0.05)
        stream.step(images)
        stream.change(reset_every=2)
        stream.step(images)
        assert [event.what for event in stream.history] == [
            {"reset_every": [None, 2]},
            {"reset": ["weights", "statistics", "optimizer"]},
        ]
        assert equal(state(stream), state(bacs.stream(ensemble, "tent")))

    @pytest.mark.parametrize("wrong", [0, -1, 2.5, True, "ten"])
    def test_what_is_no_number_of_steps_is_refused(self, ensemble, wrong):
        with pytest.raises(ValueError, match="reset_every must be a whole number of steps, at least 1, or None, got"):
            bacs.stream(ensemble, "bacs", reset_every=wrong)

    def test_offline_there_is_no_stream_to_reset(self, ensemble, images):
        with pytest.raises(ValueError, match="reset_every must be left out offline: it is for streams, got 5"):
            bacs.evaluate(ensemble, images, torch.arange(40) % 5, "bacs", reset_every=5)
