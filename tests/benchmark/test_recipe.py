"""Recipes of sweeps: every one that we ship, and what is said of a wrong one."""

from pathlib import Path

import pytest

import bacs
from bacs.benchmark import plan, read, tune
from bacs.benchmark.recipe import parse
from bacs.corruptions import TEST, VALIDATION
from bacs.errors import RecipeError
from bacs.toml import read as toml_table
from bacs.training import recipe as training

RECIPES = Path(bacs.__file__).parent / "recipes"
# 15 corruptions; vanilla and bn once, the others once for every number of epochs.
CELLS = {
    "cifar10-c": 15 * (1 + 1 + 2 + 2 + 1),  # tent and bacs with 1 and 5 epochs, bacs-no-posterior with 1
    "cifar100-c": 15 * (1 + 1 + 2 + 2 + 1),
    "cifar10-c-online": 15 * 5,
    "cifar100-c-online": 15 * 5,
    "imagenet-c": 15 * 5 * 4,
    "imagenet-c-online": 15 * 5 * 2,
    "imagenet-c-tfds": 15 * 5 * 4,
    "imagenet-r": 4,
    "cifar10-clean": 4,
    "cifar100-clean": 4,
    "cifar10-stl10": 4,
    "svhn-mnist": 1 + 1 + 2 + 2 + 2,  # 1 and 10 epochs, with and without posterior
    "cifar10.1": 5,
}
EPOCHS = {"cifar10-c": {0, 1, 5}, "cifar100-c": {0, 1, 5}, "svhn-mnist": {0, 1, 10}}
# The first try: 4 corruptions; vanilla once, the others offline and online. Pretrained networks: offline alone.
# Streams: one cell for each method, and each world.
CELLS_ALONE = {
    "fashion-mnist-c-small": 4 * (1 + 4 * 2),
    "cifar10-c-pretrained": 15 * 5,
    "cifar10-c-continual-small": 5,
    "cifar10-c-gradual-small": 5,
    "mnist-usps-small": 1 + 1 + 4 * 2,  # 1 and 5 epochs
    "usps-mnist-small": 1 + 1 + 4 * 2,
    "cifar10-c-worlds": 2 * 6,
    "cifar10-c-worlds-small": 4 * 6,
}
GRIDS = {"cifar10-tune": 4 * 5 * 4, "cifar10-tune-small": 4 * 3 * 3}
LEAST = {"methods": ["vanilla", "bacs"], "data": "cifar10-c"}


def of_verb(verb):
    marks = {"train": "model", "sweep": "methods", "tune": "grid"}
    return {file.stem for file in RECIPES.glob("*.toml") if marks[verb] in toml_table(file)}


def test_every_recipe_is_of_one_verb_and_known_here():
    assert of_verb("sweep") == {*CELLS, *(f"{name}-small" for name in CELLS), *CELLS_ALONE}
    assert of_verb("tune") == set(GRIDS)
    assert len(of_verb("sweep")) + len(of_verb("tune")) + len(of_verb("train")) == len(list(RECIPES.glob("*.toml")))


@pytest.mark.parametrize("name", CELLS)
def test_recipes_of_the_paper_have_the_cells_of_its_tables(name):
    cells = plan(read(RECIPES / f"{name}.toml"))
    assert len(cells) == CELLS[name]
    assert len({cell.id for cell in cells}) == len(cells)
    online = name.endswith("-online")
    assert {cell.protocol for cell in cells} == {"online" if online else "offline"}
    assert {cell.epochs for cell in cells} == ({1} if online else EPOCHS.get(name, {0, 1}))
    assert all(cell.limit is None for cell in cells)


@pytest.mark.parametrize("name", CELLS)
def test_a_small_twin_differs_in_the_number_of_images_alone(name):
    whole, small = read(RECIPES / f"{name}.toml"), read(RECIPES / f"{name}-small.toml")
    assert small.limit is not None
    differing = {key for key, value in whole.as_json().items() if small.as_json()[key] != value}
    assert differing == {"limit", "title"}


@pytest.mark.parametrize("name", CELLS_ALONE)
def test_recipes_beside_the_papers_have_the_cells_that_they_say(name):
    assert len(plan(read(RECIPES / f"{name}.toml"))) == CELLS_ALONE[name]


