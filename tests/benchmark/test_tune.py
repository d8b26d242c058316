"""Tuning: the choice, what is refused, and the figure."""

import io
import math
import tomllib

import numpy as np
import pytest
from rich.console import Console

from bacs.benchmark import plan, records, tune
from bacs.benchmark.recipe import parse as parse_sweep
from bacs.benchmark.sweep import about, run_cells
from bacs.corruptions import VALIDATION
from bacs.engine import Place
from bacs.errors import RecipeError, RunError
from bacs.metrics import SCORES
from bacs.report.heat_map import heat_map

LEAST = {"data": "cifar10-c", "grid": {"learning_rate": [0.1, 0.2, 0.3], "posterior_weight": [1.0, 2.0]}}


def made_up(recipe, score):
    """Records of a grid in which `score(shift, learning_rate, posterior_weight)` is the ensemble's NLL."""
    return [
        cell.identity()
        | {"error": None, "ensemble": {"nll": score(cell.shift, *(cell.settings[name] for name in tune.GRID))}}
        for cell in tune.cells(recipe)
    ]


def test_the_grid_is_run_on_every_validation_corruption():
    recipe = tune.parse(LEAST)
    cells = tune.cells(recipe)
    assert len(cells) == 3 * 2 * 4
    assert {cell.shift for cell in cells} == {f"cifar10-c/{name}/5" for name in VALIDATION}
    assert len({cell.id for cell in cells}) == len(cells)
    assert {tuple(cell.settings[name] for name in tune.GRID) for cell in cells} == {
        (rate, weight) for rate in (0.1, 0.2, 0.3) for weight in (1.0, 2.0)
    }


def test_the_best_mean_over_shifts_is_chosen():
    recipe = tune.parse(LEAST)
    # On one shift (0.1, 1) is far the best, on the others and on average (0.2, 2) is.
    scores = {("saturate", 0.1, 1.0): 0.5, ("spatter", 0.2, 2.0): 0.1}
    records = made_up(recipe, lambda shift, rate, weight: scores.get((shift.split("/")[1], rate, weight), 1.0))
    for record in records:
        if (record["settings"]["learning_rate"], record["settings"]["posterior_weight"]) == (0.2, 2.0):
            record["ensemble"]["nll"] -= 0.01
    choice = tune.choose(recipe, records)
    assert choice.settings == {"learning_rate": 0.2, "posterior_weight": 2.0}
    assert choice.score == pytest.approx((0.1 + 3 * 1.0) / 4 - 0.01)
    assert choice.scores.shape == (2, 3)
    assert choice.scores[0, 0] == pytest.approx((0.5 + 3) / 4)
    assert choice.at_edge == []


def test_accuracy_is_to_be_high():
    recipe = tune.parse(LEAST | {"criterion": "accuracy"})
    records = made_up(recipe, lambda shift, rate, weight: 0.0)
    for record in records:
        record["ensemble"] = {"accuracy": record["settings"]["learning_rate"]}
    choice = tune.choose(recipe, records)
    assert choice.settings["learning_rate"] == 0.3
    assert choice.at_edge == ["learning_rate"]


def test_a_point_that_failed_once_or_is_infinite_is_not_chosen():
    recipe = tune.parse(LEAST)
    records = made_up(recipe, lambda shift, rate, weight: math.inf if rate == 0.2 else rate + weight)
    failing = next(record for record in records if record["id"].endswith("learning_rate=0.1,posterior_weight=1.0"))
    failing["error"] = "DivergenceError: x"
    del failing["ensemble"]
    choice = tune.choose(recipe, records)
    assert choice.settings == {"learning_rate": 0.3, "posterior_weight": 1.0}
    assert np.isnan(choice.scores[0, 0])
    assert choice.scores[0, 1] == math.inf
    with pytest.raises(RunError, match="nothing to choose from"):
        tune.choose(recipe, [])


def test_the_fragment_is_a_table_that_a_sweep_takes():
    recipe = tune.parse(LEAST)
    choice = tune.choose(recipe, made_up(recipe, lambda shift, rate, weight: abs(rate - 0.2) + weight))
    table = tomllib.loads(tune.fragment(recipe, choice))
    assert table == {"method": {"bacs": {"learning_rate": 0.2, "posterior_weight": 1.0}}}
    swept = parse_sweep({"methods": ["bacs"], "shifts": ["mnist"]} | table)
    assert plan(swept)[0].settings["learning_rate"] == 0.2


