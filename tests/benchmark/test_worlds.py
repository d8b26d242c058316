"""Worlds in sweeps: the scores of a loop written by hand, and streams that go on in the middle."""

import io
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from rich.console import Console

import bacs
from bacs.benchmark import lasting, plan, records, store, sweep
from bacs.benchmark.clock import Clock
from bacs.benchmark.recipe import parse, restore
from bacs.benchmark.store import stream_folder
from bacs.data import World, world_batches
from bacs.engine import Place
from bacs.errors import RecipeError, RunError
from bacs.metrics import scores_of
from bacs.report import over_time
from bacs.report.comparison import comparisons
from bacs.report.decisions import decisions
from bacs.report.records import read
from bacs.report.write import write

RECIPE = {
    "data": "fashion-mnist-part-c",
    "corruptions": ["gaussian_noise", "fog"],
    "methods": ["vanilla", "bacs", "auto"],
    "protocols": ["world"],
    "batch_size": 16,
    "limit": 60,
    "window": 12,  # less than a batch
    "seed": 3,
    "world": {
        "all": {"changes": ["abrupt", "gradual", "blended"], "segment_images": 30, "images": 200, "order": "sorted"}
    },
}
VARIANTS = {"methods": ["bacs"], "variants": [{"method": "bacs", "reset_every": 4}, {"method": "bacs", "guard": True}]}
KILLS = Path(__file__).parents[2] / "benchmarks" / "kill_streams.py"
CLOCK = ("seconds", "images_per_second", "sha256")  # and the checksum, which is of these too


def run(recipe, run_folder, out, **options):
    console = Console(file=io.StringIO(), width=200)
    return sweep(recipe, run_folder, out, **({"place": Place(workers=1), "console": console} | options))


def by_method(out):
    return {record["method"]: record for record in records(out)}


def but_for_the_clock(out):
    return [{key: value for key, value in record.items() if key not in CLOCK} for record in records(out)]


@pytest.fixture(scope="module")
def swept(run_folder, tmp_path_factory):
    out = tmp_path_factory.mktemp("worlds") / "whole"
    assert run(parse(RECIPE), run_folder, out) == (3, 0, 3, {})
    return out


@pytest.fixture(scope="module")
def varied(run_folder, tmp_path_factory):
    """The plain row, one with a reset every four steps, and a guarded one."""
    out = tmp_path_factory.mktemp("variants") / "whole"
    assert run(parse(RECIPE | VARIANTS), run_folder, out) == (3, 0, 3, {})
    return out


@pytest.mark.parametrize("method", ["vanilla", "bacs", "auto"])
def test_a_cell_is_the_hand_written_loop(swept, run_folder, method):
    check_by_hand(by_method(swept)[method], run_folder, decides=method == "auto")


def test_so_is_a_cell_of_a_variant(varied, run_folder):
    found = {record["id"].partition("--world--1")[2]: record for record in records(varied)}
    assert list(found) == ["--guard=True", "--reset_every=4", ""]
    own = [(record["settings"]["guard"], record["settings"]["reset_every"]) for record in found.values()]
    assert own == [(True, None), (False, 4), (False, None)]
    for name, record in found.items():
        check_by_hand(record, run_folder, decides=bool(name))


def check_by_hand(record, run_folder, *, decides):
    ensemble = bacs.load(run_folder)
    settings = {name: value for name, value in record["settings"].items() if name != "batch_size"}
    stream = bacs.stream(ensemble, record["method"], seed=3, **settings)
    (world,) = parse(RECIPE).worlds().values()
    clean = bacs.data.shift("fashion-mnist-part/clean", limit=60)
    batches = list(world_batches(world, clean.images, clean.labels, batch_size=16))
    rows = [stream.step_members(batch.images) for batch in batches]
    labels = np.concatenate([batch.labels for batch in batches])
    members = [torch.cat(own) for own in zip(*rows, strict=True)]
    mean = sum(members) / len(members)
    assert record["images"] == 200
    assert record["ensemble"] == pytest.approx(scores_of(mean, labels), rel=1e-9)
    assert record["members"] == [pytest.approx(scores_of(own, labels), rel=1e-9) for own in members]
    for window in record["windows"]:
        part = slice(window["first"], window["first"] + window["images"])
        assert window["ensemble"] == pytest.approx(scores_of(mean[part], labels[part]), rel=1e-9)
    right = mean.argmax(dim=1).numpy() == labels
    assert record["class_accuracy"] == [pytest.approx(right[labels == number].mean()) for number in range(10)]
    expected = [event._asdict() | {"image": min(16 * event.step, 200)} for event in stream.history]
    assert record["events"] == json.loads(json.dumps(expected))
    assert (len(expected) > 0) == decides


