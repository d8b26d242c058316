from pathlib import Path

import pytest
import torch

import bacs
from bacs import models
from bacs.errors import RecipeError
from bacs.training import Cosine, Linear
from bacs.training.recipe import parse, read

RECIPES = Path(bacs.__file__).parent / "recipes"
PAPER = {"cifar10": "cifar10", "cifar100": "cifar100", "svhn": "svhn", "cifar10-9": "cifar10-9", "imagenet": "imagenet"}
SMALL = [
    "cifar10-small",
    "cifar100-small",
    "svhn-small",
    "cifar10-9-small",
    "fashion-mnist-small",
    "mnist-small",
    "usps-small",
]
LEAST = {"data": "cifar10", "model": {"name": "resnet26"}, "epochs": 3}


def test_there_is_a_recipe_for_every_training_run_of_the_paper_and_small_ones():
    assert all((RECIPES / f"{name}.toml").exists() for name in [*PAPER, *SMALL])


@pytest.mark.parametrize("name", [*PAPER, *SMALL])
def test_recipes_are_valid_and_their_models_can_be_built(name):
    recipe = read(RECIPES / f"{name}.toml")
    arguments = {key: value for key, value in recipe.model.items() if key != "name"}
    with torch.device("meta"):  # no memory, no initialisation
        models.build(recipe.model["name"], classes=10, **arguments)


@pytest.mark.parametrize("name", ["cifar10", "cifar100", "svhn", "cifar10-9"])
def test_small_networks_are_trained_as_in_the_paper(name):
    recipe = read(RECIPES / f"{name}.toml")
    settings = recipe.settings(seed=0)
    assert recipe.data == PAPER[name]
    assert (recipe.members, recipe.model["width"]) == (10, 64)
    assert (settings.epochs, settings.batch_size, settings.momentum, settings.nesterov) == (300, 128, 0.9, False)
    assert settings.weight_decay == (5e-4 if name == "cifar100" else 3e-4)
    assert settings.schedule == Linear(start=150 / 300, end=270 / 300, final=0.1)
    assert settings.learning_rate == 0.1
    assert round(settings.collect_from * 300, 2) == 160
    assert settings.augment.padding == 4
    assert settings.augment.flip == (name != "svhn")


def test_imagenet_is_trained_as_in_the_paper():
    recipe = read(RECIPES / "imagenet.toml")
    settings = recipe.settings(seed=0)
    assert (recipe.members, recipe.model["name"], settings.epochs) == (10, "resnet50v2", 100)
    assert settings.learning_rate == pytest.approx(0.1 * settings.batch_size / 256)
    assert settings.learning_rate * settings.schedule(0.95) == pytest.approx(1e-4)
    assert settings.schedule == Cosine(warmup=5 / 100, end=90 / 100, final=0.00025)
    assert (settings.nesterov, settings.weight_decay, settings.decay_norm) == (True, 1e-4, False)
    assert (settings.collect_from, settings.collections_per_epoch) == (0.9, 4)
    smoothed = settings.objective(torch.zeros(1, 1000), torch.tensor([0]))
    assert settings.objective.keywords == {"label_smoothing": 0.1}
    assert smoothed.item() == pytest.approx(6.9078, abs=1e-3)


def test_the_small_cifar10_recipe_is_what_its_comment_says():
    recipe = read(RECIPES / "cifar10-small.toml")
    assert (recipe.members, recipe.model["width"], recipe.epochs) == (5, 16, 12)
    assert recipe.settings(0).schedule == Linear()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"lerning_rate": 0.1}, r"unknown key 'lerning_rate' \(did you mean 'learning_rate'\?\)"),
        ({"epochs": "many"}, "epochs must be a whole number, got 'many'"),
        ({"epochs": True}, "epochs must be a whole number, got True"),
        ({"epochs": 0}, "epochs must be a whole number >= 1, got 0"),
        ({"nesterov": 1}, "nesterov must be true or false, got 1"),
        ({"members": 0}, "members must be at least 1, got 0"),
        ({"limit": 1}, "limit must be at least 2, got 1"),
        ({"label_smoothing": 1.5}, "label_smoothing must be at least 0 and below 1, got 1.5"),
        ({"model": {"width": 4}}, "model must have a name"),
        ({"model": "resnet26"}, "model must be a table, got 'resnet26'"),
        ({"schedule": {"name": "liner"}}, r"schedule.name must be one of .* got 'liner' \(did you mean 'linear'\?\)"),
        ({"schedule": {"name": "linear", "begin": 0}}, "schedule has an unknown key 'begin'"),
        ({"schedule": {"name": "linear", "final": "low"}}, "schedule.final must be a number, got 'low'"),
        ({"augment": {"name": "pad_crop_flip", "padding": -1}}, "padding must be >= 0, got -1"),
        ({"preprocessing": {"mean": [0.5]}}, "preprocessing lacks the key 'std'"),
        ({"preprocessing": {"mean": [0.5], "std": [0]}}, "std must be > 0"),
        ({"posterior": "swag"}, "did you mean 'swag_diag'"),
    ],
)
def test_what_is_wrong_with_a_recipe_is_said(changes, message):
    with pytest.raises(RecipeError, match=message):
        parse(LEAST | changes)


def test_a_missing_key_is_named():
    with pytest.raises(RecipeError, match="the recipe lacks the key 'epochs'"):
        parse({"data": "cifar10", "model": {"name": "resnet26"}})


def test_errors_name_the_file(tmp_path):
    file = tmp_path / "mine.toml"
    with pytest.raises(RecipeError, match="mine.toml: there is no such recipe"):
        read(file)
    file.write_text("epochs = [")
    with pytest.raises(RecipeError, match="mine.toml: not a TOML file that can be read"):
        read(file)
    file.write_text("epoch = 3")
    with pytest.raises(RecipeError, match="mine.toml: the recipe has an unknown key 'epoch'"):
        read(file)


def test_a_recipe_survives_json():
    recipe = read(RECIPES / "imagenet.toml")
    assert parse(recipe.as_json()) == recipe
