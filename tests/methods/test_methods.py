"""Claims about methods, and the contract that every method keeps."""

import copy
import gc
import threading
import weakref
from dataclasses import replace

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import bacs
from bacs.methods import prepare
from bacs.parameters import read
from bacs.posteriors import flat, swag_diag, swag_low_rank
from small import small_member, small_model

METHODS = [name for name, row in bacs.METHODS.items() if not row.chooses]


def weights(ensemble):
    return [{n: t.clone() for n, t in member.model.state_dict().items()} for member in ensemble.members]


def equal(a, b):
    return all(torch.equal(x[n], y[n]) for x, y in zip(a, b, strict=True) for n in x)


PAPER = ("vanilla", "bn", "tent", "bacs", "bacs-no-posterior")


def test_the_catalogue_begins_with_the_rows_of_the_paper_in_their_order():
    assert tuple(bacs.METHODS)[:5] == PAPER
    assert bacs.METHODS["auto"].chooses
    assert not any(bacs.METHODS[name].chooses for name in PAPER)


@pytest.mark.parametrize("method", METHODS)
class TestContract:
    def test_adapt_leaves_the_given_ensemble_untouched(self, method, ensemble, images):
        before, modes = weights(ensemble), [m.model.training for m in ensemble.members]
        posterior = copy.deepcopy(ensemble.members[0].posterior)
        bacs.adapt(ensemble, images, method, epochs=2, batch_size=16)
        assert equal(before, weights(ensemble))
        assert [m.model.training for m in ensemble.members] == modes
        assert all(torch.equal(posterior.mean[n], ensemble.members[0].posterior.mean[n]) for n in posterior.mean)

    def test_zero_epochs_change_no_parameter(self, method, ensemble, images):
        assert equal(weights(ensemble), weights(bacs.adapt(ensemble, images, method, epochs=0)))

    def test_two_runs_with_one_seed_are_identical(self, method, ensemble, images):
        first, second = (bacs.adapt(ensemble, images, method, batch_size=16) for _ in range(2))
        assert equal(weights(first), weights(second))
        assert torch.equal(first.predict(images), second.predict(images))

    def test_predictions_are_probabilities_in_the_order_of_the_images(self, method, ensemble, images):
        adapted = bacs.adapt(ensemble, images, method, batch_size=16)
        p = adapted.predict(images)
        assert p.shape == (40, 5)
        assert p.dtype == torch.float32
        torch.testing.assert_close(p.sum(dim=1), torch.ones(40))
        # In one batch statistics are the same in whatever order: a row must go with its image, and only with it.
        turned = torch.randperm(40, generator=torch.Generator().manual_seed(3))
        torch.testing.assert_close(adapted.predict(images[turned]), p[turned], atol=1e-5, rtol=1e-4)
        assert (p[turned] - p).abs().amax(dim=1).median() > 1e-3  # rows differ by much more than the tolerance
        # In several batches, drawn at random, an image that was marked is found in its own row.
        marked = images.clone()
        marked[7] += 3.0
        moved = (adapted.predict(marked, batch_size=16) - adapted.predict(images, batch_size=16)).abs().amax(dim=1)
        assert moved.argmax() == 7

    def test_global_random_state_stays_as_it_was(self, method, ensemble, images):
        before = torch.get_rng_state()
        bacs.adapt(ensemble, images, method).predict(images)
        bacs.stream(ensemble, method).step(images)
        assert torch.equal(before, torch.get_rng_state())

    def test_reset_is_bit_for_bit(self, method, ensemble, images):
        stream = bacs.stream(ensemble, method, learning_rate=0.1)
        first = [stream.step(batch) for batch in images.split(16)]
        stream.reset()
        again = [stream.step(batch) for batch in images.split(16)]
        assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))

    def test_one_run_gives_the_single_rows_and_the_ensemble_row(self, method, ensemble, images, labels):
        result = bacs.evaluate(ensemble, images, labels, method, batch_size=16)
        adapted = bacs.adapt(ensemble, images, method, batch_size=16)
        p = adapted.predict(images, batch_size=16)
        assert result.ensemble["nll"] == pytest.approx(bacs.metrics.nll(p, labels), rel=1e-5)
        for index, scores in enumerate(result.members):
            alone = bacs.adapt(bacs.Ensemble([ensemble.members[index]]), images, method, batch_size=16)
            expected = bacs.metrics.brier(alone.predict(images, batch_size=16), labels)
            assert scores["brier"] == pytest.approx(expected, rel=1e-5)
        mean = sum(scores["brier"] for scores in result.members) / 3
        assert result.single["brier"] == pytest.approx(mean)

    def test_every_form_of_images_gives_the_same_predictions(self, method, ensemble, images):
        forms = [images, images.numpy(), TensorDataset(images, torch.zeros(40)), list(images)]
        results = [bacs.adapt(ensemble, form, method, batch_size=16).predict(form, batch_size=16) for form in forms]
        assert all(torch.equal(results[0], other) for other in results[1:])
        loader = DataLoader(TensorDataset(images, torch.zeros(40)), batch_size=40)
        whole = bacs.adapt(ensemble, images, method, batch_size=40).predict(images, batch_size=40)
        loaded = bacs.adapt(ensemble, loader, method).predict(loader)
        torch.testing.assert_close(whole, loaded, atol=1e-5, rtol=1e-4)

    def test_an_online_evaluation_is_the_stream(self, method, ensemble, images, labels):
        result = bacs.evaluate(ensemble, images, labels, method, protocol="online", batch_size=16)
        stream = bacs.stream(ensemble, method)
        p = torch.cat([stream.step(batch) for batch in images.split(16)])
        torch.testing.assert_close(result.probabilities.float(), p)


