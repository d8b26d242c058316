"""`bacs tune` as a person meets it."""

import json
import sys

import pytest

from bacs import cli
from tiny import tiny_ensemble

RECIPE = """
data = "fashion-mnist-part-c"
corruptions = ["spatter", "saturate"]
method = "{method}"
limit = 16
batch_size = 16
[grid]
learning_rate = [1e-3, 1e-1, {last}]
"""


@pytest.fixture
def place(tmp_path, monkeypatch):
    tiny_ensemble().save(tmp_path / "run")
    (tmp_path / "recipe.toml").write_text(RECIPE.format(method="bacs", last=1.0) + "posterior_weight = [1e-4, 1e-2]\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def tune(*arguments):
    return cli.main(["tune", "recipe.toml", "--run", "run", "--out", "out", "--workers", "1", *arguments])


def test_the_choice_is_printed_drawn_and_taken_by_a_sweep(place, capsys):
    assert tune("--json") == 0
    captured = capsys.readouterr()
    found = json.loads(captured.out)
    assert found["criterion"] == "nll"
    assert [(point["learning_rate"], point["posterior_weight"]) for point in found["grid"]] == [
        (rate, weight) for weight in (1e-4, 1e-2) for rate in (1e-3, 1e-1, 1.0)
    ]
    best = min(found["grid"], key=lambda point: point["score"])
    assert found["chosen"] | {"score": found["score"]} == best
    assert "posterior weight \\ learning rate" in captured.err
    assert "posterior_weight: a grid of two values cannot show whether the best lies beyond them" in captured.err
    assert "12 of 12 cells are finished: out" in captured.err
    assert ("is at the edge of its grid" in captured.err) == bool(found["at_edge"])
    assert "bacs sweep ... --settings out/chosen.toml" in captured.err
    assert (place / "out" / "heat-map.png").read_bytes().startswith(b"\x89PNG")
    assert "<svg" in (place / "out" / "heat-map.svg").read_text()
    (place / "sweep.toml").write_text('shifts = ["fashion-mnist-part"]\nmethods = ["bacs"]\n')
    arguments = ("sweep", "sweep.toml", "--run", "run", "--out", "swept", "--settings", "out/chosen.toml")
    assert cli.main([*arguments, "--dry-run", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert {name: row["settings"][name] for name in found["chosen"]} == found["chosen"]


def test_another_criterion_chooses_from_the_same_records(place, capsys):
    assert tune() == 0
    before = {file.name: file.stat().st_mtime_ns for file in (place / "out" / "records").iterdir()}
    capsys.readouterr()
    assert tune("--criterion", "accuracy", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["score"] == max(point["score"] for point in found["grid"])
    assert {file.name: file.stat().st_mtime_ns for file in (place / "out" / "records").iterdir()} == before


def test_settings_that_diverge_are_a_finding_and_not_a_failure(place, capsys):
    (place / "recipe.toml").write_text(RECIPE.format(method="bacs-no-posterior", last=1e30))
    assert tune("--json") == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["grid"][2] == {"learning_rate": 1e30, "score": None}
    assert "4 of 6 cells are finished" in captured.err
    assert "DivergenceError" in captured.err


def test_other_axes_are_shown_by_their_best_and_said(place, capsys):
    grid = (
        '[grid]\nobjective = ["entropy", "information_maximisation"]\ntemperature = [1, 2]\nmomentum = [0, 0.5, 0.9]\n'
    )
    (place / "recipe.toml").write_text(RECIPE.format(method="bacs", last=1.0).partition("[grid]")[0] + grid)
    assert tune("--json") == 0
    captured = capsys.readouterr()
    assert len(json.loads(captured.out)["grid"]) == 12
    assert "temperature \\ objective" in captured.err
    assert "At each place the best over momentum.\n" in captured.err
    assert (place / "out" / "heat-map.png").exists()


def test_without_matplotlib_one_line_says_how_to_get_it(place, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert tune() == 0
    assert "figures need matplotlib: pip install 'bacs[report]'" in capsys.readouterr().err
    assert (place / "out" / "chosen.toml").exists()


def test_a_dry_run_lists_the_grid(place, capsys):
    assert tune("--dry-run") == 0
    lines = capsys.readouterr().out.splitlines()
    assert (
        lines[0] == "to do     fashion-mnist-part-c/spatter/5 bacs 1 epoch learning_rate=0.001,posterior_weight=0.0001"
    )
    assert lines[-1].startswith("12 of 12 cells to do")
    assert not (place / "out").exists()


def test_test_corruptions_are_refused(place, capsys, monkeypatch):
    monkeypatch.delenv("BACS_DEBUG", raising=False)
    text = (place / "recipe.toml").read_text()
    (place / "recipe.toml").write_text(text.replace("saturate", "fog"))
    assert tune() == 1
    assert "got fog, which is kept for the test" in capsys.readouterr().err
