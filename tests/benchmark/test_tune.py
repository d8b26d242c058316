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
from bacs.report.choice_figures import heat_map

LEAST = {"data": "cifar10-c", "grid": {"learning_rate": [0.1, 0.2, 0.3], "posterior_weight": [1.0, 2.0]}}


def made_up(recipe, score):
    """Records of a grid in which `score(shift, *settings)`, in the order of the grid, is the ensemble's NLL."""
    return [
        cell.identity()
        | {"error": None, "ensemble": {"nll": score(cell.shift, *(cell.settings[name] for name in recipe.grid))}}
        for cell in tune.cells(recipe)
    ]


def test_the_grid_is_run_on_every_validation_corruption():
    recipe = tune.parse(LEAST)
    cells = tune.cells(recipe)
    assert len(cells) == 3 * 2 * 4
    assert {cell.shift for cell in cells} == {f"cifar10-c/{name}/5" for name in VALIDATION}
    assert len({cell.id for cell in cells}) == len(cells)
    assert {tuple(cell.settings[name] for name in recipe.grid) for cell in cells} == {
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
    choice = tune.choose(recipe, made_up(recipe, lambda shift, rate: rate))
    assert choice.settings == {"learning_rate": 0.1}
    assert (choice.at_edge, tune.axes_of_two_values(recipe)) == ([], ["learning_rate"])
    plane = tune.plane(recipe, choice)
    assert plane.scores.tolist() == [[0.1, 0.2]]
    assert (plane.columns, plane.rows, plane.others) == (("learning_rate", [0.1, 0.2]), ("", [""]), [])


def test_every_numeric_setting_and_the_objective_may_be_varied_at_once():
    grid = {
        "objective": ["information_maximisation", "entropy + 0.5 * consistency"],
        "momentum": [0.0, 0.5, 0.9],
        "temperature": [1, 2],
        "batch_weight": [0.25, 0.5, 1.0],
    }
    recipe = tune.parse({"data": "cifar10-c", "posterior_weight": 0.3, "grid": grid})
    cells = tune.cells(recipe)
    assert len(cells) == len({cell.id for cell in cells}) == 4 * 2 * 3 * 2 * 3
    assert all(len(f"{cell.id}.json") < 200 and not set(cell.id) & set("/ *") for cell in cells)
    assert {cell.settings["posterior_weight"] for cell in cells} == {0.3}
    worth = {"information_maximisation": 0.0, "entropy + 0.5 * consistency": 1.0}

    def score(shift, objective, momentum, temperature, batch_weight):
        return worth[objective] + abs(momentum - 0.5) + temperature + (1 - batch_weight)

    choice = tune.choose(recipe, made_up(recipe, score))
    best = {"objective": "information_maximisation", "momentum": 0.5, "temperature": 1.0, "batch_weight": 1.0}
    assert (choice.settings, choice.score) == (best, 1.0)
    assert choice.at_edge == ["batch_weight"]
    assert tune.axes_of_two_values(recipe) == ["temperature"]
    assert tomllib.loads(tune.fragment(recipe, choice)) == {"method": {"bacs": best}}
    plane = tune.plane(recipe, choice)
    assert (plane.columns[0], plane.rows[0], plane.others) == ("objective", "momentum", ["temperature", "batch_weight"])
    # The best over temperature and batch weight is 1 + 0 at every place.
    np.testing.assert_allclose(plane.scores, [[1.5, 2.5], [1.0, 2.0], [1.4, 2.4]])


def test_a_place_shows_what_is_left_where_some_points_failed():
    recipe = tune.parse({"data": "cifar10-c", "grid": {**LEAST["grid"], "momentum": [0.0, 0.5]}})
    records = made_up(recipe, lambda shift, rate, weight, momentum: rate + weight + momentum)
    for record in records:
        settings = record["settings"]
        if settings["learning_rate"] == 0.1 or (settings["learning_rate"], settings["momentum"]) == (0.2, 0.0):
            record["error"] = "DivergenceError: x"
    choice = tune.choose(recipe, records)
    assert choice.settings == {"learning_rate": 0.3, "posterior_weight": 1.0, "momentum": 0.0}
    np.testing.assert_allclose(
        tune.plane(recipe, choice).scores, [[np.nan, 0.2 + 1 + 0.5, 0.3 + 1], [np.nan, 0.2 + 2 + 0.5, 0.3 + 2]]
    )


def test_the_order_of_axes_is_for_the_eye_alone():
    turned = LEAST | {"grid": dict(reversed(LEAST["grid"].items()))}
    one, other = tune.parse(LEAST), tune.parse(turned)
    assert {cell.id for cell in tune.cells(one)} == {cell.id for cell in tune.cells(other)}
    records = made_up(one, lambda shift, rate, weight: abs(rate - 0.2) + weight)
    first, second = tune.choose(one, records), tune.choose(other, records)
    assert first.settings == second.settings
    np.testing.assert_array_equal(tune.plane(one, first).scores, tune.plane(other, second).scores.T)


def test_a_method_that_adapts_no_weight_has_settings_too():
    recipe = tune.parse({"data": "cifar10-c", "method": "bn", "grid": {"batch_weight": [0.5, 1.0]}})
    assert {(cell.epochs, cell.cost) for cell in tune.cells(recipe)} == {(0, 1)}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"corruptions": ["spatter", "fog"]}, "corruptions must be among .*; got fog, which is kept for the test"),
        ({"corruptions": ["mist"]}, "corruptions must be among .* got 'mist'"),
        ({"method": "bax"}, r"method must be one of .* got 'bax' \(did you mean 'bacs'\?\)"),
        ({"method": "vanilla"}, "grid has an unknown key 'learning_rate'.*; it may have temperature, batch_weight"),
        ({"protocol": "continual"}, "protocol must be one of offline, online; got 'continual'"),
        ({"criterion": "nnl"}, r"criterion must be one of .* got 'nnl' \(did you mean 'nll'\?\)"),
        ({"grid": {}}, "grid must have one setting or more, of learning_rate, posterior_weight, "),
        ({"grid": {"view": ["mirrored"]}}, "grid has an unknown key 'view'"),
        ({"grid": {"temperature": ["agreement"]}}, "grid.temperature must be a list of numbers"),
        ({"grid": {"objective": [1.0]}}, "grid.objective must be a list of texts"),
        ({"grid": {"objective": ["entrophy"]}}, r"objective must be one of .* \(did you mean 'entropy'\?\)"),
        ({"grid": {"objective": ["entropy", "entropy"]}}, "grid.objective must have one value or more, each once"),
        ({"grid": {"batch_weight": [0.5, 1.5]}}, "batch_weight must be .* got 1.5"),
        ({"grid": {"learning_rate": 0.1, "posterior_weight": [1]}}, "grid.learning_rate must be a list of numbers"),
        ({"grid": LEAST["grid"] | {"learning_rate": [0.2, 0.1]}}, "in increasing order"),
        ({"grid": LEAST["grid"] | {"learning_rate": []}}, "must have one value or more"),
        ({"grid": LEAST["grid"] | {"learning_rate": [-1.0]}}, "learning_rate must be a finite number >= 0, got -1.0"),
        ({"method": "tent"}, "grid has an unknown key 'posterior_weight'"),
        ({"epochs": 0}, "epochs must be at least 1, got 0"),
        ({"learning_rate": 0.1}, "learning_rate must stand in the grid or beside it, not both"),
    ],
)
def test_wrong_recipes_are_named(changes, message):
    with pytest.raises(RecipeError, match=message):
        tune.parse(LEAST | changes)


