"""`with_fisher`: a posterior from source images, and what it says when they hold little information."""

import warnings
from dataclasses import replace

import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

import bacs
from bacs import posteriors
from bacs.parameters import read
from bacs.posteriors import fisher_diag, flat
from bacs.pretrained import squared_gradients, with_fisher
from small import small_model


@pytest.fixture
def member():
    model = small_model()
    return bacs.Member(model, flat.init(read(model)), bacs.Preprocessing((0.5,) * 3, (0.25,) * 3))


@pytest.fixture
def pixels():
    return torch.randint(0, 256, (20, 12, 12, 3), generator=torch.Generator().manual_seed(0), dtype=torch.uint8)


def test_precision_is_the_prior_plus_the_source_sets_fisher_information(member, pixels):
    done = with_fisher(member, pixels, source_size=10**6, prior_precision=0.5, batch_size=8)
    squares = squared_gradients(member.model, member.prepare(pixels))
    for name, precision in fisher_diag.precision(done.posterior).items():
        torch.testing.assert_close(precision, 0.5 + 10**6 / 20 * squares[name], rtol=1e-5, atol=1e-3)
    assert done.posterior.count == 20


def test_the_member_keeps_model_preprocessing_and_architecture(member, pixels):
    done = with_fisher(member, pixels, source_size=10**6)
    assert done.model is member.model
    assert done.preprocessing == member.preprocessing
    assert done.architecture == member.architecture
    assert isinstance(member.posterior, flat.Flat)


def test_parts_updated_by_hand_give_the_same_posterior(member, pixels):
    state = fisher_diag.init(read(member.model), source_size=10**6)
    for part in pixels.split(7):
        state = fisher_diag.update(state, squared_gradients(member.model, member.prepare(part)), len(part))
    whole = with_fisher(member, pixels, source_size=10**6).posterior
    for name, squares in whole.sum_squares.items():
        torch.testing.assert_close(squares, state.sum_squares[name], rtol=1e-5, atol=1e-9)


def test_labels_give_the_empirical_fisher(member, pixels):
    labels = torch.arange(20) % 5
    done = with_fisher(member, pixels, labels.numpy(), source_size=10**6)
    expected = squared_gradients(member.model, member.prepare(pixels), labels)
    for name, squares in done.posterior.sum_squares.items():
        torch.testing.assert_close(squares, expected[name], rtol=1e-5, atol=1e-9)


def test_many_classes_are_sampled_and_few_are_summed(pixels):
    for classes, expectation in ((20, "exact"), (21, "sampled")):
        model = small_model(classes=classes)
        plain = bacs.Member(model, flat.init(read(model)), bacs.Preprocessing((0.5,) * 3, (0.25,) * 3))
        chosen = with_fisher(plain, pixels, source_size=10**6).posterior
        named = with_fisher(plain, pixels, source_size=10**6, expectation=expectation).posterior
        assert all(torch.equal(chosen.sum_squares[name], named.sum_squares[name]) for name in chosen.mean)


def test_half_precision_weights_have_the_fisher_of_their_float32_values(member, pixels):
    model = small_model().bfloat16()
    half = bacs.Member(model, flat.init(read(model)), member.preprocessing)
    model32 = small_model().bfloat16().float()
    full = bacs.Member(model32, flat.init(read(model32)), member.preprocessing)
    actual, expected = (with_fisher(m, pixels, source_size=10**6).posterior for m in (half, full))
    assert next(iter(actual.mean.values())).dtype == torch.bfloat16
    for name in expected.mean:
        torch.testing.assert_close(actual.sum_squares[name], expected.sum_squares[name])


def test_little_information_is_said_in_words(member, pixels):
    with pytest.warns(UserWarning, match="mostly its prior: 100 % of the weights .* prior_precision=1e"):
        with_fisher(member, pixels, prior_precision=1e6)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with_fisher(member, pixels, source_size=10**7)


def test_a_saved_fisher_member_comes_back_and_adapts(member, pixels, tmp_path):
    ensemble = bacs.Ensemble([with_fisher(member, pixels, source_size=10**6)])
    ensemble.save(tmp_path / "run")
    again = bacs.load(tmp_path / "run")
    old, new = ensemble.members[0].posterior, again.members[0].posterior
    assert (new.count, new.source_size, new.prior_precision) == (20, 10**6, 1.0)
    assert all(torch.equal(old.sum_squares[name], new.sum_squares[name]) for name in old.mean)
    assert all(torch.equal(old.mean[name], new.mean[name]) for name in old.mean)
    settings = {"learning_rate": 0.01, "posterior_weight": 1e-5}
    expected, actual = (bacs.adapt(e, pixels, "bacs", **settings).predict(pixels) for e in (ensemble, again))
    assert torch.equal(expected, actual)


def test_the_default_weight_pulls_as_usual(member, pixels):
    done = with_fisher(member, pixels, source_size=10**6)
    assert done.posterior_scale == pytest.approx(2e5 / posteriors.precision_quantiles(done.posterior).median)
    assert posteriors.pull_quantiles(done).median == pytest.approx(0.2)
    again = with_fisher(replace(done, posterior_scale=7.0), pixels, source_size=10**6)
    assert again.posterior_scale == done.posterior_scale


def test_a_strong_posterior_weight_pins_the_weights(member, pixels):
    done = with_fisher(member, pixels, source_size=10**6)
    moved = {}
    for weight in (0.0, 1e6):
        adapted = bacs.adapt(bacs.Ensemble([done]), pixels, "bacs", learning_rate=0.1, posterior_weight=weight)
        after = read(adapted.members[0].model)
        moved[weight] = max((after[name] - p).abs().max().item() for name, p in read(member.model).items())
    assert moved[0.0] > 1e-3
    assert moved[1e6] < 1e-4 * moved[0.0]


def test_images_in_a_data_loader_are_fine_without_labels(member, pixels):
    loader = DataLoader(TensorDataset(pixels), batch_size=6)
    whole, parts = (with_fisher(member, images, source_size=10**6).posterior for images in (pixels, loader))
    for name, squares in whole.sum_squares.items():
        torch.testing.assert_close(parts.sum_squares[name], squares, rtol=1e-5, atol=1e-9)
    with pytest.raises(TypeError, match="labels need images in a known order"):
        with_fisher(member, loader, torch.zeros(20, dtype=torch.long))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"labels": torch.zeros(3, dtype=torch.long)}, "labels must be whole numbers, one per image: 20 images"),
        ({"labels": torch.full((20,), 7)}, "labels must be 0..4, got 7..7"),
        ({"expectation": "exat"}, "did you mean 'exact'"),
        ({"batch_size": 0}, "batch_size must be at least 1"),
    ],
)
def test_wrong_arguments_are_refused_by_name(member, pixels, arguments, message):
    with pytest.raises(ValueError, match=message):
        with_fisher(member, pixels, **arguments)
