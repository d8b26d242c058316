"""The tables of docs/benchmark.md and docs/measurements/ are those of the records in results/."""

import json
from pathlib import Path

import auto_edges
import few_classes
import label_free_temperature
import model_tables
import one_network
import posterior_tables
import pytest
import rates_and_steps
import short_swag_recipes
import situations
import stream_tables
import tempered_entropy
import training_table
import tuning_tables
from benchmark_tables import PAGE, lines, marked
from pages import ROOT, with_table

import bacs
from bacs.benchmark import read, records

RECIPES = Path(bacs.__file__).parent / "recipes"


def test_the_page_shows_every_sweep_that_is_kept():
    kept = sorted(file.parent.name for file in (ROOT / "results").glob("*/sweep.json"))
    assert sorted(marked()) == kept


def test_the_table_of_tuning_is_what_its_records_hold():
    page = (ROOT / tuning_tables.PAGE).read_text()
    assert with_table(page, tuning_tables.TITLE, tuning_tables.table()) == page


def test_the_sweep_has_the_settings_that_the_searches_found():
    """Searches of one method are of its rate and weight, and then of its temperature; two are told in words alone."""
    recipe = read(RECIPES / "cifar10-c-pretrained.toml")
    swept = {own.get("objective", name): recipe.settings_of(name, own) for name, own in recipe.rows()}
    beyond = "information_maximisation + consistency"  # at the rate, weight and temperature of its first term alone
    searched = {"tent": "tent", "bacs": "bacs", "information-maximisation": beyond}
    known = {file: file.stem.removesuffix("-temperature") for file in tuning_tables.searches()}
    assert set(known.values()) == {*searched, "bacs-no-posterior", "objectives"}
    for file, name in known.items():
        choice = tuning_tables.chosen(file)
        assert choice.at_edge == []
        if name in searched:
            assert choice.settings.items() <= swept[searched[name]].items()


@pytest.mark.parametrize("name", marked())
def test_a_table_is_what_its_records_make_of_it(name):
    page = (ROOT / PAGE).read_text()
    assert with_table(page, name, lines(name)) == page


@pytest.mark.parametrize(("page", "tables"), [("models", model_tables.tables), ("posteriors", posterior_tables.tables)])
def test_other_pages_show_what_their_records_hold(page, tables):
    text = (ROOT / "docs" / "measurements" / f"{page}.md").read_text()
    assert len(tables()) >= 2
    for title, table in tables().items():
        assert with_table(text, title, table) == text, title


def test_the_readme_says_what_the_sweep_found():
    text = " ".join((ROOT / "README.md").read_text().split()).partition("Four published CIFAR-10 ResNets meet")[2]
    found = records(ROOT / "results" / "cifar10-c-pretrained")
    assert len(found) == 75
    rows = (("vanilla", None, "vanilla"), ("bn", None, "batch statistics"), ("tent", "entropy", "TENT"))
    further = ("bacs", "information_maximisation + consistency", "by information maximisation and consistency")
    bacs_rows = (("bacs", "entropy", "BACS"), further)
    for method, objective, label in (*rows, *bacs_rows):
        own = [r["ensemble"] for r in found if (r["method"], r["settings"].get("objective")) == (method, objective)]
        assert len(own) == 15
        accuracy, nll = (sum(each[name] for each in own) / 15 for name in ("accuracy", "nll"))
        assert f"{label} {100 * accuracy:.1f} %, {nll:.3f}" in text


def test_the_readme_says_what_the_digits_showed():
    text = " ".join((ROOT / "README.md").read_text().split()).partition("learnt the digits of USPS")[2]
    found = {(r["method"], r["epochs"]): r["ensemble"] for r in records(ROOT / "results" / "usps-mnist")}
    rows = (("vanilla", 0, "Vanilla"), ("bn", 0, "batch statistics"), ("tent", 1, "TENT"), ("bacs", 1, "BACS"))
    for method, epochs, label in (*rows, ("auto", 1, "`auto`")):
        scores = found[method, epochs]
        assert f"{label} {100 * scores['accuracy']:.1f} %, {scores['nll']:.3f}" in text


def test_the_readme_says_what_the_situations_showed():
    text = " ".join((ROOT / "README.md").read_text().split())
    records = situations.stored("four-resnets").values()
    assert len(records) == 66
    for method, label in (("vanilla", "vanilla"), ("bn", "batch statistics"), ("auto", "`auto`")):
        accuracy, nll = (sum(r["scores"][method][name] for r in records) / 66 for name in ("accuracy", "nll"))
        assert f"{label} {100 * accuracy:.1f} %, {nll:.3f}" in text
    worst = min(r["scores"]["auto"]["accuracy"] - r["scores"]["vanilla"]["accuracy"] for r in records)
    assert worst > -0.0101  # of 1,000 images


def test_the_table_of_training_is_what_the_run_and_the_sweep_hold():
    page = (ROOT / training_table.PAGE).read_text()
    assert with_table(page, training_table.TITLE, training_table.lines()) == page


def test_the_table_of_few_classes_is_what_its_record_holds():
    page = (ROOT / "docs" / "measurements" / "adapt.md").read_text()
    found = few_classes.table(json.loads(few_classes.RESULT.read_text())["records"])
    assert len(found) == 2 + 25
    assert with_table(page, "few classes", found) == page


def test_the_table_of_temperatures_is_what_its_sweeps_hold():
    page = (ROOT / "docs" / "temperature.md").read_text()
    found = tempered_entropy.table()
    assert len(found) == 2 + len(tempered_entropy.ROWS)
    assert with_table(page, "tempered", found) == page


def test_the_tables_of_situations_are_what_their_records_hold():
    page = (ROOT / "docs" / "auto.md").read_text()
    assert len(situations.names()) == 66
    assert len(situations.tables()) >= 2
    alone = {"one network": one_network.table(json.loads(one_network.RECORD.read_text()))}
    for title, table in (situations.tables() | auto_edges.tables() | alone).items():
        assert with_table(page, title, table) == page, title


def test_the_tables_of_rates_are_what_their_records_hold():
    page = (ROOT / "docs" / "auto.md").read_text()
    found = rates_and_steps.tables()
    assert len(found) == 3
    for title, table in found.items():
        assert with_table(page, title, table) == page, title


def test_the_tables_of_temperatures_are_what_their_records_hold():
    page = (ROOT / "docs" / "temperature.md").read_text()
    found = label_free_temperature.tables()
    assert {title: len(table) for title, table in found.items()} == {"temperatures, four-resnets": 8}
    for title, table in found.items():
        assert with_table(page, title, table) == page, title


def test_the_table_of_short_swag_is_what_its_records_hold():
    page = (ROOT / short_swag_recipes.PAGE).read_text()
    found = short_swag_recipes.table()
    assert len(found) == 2 + len(short_swag_recipes.RECIPES)
    assert with_table(page, short_swag_recipes.TITLE, found) == page


def test_the_tables_of_streams_are_what_their_records_hold():
    page = (ROOT / stream_tables.PAGE).read_text()
    found = stream_tables.tables()
    assert {"world mixed", "world runs", "memory", "recovery", "cost"} <= found.keys()
    for title, table in found.items():
        assert with_table(page, title, table) == page, title
