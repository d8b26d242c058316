"""Records: whole or not there, with what JSON has no word for; folders that hold one sweep."""

import json
import math
from dataclasses import replace

import pytest

from bacs.benchmark import plan, store
from bacs.errors import RunError

RUN = {"sha256": "a" * 64, "members": 2, "name": "tiny"}


def about_of(recipe, **changes):
    return {"kind": "sweep", "recipe": json.loads(json.dumps(recipe.as_json())), "run": RUN} | changes


def finished(cell, **changes):
    scores = {"accuracy": 0.5, "nll": math.inf, "brier": 1.0, "ece": 0.1}
    scored = {"members": [scores, scores], "single": scores, "ensemble": scores, "run": RUN, "error": None}
    scored["windows"] = [{"shift": "fog", "ensemble": scores}]
    return cell.identity() | scored | changes


@pytest.fixture
def folder(tmp_path, recipe):
    """A sweep's folder with its first two cells finished and the third failed."""
    out, cells = tmp_path / "sweep", plan(recipe)
    store.begin(out, about_of(recipe))
    for cell in cells[:2]:
        store.write(out, finished(cell))
    store.write(out, cells[2].identity() | {"run": RUN, "error": "DataError: gone"})
    return out


def test_an_infinite_score_is_kept_without_infinity_in_the_file(folder):
    record = store.records(folder)[0]
    assert record["ensemble"]["nll"] == record["members"][1]["nll"] == math.inf
    assert record["windows"][0]["ensemble"]["nll"] == math.inf
    text = store.record_file(folder, record["id"]).read_text()
    assert "Infinity" not in text
    assert json.loads(text)["single"]["nll"] == "inf"


def test_what_is_not_a_number_is_never_stored(folder, recipe):
    cell = plan(recipe)[4]
    with pytest.raises(ValueError):
        store.write(folder, finished(cell, ensemble={"nll": math.nan}))
    assert not store.record_file(folder, cell.id).exists()


def test_a_failed_cell_is_not_finished(folder, recipe):
    cells = plan(recipe)
    assert store.check(folder, about_of(recipe), cells) == sorted(cell.id for cell in cells[:2])
    assert [store.is_finished(folder, cell) for cell in cells[:4]] == [True, True, False, False]


def test_a_folder_may_gain_cells(folder, recipe):
    more = replace(recipe, corruptions=("snow",), methods=("tent", "bn"), epochs=(3,), protocols=("online",), title="x")
    assert len(store.check(folder, about_of(more), plan(more))) == 2


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"seed": 1}, "seed is 0 there and 1 here"),
        ({"limit": None}, "limit is 32 there and None here"),
        ({"batch_size": 8}, "batch_size of (bn|vanilla) is 16 there and 8 here"),
        # No cell of the new recipe is there yet, but a table would average over both.
        ({"corruptions": ("snow",), "batch_size": 8}, "batch_size of (bn|vanilla) is 16 there and 8 here"),
    ],
)
def test_what_would_mix_two_sweeps_is_refused_by_name(folder, recipe, changes, message):
    other = replace(recipe, **changes)
    with pytest.raises(RunError, match=f"holds another sweep: {message}; choose another folder"):
        store.check(folder, about_of(other), plan(other))


@pytest.mark.parametrize(
    ("about", "message"),
    [
        ({"run": RUN | {"members": 3}}, "the run's members is 2 there and 3 here"),
        ({"run": RUN | {"sha256": "b" * 64}}, "the run's sha256 is 'aaaaaaaaaaaa' there and 'bbbbbbbbbbbb' here"),
        ({"kind": "tune"}, "the kind of run is 'sweep' there and 'tune' here"),
    ],
)
def test_another_run_is_refused(folder, recipe, about, message):
    with pytest.raises(RunError, match=message):
        store.check(folder, about_of(recipe, **about), plan(recipe))


def test_settings_of_a_failed_cell_may_change(folder, recipe):
    calmer = replace(recipe, method={"tent": {"learning_rate": 1e-5}})
    assert plan(recipe)[2].method == "tent"
    assert len(store.check(folder, about_of(calmer), plan(calmer))) == 2


def test_a_damaged_record_is_named(folder, recipe):
    file = store.record_file(folder, plan(recipe)[0].id)
    file.write_bytes(file.read_bytes()[:100])
    with pytest.raises(RunError, match=rf"{file.name} is damaged \(.*\); remove it and its cell is made again"):
        store.check(folder, about_of(recipe), plan(recipe))


def test_the_folder_of_a_run_is_not_one_of_a_sweep(run_folder, recipe):
    with pytest.raises(RunError, match="is a run or a file, not the folder of a sweep"):
        store.check(run_folder, about_of(recipe), plan(recipe))


def test_what_a_kill_left_behind_is_cleared_away(folder, recipe):
    stray = folder / "records" / ".x.json.123.tmp"
    stray.write_text("{")
    assert len(store.records(folder)) == 3
    store.begin(folder, about_of(recipe))
    assert not stray.exists()


def test_two_sweeps_of_one_folder_are_refused(folder):
    with (
        store.lock_folder(folder),
        pytest.raises(RunError, match=r"is being filled by another process \(pid \d+\)"),
        store.lock_folder(folder),
    ):
        pass
    with store.lock_folder(folder):  # and the lock is given back
        pass
    assert not (folder / ".lock").exists()