@pytest.mark.parametrize(("name", "shifts"), [("continual", 15), ("gradual", 15 * 9)])
def test_streams_go_through_every_test_corruption(name, shifts):
    for cell in plan(read(RECIPES / f"cifar10-c-{name}-small.toml")):
        assert len(cell.sequence) == shifts
        assert list(dict.fromkeys(shift.split("/")[1] for shift in cell.sequence)) == list(TEST)
        assert (cell.protocol, cell.limit) == (name, 500)


@pytest.mark.parametrize("name", ["cifar10-c", "cifar100-c", "cifar10-c-online", "cifar100-c-online"])
def test_small_networks_adapt_as_in_the_paper(name):
    recipe = read(RECIPES / f"{name}.toml")
    assert recipe.shift_names() == [f"{recipe.data}/{corruption}/5" for corruption in TEST]
    assert recipe.settings_of("bacs")["batch_size"] == 128
    assert recipe.settings_of("tent")["learning_rate"] == recipe.settings_of("bacs")["learning_rate"] == 1e-3
    assert recipe.settings_of("bacs")["posterior_weight"] == 1e-4


@pytest.mark.parametrize("name", ["imagenet-c", "imagenet-c-online", "imagenet-c-tfds", "imagenet-r"])
def test_imagenet_adapts_as_in_the_paper(name):
    recipe = read(RECIPES / f"{name}.toml")
    assert recipe.settings_of("bacs") | {"batch_size": 64, "learning_rate": 1e-4, "posterior_weight": 3e-4} == (
        recipe.settings_of("bacs")
    )
    assert (recipe.settings_of("tent")["learning_rate"], recipe.settings_of("tent")["batch_size"]) == (1e-3, 64)
    published = {shift.endswith("@published") for shift in recipe.shift_names()}
    assert published == {name in ("imagenet-c", "imagenet-c-online")}


@pytest.mark.parametrize("name", GRIDS)
def test_grids_are_on_the_validation_corruptions(name):
    cells = tune.cells(tune.read(RECIPES / f"{name}.toml"))
    assert len(cells) == len({cell.id for cell in cells}) == GRIDS[name]
    assert {cell.shift for cell in cells} == {f"cifar10-c/{corruption}/5" for corruption in VALIDATION}


