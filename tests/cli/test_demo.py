"""`bacs demo` in small: the same code on fewer images, members and epochs, in this process."""

import dataclasses
import json
from importlib import import_module

import numpy as np
import pytest
from matplotlib.figure import Figure
from PIL import Image

import bacs
from bacs import cli
from bacs.data.image_set import first

demo = import_module("bacs.cli.work.demo")


@pytest.fixture
def small(monkeypatch):
    model = {"name": "resnet26", "width": 4, "blocks": 1}
    recipe = dataclasses.replace(demo.RECIPE, model=model, members=2, epochs=2, limit=120)
    monkeypatch.setattr(demo, "RECIPE", recipe)
    monkeypatch.setattr(demo.os, "cpu_count", lambda: 1)
    monkeypatch.setattr("bacs.engine.place.os.sched_getaffinity", lambda _: {0}, raising=False)
    load = bacs.data.load
    monkeypatch.setattr(bacs.data, "load", lambda name, **options: first(load(name, **options), 120))


def test_the_demo_trains_adapts_prints_and_draws(small, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["demo", "--shifts", "gaussian_noise", "--verbose"]) == 0
    out = capsys.readouterr().out
    for label in ("Vanilla Ensemble", "Ensemble BN Adapt", "Ensemble TENT", "BACS (MAP)", "Auto Ensemble"):
        assert label in out
    assert "Mean over gaussian noise at severity 5" in out
    assert "no shift at all" in out
    assert "Seen: on shifted images auto reached" in out
    assert "Next: " in out
    records = json.loads((tmp_path / "bacs-demo" / "records.json").read_text())
    assert len(records) == 2 * len(bacs.METHODS)
    for name in ("reliability.png", "risk-coverage.png", "pictures.png"):
        with Image.open(tmp_path / "bacs-demo" / name) as picture:
            assert np.asarray(picture.convert("L")).std() > 10, f"{name} is empty"
    assert len(bacs.load("bacs-demo/ensemble")) == 2

    # A second call trains nothing anew, and its records are the first one's.
    before = (tmp_path / "bacs-demo" / "ensemble" / "member-0" / "bacs.json").stat().st_mtime_ns
    assert cli.main(["demo", "--shifts", "gaussian_noise", "--json"]) == 0
    again = json.loads(capsys.readouterr().out)
    assert (tmp_path / "bacs-demo" / "ensemble" / "member-0" / "bacs.json").stat().st_mtime_ns == before
    assert again == [record for record in records if record["shift"] != "clean"]


def test_picture_strip_colours_captions_by_truth(tmp_path):
    pictures = np.zeros((3, 8, 8, 1), np.uint8)
    figure = demo.picture_strip({"fog": pictures}, [["a", "b", "c"]], np.array([[True, False, True]]))
    assert isinstance(figure, Figure)
    colours = [axes.xaxis.label.get_color() for axes in figure.axes]
    assert colours[0] == colours[2] != colours[1]
    figure.savefig(tmp_path / "strip.png")


def test_an_unknown_shift_is_named_before_any_work(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["demo", "--shifts", "gausian_noise"]) == 2
    assert "did you mean 'gaussian_noise'?" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_the_closing_lines_say_what_was_measured():
    def record(method, accuracy, nll):
        scores = {"accuracy": accuracy, "nll": nll, "brier": 0.0, "ece": 0.0}
        return {"shift": "fog", "method": method, "single": scores, "ensemble": scores}

    records = [
        record("vanilla", 0.5, 2.0),
        record("bn", 0.7, 1.0),
        record("bacs", 0.71, 0.9),
        record("auto", 0.69, 1.2),
    ]
    seen, following = demo.closing(records, "runs").splitlines()
    assert "auto reached 69.0 %" in seen
    assert "-1.0 points of accuracy and +0.200 NLL against BN" in seen
    assert "-2.0 points of accuracy and +0.300 NLL against BACS" in seen
    assert following.startswith("Next: ")
