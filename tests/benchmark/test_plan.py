"""Cells of a recipe: which there are, what they are called, what they cost."""

import pytest

from bacs.benchmark import Cell, plan
from bacs.benchmark.cell import slug
from bacs.benchmark.recipe import parse, read
from bacs.benchmark.sweep import order_cells
from bacs.methods import METHODS


def cells_of(**changes):
    base = {"data": "cifar10-c", "corruptions": ["fog"], "methods": ["vanilla", "bn", "tent", "bacs"]}
    return [(cell.method, cell.protocol, cell.epochs) for cell in plan(parse(base | changes))]


def test_only_methods_that_adapt_have_epochs():
    assert cells_of(epochs=[1, 5]) == [
        ("vanilla", "offline", 0),
        ("bn", "offline", 0),
        ("tent", "offline", 1),
        ("tent", "offline", 5),
        ("bacs", "offline", 1),
        ("bacs", "offline", 5),
    ]


def test_a_variant_is_one_more_row_with_settings_of_its_own():
    table = {"data": "cifar10-c", "corruptions": ["fog"], "methods": ["bacs"], "protocols": ["offline", "online"]}
    variants = [{"method": "bacs", "reset_every": 10}, {"method": "bacs", "guard": True, "learning_rate": 0.5}]
    cells = plan(parse(table | {"variants": variants}))
    assert [cell.id.removeprefix("cifar10-c.fog.5--bacs--") for cell in cells] == [
        "offline--1",
        "online--1",
        "online--1--reset_every=10",  # offline it would be the first again
        "offline--1--guard=True,learning_rate=0.5",
        "online--1--guard=True,learning_rate=0.5",
    ]
    own = [
        (cell.settings.get("reset_every"), cell.settings.get("guard"), cell.settings["learning_rate"]) for cell in cells
    ]
    assert own == [(None, None, 1e-3), (None, False, 1e-3), (10, False, 1e-3), (None, None, 0.5), (None, True, 0.5)]


def test_the_rows_of_a_report_over_time_are_in_the_recipes_of_worlds():
    for name in ("cifar10-c-worlds", "cifar10-c-worlds-small"):
        recipe = read(name)
        rows = [(cell.method, cell.settings.get("reset_every")) for cell in plan(recipe)]
        every = recipe.variants[0]["reset_every"]
        plain = [(method, None) for method in ("vanilla", "bn", "tent", "bacs", "auto")]
        assert rows == [*plain, ("bacs", every)] * len(recipe.world)


def test_online_has_no_epochs_and_vanilla_no_protocol():
    assert cells_of(epochs=[1, 5], protocols=["online", "offline"]) == [
        ("vanilla", "online", 1),
        ("bn", "online", 1),
        ("bn", "offline", 0),
        ("tent", "online", 1),
        ("tent", "offline", 1),
        ("tent", "offline", 5),
        ("bacs", "online", 1),
        ("bacs", "offline", 1),
        ("bacs", "offline", 5),
    ]


def test_a_method_s_own_table_goes_before_the_recipe():
    recipe = parse(
        {
            "shifts": ["svhn->mnist"],
            "methods": ["tent", "bacs"],
            "epochs": [1, 10],
            "learning_rate": 0.5,
            "method": {"bacs": {"epochs": [2], "learning_rate": 0.25}},
        }
    )
    planned = [(cell.method, cell.epochs, cell.settings["learning_rate"]) for cell in plan(recipe)]
    assert planned == [("tent", 1, 0.5), ("tent", 10, 0.5), ("bacs", 2, 0.25)]


def test_settings_are_those_that_the_method_uses():
    settings = {cell.method: set(cell.settings) for cell in plan(parse({"shifts": ["mnist"], "methods": [*METHODS]}))}
    assert settings["vanilla"] == settings["bn"] == {"batch_size", "batch_weight", "statistics", "temperature"}
    assert settings["tent"] == settings["bacs-no-posterior"]
    assert settings["bacs"] - settings["tent"] == {"posterior_weight", "posterior_step", "min_variance"}


@pytest.mark.parametrize(
    ("method", "protocol", "epochs", "cost"),
    [
        ("bn", "offline", 0, 1),
        ("tent", "online", 1, 2),
        ("tent", "offline", 5, 5 * 2 + 1),
        ("bacs", "offline", 5, 5 * 3 + 1),
        ("vanilla", "online", 1, 1),
    ],
)
def test_the_cost_is_in_forward_passes(method, protocol, epochs, cost):
    assert Cell("mnist", method, protocol, epochs, {}).cost == cost


STREAMS = {"data": "cifar10-c", "corruptions": ["fog", "snow"], "methods": ["vanilla", "bacs"], "window": 50}