def test_a_reset_every_so_many_steps_stands_beside_the_plain_row(varied):
    (comparison,) = comparisons(read(varied).records)
    rows = comparison.combined
    assert [entry.label for entry in rows] == ["BACS", "BACS (reset every 4 steps)", "BACS (guard)"]
    (shift,) = over_time.streams(comparison)
    resets = [(64, "every 4 steps"), (128, "every 4 steps"), (192, "every 4 steps")]
    assert [(decision.image, decision.reason) for decision in decisions(rows[1], shift)] == resets
    assert "without a reset" not in over_time.caption(comparison, shift)


def test_variants_may_come_and_go_but_not_change_under_their_name(varied):
    fewer = replace(parse(RECIPE | VARIANTS), variants=())
    about = {"kind": "sweep", "recipe": fewer.as_json(), "run": read(varied).run}
    assert len(store.check(varied, about, plan(fewer))) == 3
    other = replace(fewer, reset_every=7)
    with pytest.raises(RunError, match="reset_every of bacs is None there and 7 here"):
        store.check(varied, about | {"recipe": other.as_json()}, plan(other))


def test_windows_have_every_image_once_and_never_two_segments(swept):
    (record, *_) = records(swept)
    names = ["gaussian_noise/5", "fog/5", "gaussian_noise/1-5-1", "fog/1-5-1", "gaussian_noise+fog/5"]
    names += ["fog+gaussian_noise/5", "gaussian_noise/5"]
    assert record["sequence"] == [f"fashion-mnist-part-c/{name}" for name in names]
    assert [(w["shift"], w["first"], w["images"]) for w in record["windows"]] == [
        (f"fashion-mnist-part-c/{name}", 30 * place + start, min(size, 20 - start) if place == 6 else size)
        for place, name in enumerate(names)
        for start, size in ((0, 12), (12, 12), (24, 6))[: 2 if place == 6 else 3]
    ]
    severities = [w["severity"] for w in record["windows"]]
    assert set(severities[:6] + severities[12:]) == {5}
    assert 1 < severities[6] < severities[7] > severities[8] > 1
    assert (record["data"], record["shift"]) == ("fashion-mnist-part-c", "fashion-mnist-part-c/world/all")


class Stop(Exception):
    """What a test raises in the middle of a stream."""


@pytest.mark.parametrize(("batch", "method"), [(1, "bacs"), (3, "auto"), (6, "bacs"), (11, "auto")])
def test_a_stream_that_broke_off_goes_on_and_ends_in_the_same_record(
    swept, run_folder, tmp_path, monkeypatch, batch, method
):
    monkeypatch.setattr(lasting, "SAVE_EVERY", 2)
    own, steps = lasting.Tally.add, []

    def add(self, rows, labels):
        own(self, rows, labels)
        steps.append(self.images)
        if len(steps) == batch:
            raise Stop

    monkeypatch.setattr(lasting.Tally, "add", add)
    recipe = replace(parse(RECIPE), methods=(method,))
    (cell,) = plan(recipe)
    assert list(run(recipe, run_folder, tmp_path / "out").failed) == [cell.id]
    kept = bacs.load(stream_folder(tmp_path / "out", cell))
    assert kept.steps == (batch - 1) // 2 * 2  # it broke off before it could be saved again
    run(recipe, run_folder, tmp_path / "out")
    assert steps[batch] == 16 * (kept.steps + 1)
    (record,) = but_for_the_clock(tmp_path / "out")
    assert record in but_for_the_clock(swept)
    assert sorted(file.name for file in (tmp_path / "out").iterdir()) == ["records", "sweep.json"]


def test_a_state_of_other_settings_begins_anew(swept, run_folder, tmp_path, monkeypatch):
    monkeypatch.setattr(lasting, "SAVE_EVERY", 2)
    own = lasting.Tally.add

    def add(self, rows, labels):
        own(self, rows, labels)
        if self.images > 60:
            raise Stop

    recipe = replace(parse(RECIPE), methods=("bacs",))
    with monkeypatch.context() as patch:
        patch.setattr(lasting.Tally, "add", add)
        assert run(replace(recipe, learning_rate=0.02), run_folder, tmp_path / "out").failed
    run(recipe, run_folder, tmp_path / "out")
    (record,) = but_for_the_clock(tmp_path / "out")
    assert record in but_for_the_clock(swept)


@pytest.mark.parametrize("number", range(3))
def test_a_state_from_before_there_were_resets_is_of_a_cell_without_them(number):
    cell, other = plan(parse(RECIPE))[number], plan(parse(RECIPE | VARIANTS))[1]
    about = {"cell": json.loads(json.dumps(cell.identity())), "run": "a"}
    older = json.loads(json.dumps(about))
    del older["cell"]["settings"]["guard"]
    older["cell"]["settings"].pop("reset_every", None)
    assert lasting.is_state_of(cell, older, about)
    assert not lasting.is_state_of(cell, older | {"run": "b"}, about)
    assert not lasting.is_state_of(cell, None, about)
    assert not lasting.is_state_of(other, older, about | {"cell": other.identity()})