def test_a_method_without_posterior_has_one_axis():
    recipe = tune.parse({"data": "cifar10-c", "method": "tent", "grid": {"learning_rate": [0.1, 0.2]}})
    assert len(tune.cells(recipe)) == 2 * 4
    records = [
        cell.identity() | {"error": None, "ensemble": {"nll": cell.settings["learning_rate"]}}
        for cell in tune.cells(recipe)
    ]
    assert tune.choose(recipe, records).settings == {"learning_rate": 0.1}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"corruptions": ["spatter", "fog"]}, "corruptions must be among .*; got fog, which is kept for the test"),
        ({"corruptions": ["mist"]}, "corruptions must be among .* got 'mist'"),
        ({"method": "vanilla"}, "method must be one of tent, bacs, bacs-no-posterior; got 'vanilla'"),
        ({"criterion": "nnl"}, r"criterion must be one of .* got 'nnl' \(did you mean 'nll'\?\)"),
        ({"grid": {"learning_rate": [0.1]}}, "grid lacks the key 'posterior_weight'"),
        ({"grid": {"learning_rate": 0.1, "posterior_weight": [1]}}, "grid.learning_rate must be a list of numbers"),
        ({"grid": LEAST["grid"] | {"learning_rate": [0.2, 0.1]}}, "in increasing order"),
        ({"grid": LEAST["grid"] | {"learning_rate": []}}, "must have one value or more"),
        ({"grid": LEAST["grid"] | {"learning_rate": [-1.0]}}, "learning_rate must be a finite number >= 0, got -1.0"),
        ({"method": "tent"}, "grid has an unknown key 'posterior_weight'"),
        ({"epochs": 0}, "epochs must be at least 1, got 0"),
        ({"learning_rate": 0.1}, "unknown key 'learning_rate'"),
    ],
)
def test_wrong_recipes_are_named(changes, message):
    with pytest.raises(RecipeError, match=message):
        tune.parse(LEAST | changes)


def test_every_point_has_its_own_record_with_its_own_settings(run_folder, tmp_path):
    grid = {"learning_rate": [0.001, 0.1], "posterior_weight": [0.0001, 1.0]}
    recipe = tune.parse({"data": "fashion-mnist-part-c", "corruptions": ["spatter"], "limit": 32, "grid": grid})
    described = about(recipe.as_json(), run_folder, kind="tune")
    options = {"varied": tune.GRID, "place": Place(workers=1), "console": Console(file=io.StringIO())}
    assert run_cells(tune.cells(recipe), described, run_folder, tmp_path / "out", **options).finished == 4
    assert run_cells(tune.cells(recipe), described, run_folder, tmp_path / "out", **options).skipped == 4
    found = records(tmp_path / "out")
    assert len({tuple(record["settings"].items()) for record in found}) == 4
    assert len({record["ensemble"]["nll"] for record in found}) == 4
    assert tune.choose(recipe, found).score == min(record["ensemble"]["nll"] for record in found)


def test_the_heat_map_shows_every_score_and_marks_the_best():
    scores = np.array([[0.5, np.nan, 0.25], [np.inf, 0.75, 1.0]])
    figure = heat_map(scores, [0.1, 0.2, 0.3], [1.0, 2.0], heading="NLL", score=SCORES["nll"])
    (axes,) = figure.axes
    texts = [text.get_text() for text in axes.texts]
    assert texts == ["0.5000", "failed", "0.2500", "∞", "0.7500", "1.0000"]
    (frame,) = axes.patches
    column, row = frame.get_x() + frame.get_width() / 2, frame.get_y() + frame.get_height() / 2
    assert (round(column), round(row)) == (2, 0)
    best = heat_map(scores, [0.1, 0.2, 0.3], [1.0, 2.0], heading="Acc", score=SCORES["accuracy"]).axes[0].patches[0]
    assert (round(best.get_x() + 0.5), round(best.get_y() + 0.5)) == (2, 1)