def test_models_in_another_layout_and_with_expanded_constants_adapt(images):
    model = small_member().model.to(memory_format=torch.channels_last)
    model.register_buffer("constant", torch.ones(1, 1).expand(3, 4))
    ensemble = bacs.Ensemble([bacs.Member(model, flat.init(read(model)))])
    adapted = bacs.adapt(ensemble, images, "bacs-no-posterior", batch_size=16).members[0].model
    assert not equal([read(model)], [read(adapted)])
    assert all(p.is_contiguous() for p in adapted.parameters())
    assert torch.equal(adapted.constant, torch.ones(3, 4))


def test_predictions_may_have_larger_batches_than_steps(ensemble, images, labels):
    how = {"batch_size": 8, "learning_rate": 0.05}
    found = bacs.evaluate(ensemble, images, labels, "bacs", predict_batch_size=20, **how).probabilities
    adapted = bacs.adapt(ensemble, images, "bacs", **how)
    torch.testing.assert_close(found.float(), adapted.predict(images, batch_size=20))
    assert not torch.allclose(found.float(), adapted.predict(images, batch_size=8), atol=1e-3)
    with pytest.raises(ValueError, match="predict_batch_size must be at least 1, got 0"):
        bacs.evaluate(ensemble, images, labels, "bacs", predict_batch_size=0)
    with pytest.raises(ValueError, match="predict_batch_size belongs to protocol='offline'"):
        bacs.evaluate(ensemble, images, labels, "bacs", protocol="online", predict_batch_size=20)


def test_vanilla_is_the_mean_of_softmaxes(ensemble, images):
    expected = torch.stack([m.model(images).softmax(dim=1) for m in ensemble.members]).mean(dim=0)
    torch.testing.assert_close(bacs.adapt(ensemble, images, "vanilla").predict(images), expected.detach())
    torch.testing.assert_close(ensemble.predict(images), expected.detach())


