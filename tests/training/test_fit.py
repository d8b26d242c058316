import numpy as np
import pytest
import torch

import bacs
from bacs.training import fit, initialised
from small import small_model


def test_fit_learns_and_returns_a_member_at_its_mean(train_data, other_data):
    counts, epochs = [], []
    member = fit(
        small_model(0, classes=3),
        *train_data,
        epochs=6,
        batch_size=16,
        learning_rate=0.05,
        collections_per_epoch=2,
        on_batch=counts.append,
        on_epoch=epochs.append,
    )
    images, labels = other_data
    accuracy = bacs.metrics.accuracy(bacs.Ensemble([member]).predict(images), torch.from_numpy(labels))
    assert accuracy > 0.9
    assert sum(counts) == 6 * 60
    assert [log.epoch for log in epochs] == [1, 2, 3, 4, 5, 6]
    assert member.posterior.count == epochs[-1].iterates == 6  # half epochs 3.5, 4, ..., 6
    assert epochs[0].loss > epochs[-1].loss


def test_equal_calls_give_equal_members(train_data):
    made = [
        fit(small_model(0, classes=3), *train_data, epochs=2, batch_size=16, collections_per_epoch=2).model
        for _ in range(2)
    ]
    for first, second in zip(made[0].state_dict().values(), made[1].state_dict().values(), strict=True):
        assert torch.equal(first, second)


def test_the_preprocessing_is_that_of_the_images(train_data):
    images, labels = train_data
    member = fit(small_model(0, classes=3), images, labels, epochs=2, collect_from=0)
    np.testing.assert_allclose(member.preprocessing.mean, (images / 255).mean(axis=(0, 1, 2)), rtol=1e-6)
    np.testing.assert_allclose(member.preprocessing.std, (images / 255).std(axis=(0, 1, 2)), rtol=1e-6)


def test_read_only_images_are_taken(train_data):
    images, labels = train_data
    images.flags.writeable = False
    fit(small_model(0, classes=3), images, labels, epochs=2, collect_from=0)


def test_a_low_rank_posterior_is_collected_by_name(train_data):
    member = fit(small_model(0, classes=3), *train_data, epochs=3, posterior="swag_low_rank", collect_from=0)
    assert member.posterior.deviations["conv.weight"].shape[0] == 3


def test_without_a_posterior_the_last_iterate_is_kept(train_data):
    model, logs = small_model(0, classes=3), []
    member = fit(model, *train_data, epochs=1, batch_size=16, posterior="flat", on_epoch=logs.append)
    assert isinstance(member.posterior, bacs.posteriors.flat.Flat)
    assert logs[0].iterates == 0
    assert not all(
        torch.equal(p, q) for p, q in zip(model.parameters(), small_model(0, classes=3).parameters(), strict=True)
    )


def test_initial_weights_depend_on_the_seed_alone():
    before = torch.get_rng_state()
    first, again, other = (
        initialised(lambda: bacs.models.build("resnet26", width=4, blocks=1), seed) for seed in (1, 1, 2)
    )
    assert torch.equal(first.conv.weight, again.conv.weight)
    assert not torch.equal(first.conv.weight, other.conv.weight)
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"epochs": 0}, "epochs must be a whole number >= 1, got 0"),
        ({"batch_size": 2.5}, "batch_size must be a whole number >= 1, got 2.5"),
        ({"learning_rate": float("nan")}, "learning_rate must be a finite number >= 0, got nan"),
        ({"momentum": 1.0}, "momentum must be at least 0 and below 1, got 1.0"),
        ({"nesterov": True, "momentum": 0}, "nesterov needs a momentum > 0"),
        ({"collect_from": 1.0}, "collect_from must be at least 0 and below 1, got 1.0"),
        ({"epochs": 2}, "a posterior needs at least 2 iterates, got 1 of epochs=2, collect_from=0.533"),
        ({"posterior": "swag"}, "posterior must be one of .*did you mean 'swag_diag'"),
        ({"precision": "float16"}, "precision must be one of float32, bfloat16; got 'float16'"),
        ({"labels": np.zeros(59, np.int64)}, r"labels must be whole numbers, one per image: 60 images, labels \[59\]"),
        ({"images": np.zeros((60, 3, 12, 12), np.float32)}, "images must be uint8, got torch.float32"),
        ({"images": np.zeros((60, 12, 12), np.uint8)}, r"images must be \[batch, height, width, channels\]"),
    ],
)
def test_wrong_arguments_are_named(train_data, changes, message):
    arguments = {"images": train_data[0], "labels": train_data[1], "epochs": 1} | changes
    with pytest.raises(ValueError, match=message):
        fit(small_model(0, classes=3), arguments.pop("images"), arguments.pop("labels"), **arguments)
