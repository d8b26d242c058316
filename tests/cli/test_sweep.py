"""`bacs sweep` as a person meets it."""

import json
import os
import re
import signal
import subprocess
import sys
import time

import pytest

from bacs import cli
from bacs.benchmark import records
from tiny import scores_of, tiny_ensemble

RECIPE = """
data = "fashion-mnist-part-c"
corruptions = ["fog"]
methods = ["vanilla", "bn", "bacs"]
limit = 32
batch_size = 16
"""


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder with a recipe and a run, to be in."""
    tiny_ensemble().save(tmp_path / "run")
    (tmp_path / "recipe.toml").write_text(RECIPE)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def sweep(*arguments, out="out"):
    return cli.main(["sweep", "recipe.toml", "--run", "run", "--out", out, "--workers", "1", *arguments])


def test_a_sweep_says_what_is_finished_and_a_second_one_skips_it(place, capsys):
    assert sweep() == 0
    assert "3 of 3 cells are finished: out" in capsys.readouterr().err
    (place / "recipe.toml").write_text(RECIPE.replace('"bn", ', '"bn", "tent", '))
    assert sweep() == 0
    shown = capsys.readouterr().err
    assert "1/1 cells  fashion-mnist-part-c/fog/5 tent 1 epoch" in shown
    assert "4 of 4 cells are finished, 1 of them now: out" in shown


def test_json_is_for_programs_and_all_that_is_on_standard_output(place, capsys):
    assert sweep("--json") == 0
    done = json.loads(capsys.readouterr().out)
    assert done.pop("seconds") > 0
    assert done == {"cells": 3, "skipped": 0, "finished": 3, "failed": {}, "out": "out"}


def test_a_dry_run_lists_the_cells_and_does_nothing(place, capsys):
    assert sweep("--dry-run") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "to do     fashion-mnist-part-c/fog/5 vanilla offline"
    assert lines[2] == "to do     fashion-mnist-part-c/fog/5 bacs 1 epoch"
    assert lines[3].startswith("3 of 3 cells to do: 6 forward passes")  # 1 + 1 + (3 + 1)
    assert not (place / "out").exists()
    sweep()
    assert sweep("--dry-run", "--json") == 0
    assert [row["finished"] for row in json.loads(capsys.readouterr().out)] == [True] * 3


def test_failed_cells_are_listed_in_one_line_and_the_exit_code_says_so(place, capsys):
    text = RECIPE.replace('"bacs"', '"bacs-no-posterior"') + "[method.bacs-no-posterior]\nlearning_rate = 1e30\n"
    (place / "recipe.toml").write_text(text)
    assert sweep() == 3
    shown = capsys.readouterr().err
    assert "fashion-mnist-part-c/fog/5 bacs-no-posterior 1 epoch: DivergenceError: " in shown
    name = "fashion-mnist-part-c.fog.5--bacs-no-posterior--offline--1"
    assert f"failed, and tried again by the same command: {name}\n" in shown
    assert "2 of 3 cells are finished: out" in shown
    (place / "recipe.toml").write_text(re.sub("methods = .*", 'methods = ["bacs-no-posterior"]', text))
    assert sweep(out="none") == 1  # nothing at all was written that could be used
    (place / "recipe.toml").write_text(text)
    (place / "calm.toml").write_text("[method.bacs-no-posterior]\nlearning_rate = 1e-3\n")
    assert sweep("--settings", "calm.toml") == 0
    assert all(record["error"] is None for record in records("out"))


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("--limit", "16"), 1, "out holds another sweep: limit is 32 there and 16 here; choose another folder"),
        (("--limit", "0"), 1, "recipe.toml: limit must be at least 1, got 0"),
        (("--run", "nothing"), 1, "nothing is not a saved ensemble: there is no such folder"),
        (("--settings", "nothing.toml"), 1, "settings nothing.toml is missing"),
        (("--workers", "0"), 2, "workers must be at least 1, got 0"),
    ],
)
def test_what_cannot_be_is_one_line(place, capsys, monkeypatch, arguments, code, message):
    monkeypatch.delenv("BACS_DEBUG", raising=False)
    sweep()
    capsys.readouterr()
    assert sweep(*arguments) == code
    assert capsys.readouterr().err == f"bacs: {message}\n"


def test_ctrl_c_stops_cleanly_says_how_to_go_on_and_so_it_does(place):
    (place / "recipe.toml").write_text(RECIPE.replace('["fog"]', '["fog", "snow"]') + "epochs = [12]\n")
    assert sweep() == 0
    whole = scores_of("out")
    command = [sys.executable, "-c", "import sys; from bacs import cli; sys.exit(cli.main())"]
    command += ["sweep", "recipe.toml", "--run", "run", "--out", "stopped", "--workers", "1"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=os.environ | {"OMP_NUM_THREADS": "1"})
    until = time.monotonic() + 120
    while not list((place / "stopped").glob("records/*.json")) and time.monotonic() < until:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, shown = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Stopped. Finished cells are in stopped; the same command goes on:" in shown
    assert "bacs sweep recipe.toml --run run --out stopped --workers 1" in shown
    assert "Traceback" not in shown
    assert sorted(file.name for file in (place / "stopped").iterdir()) == ["records", "sweep.json"]
    assert 1 <= len(scores_of("stopped")) < 6
    assert cli.main(command[3:]) == 0
    assert scores_of("stopped") == whole