@pytest.mark.parametrize(
    ("reader", "name", "message"),
    [
        (read, "cifar10", r"cifar10.toml: this is a recipe for bacs train, not for bacs sweep"),
        (read, "cifar10-tune", "this is a recipe for bacs tune, not for bacs sweep"),
        (training.read, "cifar10-c", "this is a recipe for bacs sweep, not for bacs train"),
        (tune.read, "cifar10-c", "this is a recipe for bacs sweep, not for bacs tune"),
        (read, "cifar10-d", "cifar10-d.toml: there is no such recipe"),
    ],
)
def test_a_recipe_of_another_verb_is_said_to_be_one(reader, name, message):
    with pytest.raises(RecipeError, match=message):
        reader(RECIPES / f"{name}.toml")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"method": {"bacs": {"lerning_rate": 0.1}}},
            r"method.bacs has an unknown key .* \(did you mean 'learning_rate'\?\)",
        ),
        ({"epoch": [1]}, r"unknown key 'epoch' \(did you mean 'epochs'\?\)"),
        ({"epochs": 1}, "epochs must be a list of numbers, got 1"),
        ({"epochs": [1, 0]}, r"epochs must be above 0 and finite, got \[1, 0\] for bacs"),
        ({"epochs": [1, 1]}, r"epochs must have one value or more, each once, got \[1, 1\]"),
        ({"methods": []}, r"methods must have one value or more, each once, got \[\]"),
        ({"methods": ["bax"]}, r"methods must be among .* got 'bax' \(did you mean 'bacs'\?\)"),
        ({"protocols": ["ofline"]}, r"got 'ofline' \(did you mean 'offline'\?\)"),
        ({"data": "cifar10"}, r"data must be among .* got 'cifar10' \(did you mean 'cifar10-c'\?\)"),
        ({"data": "svhn-c", "published": True}, "data of published files must be among"),
        ({"corruptions": ["mist"]}, "corruptions must be among .* got 'mist'"),
        ({"severities": [6]}, "severities must be 1..5, got 6"),
        ({"shifts": ["cifar10.1"]}, "must name its shifts by one of the keys 'shifts' and 'data'"),
        ({"limit": 0}, "limit must be at least 1, got 0"),
        ({"window": 500}, r"window belongs to the protocols continual, gradual, world, got \['offline'\]"),
        ({"window": 0, "protocols": ["continual"]}, "window must be at least 1, got 0"),
        (
            {"protocols": ["gradual"], "severities": [5]},
            "severities must be left out for protocol 'gradual', which goes through all five",
        ),
        ({"batch_size": 0}, "batch_size must be at least 1, got 0"),
        ({"learning_rate": -1.0}, "learning_rate must be a finite number >= 0, got -1.0"),
        ({"method": {"bacs": {"learning_rate": "low"}}}, "method.bacs.learning_rate must be a number, got 'low'"),
        ({"method": {"vanilla": {"learning_rate": 0.1}}}, "method.vanilla has an unknown key 'learning_rate'"),
        ({"reset_every": 5}, "reset_every must be left out for protocol 'offline': it is for streams, got 5"),
        ({"variants": [{"method": "bacs", "guard": True}]}, "guard must be left out for protocol 'offline'"),
        ({"variants": [{"reset_every": 5}]}, r"a table \[\[variants\]\] must name its method, got"),
        ({"variants": [{"method": "bax"}]}, r"variants\]\] must be among .* got 'bax' \(did you mean 'bacs'\?\)"),
        ({"variants": [{"method": "bacs"}]}, "variants must have one value or more, each once"),
        (
            {"variants": [{"method": "auto", "momentum": 0.5}]},
            r"a table \[\[variants\]\] has an unknown key 'momentum'",
        ),
        ({"variants": [{"method": "bacs", "momentum": "m"}]}, "variants.momentum must be a number, got 'm'"),
        (
            {"protocols": ["online"], "guard": True, "variants": [{"method": "bacs", "reset_every": 9}]},
            "reset_every must be left out with guard, which decides when to go back, got 9",
        ),
        ({"protocols": ["online"], "reset_every": 0}, "reset_every must be a whole number of steps, at least 1"),
        ({"method": {"tent": {}}}, r"tables \[method.<name>\] must be among vanilla, bacs; got 'tent'"),
    ],
)
def test_wrong_values_are_named(changes, message):
    with pytest.raises(RecipeError, match=message):
        parse(LEAST | changes)


def test_shifts_by_name_take_no_corruptions():
    with pytest.raises(RecipeError, match="severities belongs to 'data', not to 'shifts'"):
        parse({"methods": ["bn"], "shifts": ["cifar10.1"], "severities": [5]})


@pytest.mark.parametrize("protocol", ["continual", "gradual"])
def test_streams_are_of_corruptions(protocol):
    with pytest.raises(RecipeError, match=f"protocol '{protocol}' belongs to 'data', whose corruptions"):
        parse({"methods": ["bn"], "shifts": ["cifar10.1"], "protocols": ["online", protocol]})


def test_settings_from_another_file_go_before_the_recipe_s_own(tmp_path):
    (tmp_path / "chosen.toml").write_text("[method.bacs]\nlearning_rate = 0.01\n")
    recipe = read(RECIPES / "imagenet-r.toml", settings=tmp_path / "chosen.toml", limit=7)
    assert recipe.settings_of("bacs")["learning_rate"] == 0.01
    assert recipe.settings_of("bacs")["posterior_weight"] == 3e-4
    assert recipe.settings_of("tent")["learning_rate"] == 1e-3
    assert recipe.limit == 7
    (tmp_path / "wrong.toml").write_text("learning_rate = 0.01\n")
    with pytest.raises(RecipeError, match=r"wrong.toml: settings must be tables \[method.<name>\] and nothing else"):
        read(RECIPES / "imagenet-r.toml", settings=tmp_path / "wrong.toml")