def test_a_stream_is_one_cell_for_each_method_and_severity():
    cells = plan(parse(STREAMS | {"protocols": ["continual"], "severities": [3, 5], "epochs": [1, 5]}))
    assert [(cell.id, cell.sequence) for cell in cells] == [
        (f"cifar10-c.continual.{level}--{method}--continual--1", (f"cifar10-c/fog/{level}", f"cifar10-c/snow/{level}"))
        for level in (3, 5)
        for method in ("vanilla", "bacs")
    ]
    assert [cell.cost for cell in cells] == [2, 2 * 3, 2, 2 * 3]  # two shifts; one pass, or there and back
    assert str(cells[1]) == "cifar10-c/continual/3 bacs continual"
    identity = cells[3].identity()
    assert (identity["data"], identity["corruption"], identity["severity"]) == ("cifar10-c", None, 5)
    assert (identity["window"], identity["sequence"]) == (50, ["cifar10-c/fog/5", "cifar10-c/snow/5"])
    assert not {"window", "sequence"} & Cell("mnist", "bn", "offline", 0, {}).identity().keys()


def test_severities_of_a_gradual_stream_rise_and_fall_through_each_corruption():
    cells = plan(parse(STREAMS | {"protocols": ["gradual"], "data": "imagenet-c", "published": True}))
    assert [cell.id for cell in cells] == [
        f"imagenet-c.gradual@published--{method}--gradual--1" for method in ("vanilla", "bacs")
    ]
    assert cells[0].sequence == tuple(
        f"imagenet-c/{name}/{severity}@published"
        for name in ("fog", "snow")
        for severity in (1, 2, 3, 4, 5, 4, 3, 2, 1)
    )
    assert cells[0].identity()["severity"] is None


def test_streams_come_beside_other_protocols():
    cells = plan(parse(STREAMS | {"protocols": ["offline", "continual", "online", "gradual"]}))
    assert [(cell.shift.partition("/")[2], cell.method, cell.protocol) for cell in cells] == [
        *(
            (f"{name}/5", *pair)
            for name in ("fog", "snow")
            for pair in (("vanilla", "offline"), ("bacs", "offline"), ("bacs", "online"))
        ),
        ("continual/5", "vanilla", "continual"),
        ("continual/5", "bacs", "continual"),
        ("gradual", "vanilla", "gradual"),
        ("gradual", "bacs", "gradual"),
    ]


def test_names_tell_shifts_apart():
    names = [
        "cifar10-c/fog/5",
        "cifar10-c/fog/5@published",
        "svhn->mnist",
        "cifar10/clean",
        "data/a b.npz",
        "data/a_b.npz",
    ]
    slugs = [slug(name) for name in names]
    assert slugs[:4] == ["cifar10-c.fog.5", "cifar10-c.fog.5@published", "svhn-to-mnist", "cifar10.clean"]
    assert len(set(slugs)) == len(names)
    assert not any(set(each) & set("/ >") for each in slugs)


def test_identity_takes_a_shift_s_name_apart():
    identity = Cell("imagenet-c/snow/3@published", "bn", "offline", 0, {}).identity()
    assert (identity["data"], identity["corruption"], identity["severity"]) == ("imagenet-c", "snow", 3)
    identity = Cell("cifar10/clean", "bn", "offline", 0, {}).identity()
    assert (identity["data"], identity["corruption"], identity["severity"]) == ("cifar10", None, None)


def test_cells_run_shift_by_shift_and_the_longest_first():
    cells = plan(parse({"shifts": ["mnist", "svhn"], "methods": ["bn", "tent", "bacs"], "epochs": [1, 2]}))
    ordered = order_cells(cells, workers=2)
    assert [cell.shift for cell in ordered] == ["mnist"] * 5 + ["svhn"] * 5
    assert [cell.cost for cell in ordered[:5]] == [7, 5, 4, 3, 1]
    assert sorted(cell.id for cell in ordered) == sorted(cell.id for cell in cells)


@pytest.mark.parametrize(("workers", "together"), [(1, 1), (3, 1), (4, 2), (7, 3), (9, 3), (100, 4)])
def test_the_last_shifts_begin_with_their_longest_cells_if_workers_are_many(workers, together):
    shifts = ["mnist", "svhn", "usps", "cifar10"]
    cells = plan(parse({"shifts": shifts, "methods": ["bn", "tent", "bacs"]}))
    ordered = order_cells(cells, workers)
    apart, end = ordered[: 3 * (4 - together)], ordered[3 * (4 - together) :]
    assert [cell.method for cell in apart] == ["bacs", "tent", "bn"] * (4 - together)
    assert [cell.method for cell in end] == ["bacs"] * together + ["tent"] * together + ["bn"] * together
    assert [cell.shift for cell in end] == shifts[-together:] * 3


def test_part_of_an_epoch_has_a_row_and_a_name_of_its_own():
    cells = plan(parse({"shifts": ["mnist"], "methods": ["bacs"], "epochs": [0.25, 1.0]}))
    assert [cell.id for cell in cells] == ["mnist--bacs--offline--0.25", "mnist--bacs--offline--1"]
    assert [str(cell) for cell in cells] == ["mnist bacs 0.25 epochs", "mnist bacs 1 epoch"]