def test_seconds_add_up_over_lives(swept):
    record = by_method(swept)["bacs"]
    assert set(record["seconds"]) == {"load", "data", "passes", "scores", "total"}
    clock = Clock()
    clock.go_on({"passes": 100.0})
    clock.lap("passes")
    assert 100 < clock.seconds["passes"] < clock.total()


def test_a_second_call_skips_worlds_and_another_world_is_refused(swept, run_folder):
    assert run(parse(RECIPE), run_folder, swept).skipped == 3
    for changes, message in (
        ({"images": 210}, r"images of fashion-mnist-part-c/world/all is 200 there and 210 here"),
        ({"order": "shuffled"}, r"order of .*/all is 'sorted' there and 'shuffled' here"),
        ({"changes": ["gradual"]}, r"shift 1 of .*/all is '.*/gaussian_noise/5' there and '.*/gaussian_noise/1-5-1'"),
    ):
        table = {"all": RECIPE["world"]["all"] | changes}
        with pytest.raises(RunError, match=f"holds another sweep: {message}"):
            run(parse(RECIPE | {"world": table}), run_folder, swept)


def test_a_table_of_segments():
    segments = [{"images": 30}, {"images": 50, "corruptions": ["fog", "snow"], "severities": [1, 5]}]
    recipe = parse(RECIPE | {"world": {"mine": {"segments": segments, "images": 100, "alpha": 1, "slot_size": 8}}})
    (world,) = recipe.worlds().values()
    assert [segment.name for segment in world.segments] == ["clean", "fog+snow/1-5"]
    assert (world.images, world.alpha, world.slot_size, world.seed) == (100, 1, 8, 3)
    assert isinstance(world, World)
    assert restore(json.loads(json.dumps(recipe.as_json()))).worlds() == recipe.worlds()
    assert [cell.id for cell in plan(recipe)][:1] == ["fashion-mnist-part-c.world.mine--vanilla--world--1"]
    assert [cell.cost for cell in plan(recipe)] == [3, 9, 9]


def test_without_a_length_a_world_is_as_long_as_its_segments():
    (world,) = parse(RECIPE | {"world": {"a": {"changes": ["abrupt"]}}}).worlds().values()
    assert (world.images, world.order) == (4000, "shuffled")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"world": {}}, r"protocol 'world' and tables \[world.<name>\] must come together"),
        ({"protocols": ["continual"]}, r"protocol 'world' and tables \[world.<name>\] must come together"),
        ({"published": True, "data": "cifar10-c"}, "published must be left out for protocol 'world'"),
        ({"world": {"a b": {"changes": ["abrupt"]}}}, "the name of a world must be of letters, digits, _ and -"),
        ({"world": {"a": 3}}, "world.a must be a table, got 3"),
        ({"world": {"a": {}}}, "world.a must have one of the keys 'changes' and 'segments'"),
        ({"world": {"a": {"changes": ["abrupt"], "lenght": 3}}}, "world.a has an unknown key 'lenght'"),
        ({"world": {"a": {"changes": "abrupt"}}}, "world.a.changes must be a list of texts, got 'abrupt'"),
        ({"world": {"a": {"changes": ["slow"]}}}, "world.a: changes must be one of abrupt, gradual, blended"),
        ({"world": {"a": {"changes": ["abrupt"], "images": 0}}}, "world.a: images must be >= 1, got 0"),
        ({"world": {"a": {"segments": [{"images": 3}], "severities": [3]}}}, "severities belongs to 'changes'"),
        ({"world": {"a": {"segments": 3}}}, "world.a.segments must be a list of tables, got 3"),
        ({"world": {"a": {"segments": [{}]}}}, "a segment of world.a lacks the key 'images'"),
        ({"world": {"a": {"segments": [{"images": "3"}]}}}, "world.a.segments.images must be a whole number"),
        ({"world": {"a": {"segments": []}}}, "world.a: segments must be one or more"),
    ],
)
def test_wrong_worlds(changes, message):
    with pytest.raises(RecipeError, match=message):
        parse(RECIPE | changes)


def test_kills_change_no_record(tmp_path):
    """In small; `python benchmarks/kill_streams.py world --kills 20` does it at length."""
    command = [sys.executable, str(KILLS), "world", "--kills", "2", "--images", "300", "--save-every", "3"]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run([*command, "--out", tmp_path / "kill.json"], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads((tmp_path / "kill.json").read_text())["world"]
    assert len(found["kills"]) == 2
    assert found["equal"]


def test_a_report_of_two_worlds(run_folder, tmp_path):
    recipe = parse(RECIPE | {"world": RECIPE["world"] | {"calm": {"segments": [{"images": 40}]}}, "methods": ["bn"]})
    run(recipe, run_folder, tmp_path / "out")
    write([read(tmp_path / "out")], tmp_path / "report")
    made = {file.name for file in (tmp_path / "report").rglob("*over-time*")}
    assert {name.partition(".")[0] for name in made} == {
        "fashion-mnist-part-c-world-over-time-all",
        "fashion-mnist-part-c-world-over-time-calm",
    }