def test_every_point_has_its_own_record_with_its_own_settings(run_folder, tmp_path):
    grid = {"learning_rate": [0.001, 0.1], "posterior_weight": [0.0001, 1.0]}
    recipe = tune.parse({"data": "fashion-mnist-part-c", "corruptions": ["spatter"], "limit": 32, "grid": grid})
    described = about(recipe.as_json(), run_folder, kind="tune")
    options = {"varied": tuple(grid), "place": Place(workers=1), "console": Console(file=io.StringIO())}
    assert run_cells(tune.cells(recipe), described, run_folder, tmp_path / "out", **options).finished == 4
    assert run_cells(tune.cells(recipe), described, run_folder, tmp_path / "out", **options).skipped == 4
    found = records(tmp_path / "out")
    assert len({tuple(record["settings"].items()) for record in found}) == 4
    assert len({record["ensemble"]["nll"] for record in found}) == 4
    assert tune.choose(recipe, found).score == min(record["ensemble"]["nll"] for record in found)


def test_the_heat_map_shows_every_score_and_marks_the_best():
    scores = np.array([[0.5, np.nan, 0.25], [np.inf, 0.75, 1.0]])
    plane = tune.Plane(scores, ("objective", ["entropy", "consistency", "x"]), ("posterior_weight", [1e-5, 2.0]), [])
    (axes,) = heat_map(plane, SCORES["nll"], heading="NLL").axes
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("objective", "posterior weight")
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["entropy", "consistency", "x"]
    assert [tick.get_text() for tick in axes.get_yticklabels()] == ["1e-05", "2"]
    texts = [text.get_text() for text in axes.texts]
    assert texts == ["0.5000", "failed", "0.2500", "∞", "0.7500", "1.0000"]
    (frame,) = axes.patches
    column, row = frame.get_x() + frame.get_width() / 2, frame.get_y() + frame.get_height() / 2
    assert (round(column), round(row)) == (2, 0)
    (best,) = heat_map(plane, SCORES["accuracy"], heading="Acc").axes[0].patches
    assert (round(best.get_x() + 0.5), round(best.get_y() + 0.5)) == (2, 1)
