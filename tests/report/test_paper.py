"""The paper's figures, read a second time and held against what must be true of any scores."""

import math
import re
from decimal import Decimal
from pathlib import Path

import pytest

import bacs
from bacs.benchmark.cell import parts
from bacs.benchmark.plan import plan
from bacs.benchmark.recipe import read
from bacs.corruptions import TEST
from bacs.report import paper

# Number of rows and sum of each column, added up from the LaTeX source of the paper by another reading of it.
SUMS = {
    (1, "cifar10-c"): (10, "804.49 8.8467 3.0667 1.08583"),
    (1, "cifar100-c"): (10, "584.84 22.525 6.1914 2.03138"),
    (2, "imagenet-c"): (8, "438.22 18.604 4.7876 0.82823"),
    (3, "imagenet-r"): (8, "335.39 23.721 5.7626 0.62636"),
    (4, "cifar10-c"): (2, "171.95 1.1490 0.4134 0.12796"),
    (4, "cifar100-c"): (2, "131.65 4.588 1.0546 0.3259"),
    (5, "imagenet-c"): (4, "232.28 8.505 2.2847 0.49909"),
    (6, "cifar10"): (8, "766.09 1.2141 0.53643 0.152647"),
    (6, "cifar100"): (8, "633.23 7.2421 2.4682 0.71075"),
    (7, "imagenet-c"): (8, "457.12"),
    (8, "imagenet-c"): (8, "469.52 16.479 4.4329 0.77438"),
    (9, "stl10-9"): (7, "590.15 4.5864 1.7330 0.60948"),
    (10, "svhn->mnist"): (12, "986.69 9.6860 3.2673 1.02474"),
}
RECIPES = [
    file
    for file in sorted((Path(bacs.__file__).parent / "recipes").glob("*.toml"))
    if re.match(r"# Tables? \d+", file.read_text())
]
TABLES = {(table.number, table.data): table for table in paper.tables()}


def test_there_is_every_table_once():
    assert len(paper.tables()) == len(TABLES)
    assert TABLES.keys() == SUMS.keys()


@pytest.mark.parametrize("key", SUMS, ids=str)
def test_columns_have_the_papers_sums(key):
    rows, sums = SUMS[key]
    scores = list(TABLES[key].scores.values())
    assert len(scores) == rows
    columns = [sum(Decimal(row[name]) for row in scores) for name in scores[0]]
    assert columns == [Decimal(text) for text in sums.split()]


@pytest.mark.parametrize("key", SUMS, ids=str)
def test_an_ensemble_is_no_worse_than_its_members_on_average(key):
    # By Jensen's inequality, exactly so for NLL and Brier; a swapped row or column would break it.
    scores = TABLES[key].scores
    pairs = [
        (scores[method, "single", epochs], row) for (method, kind, epochs), row in scores.items() if kind == "ensemble"
        if (method, "single", epochs) in scores
    ]  # fmt: skip
    assert len(pairs) >= (0 if key[0] == 4 else 2)
    for name in ("nll", "brier"):
        assert all(float(ensemble[name]) <= float(single[name]) for single, ensemble in pairs if name in single)


@pytest.mark.parametrize("key", [key for key in SUMS if key[0] != 7], ids=str)
def test_scores_are_in_the_range_that_their_accuracy_allows(key):
    for row in TABLES[key].scores.values():
        error = 1 - float(row["accuracy"]) / 100
        assert 0 < error < 1
        # A wrong prediction has p(label) <= 1/2, and p(predicted) >= p(label).
        assert float(row["nll"]) >= error * math.log(2)
        assert 0.5 * error <= float(row["brier"]) <= 2
        assert 0 < float(row["ece"]) < 1


def test_figures_that_the_text_of_the_paper_speaks_of():
    assert TABLES[10, "svhn->mnist"].scores["bacs-no-posterior", "ensemble", 10]["accuracy"] == "93.03"
    assert TABLES[1, "cifar10-c"].scores["tent", "single", 5]["nll"] == "0.8483"
    online, offline = TABLES[5, "imagenet-c"].scores, TABLES[2, "imagenet-c"].scores
    assert all(float(online[row]["accuracy"]) < float(offline[row]["accuracy"]) for row in online)


def test_a_table_stands_beside_the_same_shifts_only():
    worst = {(name, 5) for name in TEST}
    every = {(name, severity) for name in TEST for severity in range(1, 6)}

    def number(*arguments, **options):
        found = paper.find_table(*arguments, **{"published": False} | options)
        return found and found.number

    assert number("cifar10-c", "offline", worst) == 1
    assert number("cifar10-c", "online", worst) == 4
    assert number("cifar10-c", "offline", every) is None
    assert number("cifar10-c", "offline", worst - {("fog", 5)}) is None
    assert number("cifar10", "offline", {(None, None)}) == 6
    assert number("imagenet-c", "offline", every, published=True) == 2
    assert number("imagenet-c", "offline", every, published=False) == 8
    assert number("imagenet-c", "offline", every, published=True, score="mce") == 7
    assert number("mnist", "offline", {(None, None)}) is None


def test_recipes_of_tables_are_found():
    assert len(RECIPES) >= 11


@pytest.mark.parametrize("file", RECIPES, ids=lambda file: file.stem)
def test_a_recipe_of_a_table_finds_that_table_beside_it(file):
    recipe = read(file)
    (protocol,) = recipe.protocols
    shifts = [parts(name) for name in recipe.shift_names()]
    (data,) = {name.removesuffix("/clean") for name, _, _ in shifts}
    cells = {(corruption, severity) for _, corruption, severity in shifts}
    table = paper.find_table(data, protocol, cells, published=recipe.published)
    assert table is not None
    number = re.match(r"# Tables? (\d+)", file.read_text())[1]
    assert table.number == int(number)
    planned = {(cell.method, 1 if protocol == "online" else cell.epochs) for cell in plan(recipe)}
    assert {(method, epochs) for method, _, epochs in table.scores} <= planned, "a row of the paper is not run"