def test_bn_is_the_forward_pass_of_training_mode(ensemble, images):
    models = [copy.deepcopy(m.model).train() for m in ensemble.members]
    expected = torch.stack([model(images).softmax(dim=1) for model in models]).mean(dim=0).detach()
    torch.testing.assert_close(bacs.adapt(ensemble, images, "bn").predict(images), expected, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("posterior", [swag_diag, swag_low_rank])
def test_a_huge_posterior_weight_keeps_the_parameters_at_the_mean(images, posterior):
    ensemble = bacs.Ensemble([small_member(module=posterior)])
    adapted = bacs.adapt(ensemble, images, "bacs", posterior_weight=1e12, learning_rate=0.1, batch_size=16)
    mean = ensemble.members[0].posterior.mean
    for name, value in read(adapted.members[0].model).items():
        torch.testing.assert_close(value.double(), mean[name], atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("step", ["proximal", "gradient"])
def test_zero_posterior_weight_is_bacs_without_posterior_exactly(ensemble, images, step):
    zero = bacs.adapt(ensemble, images, "bacs", posterior_weight=0, posterior_step=step, batch_size=16)
    none = bacs.adapt(ensemble, images, "bacs-no-posterior", batch_size=16)
    assert equal(weights(zero), weights(none))


def test_the_posterior_holds_the_weights_back(ensemble, images):
    def distance(adapted):
        pairs = zip(adapted.members, ensemble.members, strict=True)
        return sum((p - read(b.model)[n]).square().sum() for a, b in pairs for n, p in read(a.model).items())

    free = bacs.adapt(ensemble, images, "bacs-no-posterior", learning_rate=0.1, epochs=3)
    held = bacs.adapt(ensemble, images, "bacs", learning_rate=0.1, epochs=3, posterior_weight=1e-3)
    assert distance(held) < 0.5 * distance(free)


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_the_proximal_step_stays_finite_where_the_gradient_step_explodes(images, optimizer):
    member = small_member()
    tiny = {name: torch.full_like(s, 5e-12) for name, s in member.posterior.sum_square_deviation.items()}
    tight = bacs.Ensemble([replace(member, posterior=member.posterior._replace(sum_square_deviation=tiny))])
    adapted = bacs.adapt(tight, images, "bacs", batch_size=8, optimizer=optimizer, epochs=3, posterior_weight=1e-2)
    assert all(torch.isfinite(p).all() for p in read(adapted.members[0].model).values())
    if optimizer == "sgd":
        with pytest.raises(bacs.BacsError, match="smaller learning_rate helps"):
            bacs.adapt(tight, images, "bacs", batch_size=8, posterior_step="gradient", epochs=3, posterior_weight=1e-2)


def test_entropy_falls_by_adaptation(ensemble, images):
    def entropy(adapted):
        p = torch.stack([adapted.predict_member(i, images) for i in range(3)])
        return -(p * p.log()).sum(dim=-1).mean()

    before = bacs.adapt(ensemble, images, "bn")
    for method in ("tent", "bacs-no-posterior"):
        assert entropy(bacs.adapt(ensemble, images, method, learning_rate=0.05, epochs=3)) < entropy(before)


def test_a_stream_equals_the_hand_written_loop(ensemble, images):
    """TENT by hand: torch's batch norm in training mode, torch's SGD on scales and shifts, predict before the step."""
    stream = bacs.stream(ensemble, "tent", learning_rate=0.1)
    models = [copy.deepcopy(m.model).train() for m in ensemble.members]
    affine = [[p for m in model.modules() if isinstance(m, nn.BatchNorm2d) for p in m.parameters()] for model in models]
    optimizers = [torch.optim.SGD(p, lr=0.1, momentum=0.9) for p in affine]
    for batch in images.split(16):
        rows = []
        for model, optimizer in zip(models, optimizers, strict=True):
            p = model(batch).softmax(dim=1)
            rows.append(p.detach())
            optimizer.zero_grad()
            (-(p * p.log()).sum(dim=1).mean()).backward()
            optimizer.step()
        torch.testing.assert_close(stream.step(batch), torch.stack(rows).mean(dim=0), atol=1e-5, rtol=1e-4)
    assert stream.steps == 3


def test_a_fraction_of_an_epoch_adapts_to_that_part_of_the_images(ensemble, images):
    half = torch.randperm(len(images), generator=torch.Generator().manual_seed(5))[: len(images) // 2]
    loader = DataLoader(TensorDataset(images[half]), batch_size=8)  # keeps its order
    how = {"batch_size": 8, "learning_rate": 0.05, "seed": 5}
    assert equal(
        weights(bacs.adapt(ensemble, images, "bacs", epochs=0.5, **how)),
        weights(bacs.adapt(ensemble, loader, "bacs", **how)),
    )
    met = []
    bacs.adapt(ensemble, images, "bacs", epochs=1.5, on_batch=met.append, **how)
    assert sum(met) == 1.5 * len(images) * len(ensemble)


def test_the_last_partial_batch_is_used(ensemble, images):
    seen = []
    bacs.adapt(ensemble, images, "tent", batch_size=16, on_batch=seen.append)
    assert sorted(seen) == [8] * 3 + [16] * 6


def test_accumulated_statistics_let_single_images_be_predicted(ensemble, images):
    adapted = bacs.adapt(ensemble, images, "bacs", statistics="accumulated", batch_size=20)
    together = adapted.predict(images)
    alone = torch.cat([adapted.predict(image[None]) for image in images])
    torch.testing.assert_close(together, alone, atol=1e-5, rtol=1e-4)
    for member, source in zip(adapted.members, ensemble.members, strict=True):
        assert not torch.equal(member.model.norm.running_mean, source.model.norm.running_mean)


def test_images_sorted_by_class_do_not_spoil_batch_statistics(ensemble):
    dark_then_bright = torch.cat([torch.randn(32, 3, 12, 12), torch.randn(32, 3, 12, 12) + 4])
    adapted = bacs.adapt(ensemble, dark_then_bright, "bn", batch_size=32)
    one_batch = adapted.predict(dark_then_bright, batch_size=64)
    sliced = torch.cat([adapted.predict(part, batch_size=32) for part in dark_then_bright.split(32)])
    drawn = adapted.predict(dark_then_bright, batch_size=32)
    assert (drawn - one_batch).abs().mean() < 0.5 * (sliced - one_batch).abs().mean()


def test_a_masked_class_takes_no_part(ensemble, images):
    mask = torch.tensor([True, False, True, True, False])
    for method in METHODS:
        p = bacs.adapt(ensemble, images, method, class_mask=mask).predict(images)
        assert (p[:, ~mask] == 0).all()
        torch.testing.assert_close(p.sum(dim=1), torch.ones(40))
    expected = torch.stack([m.model(images)[:, mask].softmax(dim=1) for m in ensemble.members]).mean(dim=0)
    actual = bacs.adapt(ensemble, images, "vanilla", class_mask=mask).predict(images)
    torch.testing.assert_close(actual[:, mask], expected.detach())


def test_a_method_of_ones_own_with_an_objective_of_ones_own(ensemble, images):
    def pull_to_class_zero(logits):
        return -logits.log_softmax(dim=1)[:, 0].mean()

    method = bacs.Method(adapts="all", objective=pull_to_class_zero, posterior="flat")
    before = bacs.adapt(ensemble, images, "bn").predict(images)[:, 0].mean()
    after = bacs.adapt(ensemble, images, method, learning_rate=0.05, epochs=5).predict(images)[:, 0].mean()
    assert after > before + 0.1


def flat_ensemble(model):
    return bacs.Ensemble([bacs.Member(model.eval(), flat.init(read(model)))])


class TestModelsOfEveryKind:
    def test_a_model_without_batch_norm_adapts_its_layer_norm(self):
        model = nn.Sequential(nn.Flatten(), nn.Linear(48, 8), nn.LayerNorm(8), nn.ReLU(), nn.Linear(8, 4))
        images = torch.randn(30, 3, 4, 4)
        for method in METHODS:
            adapted = bacs.adapt(flat_ensemble(model), images, method, learning_rate=0.1)
            changed = {n for n, p in read(adapted.members[0].model).items() if not torch.equal(p, read(model)[n])}
            selected = {None: set(), "norm_affine": {"2.weight", "2.bias"}, "all": set(read(model))}
            assert changed == selected[bacs.METHODS[method].adapts]

    def test_a_model_without_any_norm_cannot_run_tent_and_says_so(self):
        model = nn.Sequential(nn.Flatten(), nn.Linear(48, 4))
        with pytest.raises(ValueError, match="Sequential has no parameter to adapt: the method adapts 'norm_affine'"):
            bacs.adapt(flat_ensemble(model), torch.randn(8, 3, 4, 4), "tent")

    def test_frozen_parameters_stay_and_keep_their_flag(self, images):
        model = small_model()
        model.head.weight.requires_grad_(False)
        adapted = bacs.adapt(flat_ensemble(model), images, "bacs-no-posterior", learning_rate=0.1).members[0].model
        assert torch.equal(adapted.head.weight, model.head.weight)
        assert not torch.equal(adapted.head.bias, model.head.bias)
        assert [p.requires_grad for p in adapted.parameters()] == [p.requires_grad for p in model.parameters()]

    def test_shared_parameters_stay_shared(self):
        first = nn.Linear(6, 6)
        second = nn.Linear(6, 6)
        second.weight = first.weight
        model = nn.Sequential(first, nn.BatchNorm1d(6), nn.ReLU(), second)
        adapted = bacs.adapt(flat_ensemble(model), torch.randn(20, 6), "bacs", learning_rate=0.1).members[0].model
        assert adapted[0].weight is adapted[3].weight
        assert not torch.equal(adapted[0].weight, model[0].weight)

    @pytest.mark.parametrize("method", METHODS)
    def test_float64_stays_float64(self, method, images):
        member = small_member()
        ensemble = bacs.Ensemble([replace(member, model=member.model.double())])
        adapted = bacs.adapt(ensemble, images, method)
        assert adapted.members[0].like.dtype == torch.float64
        assert adapted.predict(images).dtype == torch.float64

    @pytest.mark.parametrize("method", METHODS)
    def test_bfloat16_is_adapted_in_float32(self, method, images):
        member = small_member()
        ensemble = bacs.Ensemble([replace(member, model=member.model.bfloat16())])
        adapted = bacs.adapt(ensemble, images, method)
        assert adapted.members[0].like.dtype == torch.float32
        assert ensemble.members[0].like.dtype == torch.bfloat16
        torch.testing.assert_close(adapted.predict(images).sum(dim=1), torch.ones(40))

    def test_one_image_works_where_it_has_pixels_to_average_and_says_why_not_where_not(self, ensemble, images):
        assert bacs.stream(ensemble, "tent").step(images[:1]).shape == (1, 5)
        model = nn.Sequential(nn.Linear(6, 6), nn.BatchNorm1d(6), nn.Linear(6, 3))
        with pytest.raises(ValueError, match="batch statistics need more than one value per channel"):
            bacs.stream(flat_ensemble(model), "tent").step(torch.randn(1, 6))

    def test_an_output_object_with_logits(self, images):
        class Output:
            def __init__(self, logits):
                self.logits = logits

        class Wrapped(nn.Module):
            def __init__(self):
                super().__init__()
                self.inner = small_model()

            def forward(self, x):
                return Output(self.inner(x))

        p = bacs.adapt(flat_ensemble(Wrapped()), images, "bn").predict(images)
        torch.testing.assert_close(p, bacs.adapt(flat_ensemble(small_model()), images, "bn").predict(images))

    def test_uint8_images_go_through_the_members_preprocessing(self):
        pixels = torch.randint(0, 256, (20, 12, 12, 3), dtype=torch.uint8)
        preprocessing = bacs.Preprocessing((0.4, 0.5, 0.6), (0.2, 0.25, 0.3))
        ensemble = bacs.Ensemble([replace(small_member(), preprocessing=preprocessing)])
        mean, std = torch.tensor(preprocessing.mean), torch.tensor(preprocessing.std)
        floats = ((pixels / 255 - mean) / std).permute(0, 3, 1, 2)
        for method in METHODS:
            torch.testing.assert_close(
                bacs.adapt(ensemble, pixels, method).predict(pixels),
                bacs.adapt(ensemble, floats, method).predict(floats),
                atol=1e-5,
                rtol=1e-4,
            )


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("work", [bacs.adapt, bacs.evaluate])
def test_no_more_members_are_at_hand_than_threads_and_those_that_take_turns(images, labels, monkeypatch, work, threads):
    """Gradients, momentum and the posterior's working copy do not grow with members: five on two threads are three.

    Those that do not divide evenly among the threads take turns with the others (`bacs.threads`).
    """
    ensemble = bacs.Ensemble([small_member(seed) for seed in range(5)])
    alive, most, turn = weakref.WeakSet(), [], threading.Lock()
    original = prepare.Descent

    def counted(*arguments, **options):
        with turn:
            gc.collect()
            made = original(*arguments, **options)
            alive.add(made)
            most.append(len(alive))
        return made

    monkeypatch.setattr(prepare, "Descent", counted)
    torch.set_num_threads(threads)
    try:
        work(ensemble, images, *([labels] if work is bacs.evaluate else []), "bacs")
    finally:
        torch.set_num_threads(1)
    assert len(most) == len(ensemble)
    assert max(most) <= threads + len(ensemble) % threads
