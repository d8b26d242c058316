"""`bacs demo` in small: the same code on fewer images, members and epochs, in this process."""

import dataclasses
import json
from importlib import import_module

import pytest
from PIL import Image

import bacs
from bacs import cli
from bacs.benchmark import records
from bacs.report.comparison import comparisons
from sweep_records import make_record

readme_table = import_module("readme_table")
demo = import_module("bacs.cli.work.demo")


@pytest.fixture
def small(monkeypatch):
    model = {"name": "resnet26", "width": 4, "blocks": 1}
    recipe = dataclasses.replace(demo.RECIPE, model=model, members=2, epochs=2, limit=120)
    monkeypatch.setattr(demo, "RECIPE", recipe)
    monkeypatch.setattr("bacs.engine.place.os.sched_getaffinity", lambda _: {0}, raising=False)


def test_the_demo_trains_adapts_prints_and_reports(small, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["demo", "--shifts", "gaussian_noise", "fog", "--verbose"]) == 0
    out = capsys.readouterr().out
    for label in ("Vanilla Ensemble", "Ensemble BN Adapt", "Ensemble TENT", "BACS (MAP)", "Auto Ensemble"):
        assert label in out
    assert "mean over 2 corruptions at severity 5" in out
    assert "Corruptions: gaussian noise, fog." in out
    assert "Fashion-MNIST (part), offline" in out
    assert "NLL by corruption, ensembles" in out
    assert "Seen: on shifted images auto reached" in out
    assert "Next: " in out
    found = records("bacs-demo/sweep")
    assert len(found) == 3 * len(bacs.METHODS)
    assert "Accuracy against confidence" in (tmp_path / "bacs-demo" / "report" / "page.html").read_text()
    with Image.open("bacs-demo/report/figures/fashion-mnist-part-c-offline-reliability.png") as picture:
        assert picture.convert("L").getextrema()[0] < 100, "the figure is empty"
    assert len(bacs.load("bacs-demo/ensemble")) == 2

    # A second call trains and adapts nothing anew; of what is there it shows the shifts that it was asked for.
    files = [*tmp_path.glob("bacs-demo/ensemble/member-*/*"), *tmp_path.glob("bacs-demo/sweep/records/*")]
    before = {file: file.stat().st_mtime_ns for file in files}
    assert len(before) == 2 * 2 + 3 * len(bacs.METHODS)
    assert cli.main(["demo", "--shifts", "gaussian_noise", "--json"]) == 0
    again = json.loads(capsys.readouterr().out)
    assert {file: file.stat().st_mtime_ns for file in files} == before
    assert [each["id"] for each in again] == [each["id"] for each in found if each["corruption"] == "gaussian_noise"]


def test_the_scores_are_those_of_evaluate_with_the_settings_that_are_kept(small, tmp_path, capsys):
    assert cli.main(["demo", "--out", str(tmp_path), "--shifts", "snow"]) == 0
    snow = bacs.data.shift("fashion-mnist-part-c/snow/5", limit=120)
    for record in map(readme_table.keep, records(tmp_path / "sweep")):
        ensemble = bacs.load(tmp_path / "ensemble")
        found = bacs.evaluate(ensemble, snow.images, snow.labels, record["method"], **record["settings"])
        assert record["shift"] == "snow"
        assert record["members"] == found.members
        assert (record["single"], record["ensemble"]) == (found.single, found.ensemble)


def test_an_unknown_shift_is_named_before_any_work(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["demo", "--shifts", "gausian_noise"]) == 2
    assert "did you mean 'gaussian_noise'?" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_the_closing_lines_say_what_was_measured():
    def record(method, accuracy, nll):
        scores = {"accuracy": accuracy, "nll": nll, "brier": 0.0, "ece": 0.0}
        return make_record(method=method) | {"single": scores, "ensemble": scores}

    records = [
        record("vanilla", 0.5, 2.0),
        record("bn", 0.7, 1.0),
        record("bacs", 0.71, 0.9),
        record("auto", 0.69, 1.2),
    ]
    seen, following = demo.outlook(comparisons(records)[0], "runs").splitlines()
    assert "auto reached 69.0 %" in seen
    assert "-1.0 points of accuracy and +0.200 NLL against BN" in seen
    assert "-2.0 points of accuracy and +0.300 NLL against BACS" in seen
    assert following.startswith("Next: ")
