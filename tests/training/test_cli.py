"""`bacs train` as a person meets it."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

import bacs
from bacs.cli.place import Where
from bacs.cli.train import train
from bacs.errors import RunError
from bacs.training import curves, run_folder


def test_a_run_ends_with_scores_the_way_to_load_it_and_curves(recipe_file, tmp_path, capsys):
    assert train(recipe_file, out=tmp_path / "run", where=Where(workers=1)) == 0
    shown = " ".join(capsys.readouterr().err.split())
    assert "member 0 last_iterate accuracy" in shown
    assert "member 1 mean accuracy" in shown
    assert "2 of 2 members are finished: bacs.load(" in shown
    assert (tmp_path / "run" / "curves.png").read_bytes().startswith(b"\x89PNG")
    assert len(bacs.load(tmp_path / "run")) == 2


def test_json_has_the_scores_for_a_program(recipe_file, tmp_path, capsys):
    assert train(recipe_file, out=tmp_path / "run", members=(1,), where=Where(workers=1), json=True) == 0
    (member,) = json.loads(capsys.readouterr().out)
    assert member["member"] == 1
    assert member["scores"] == run_folder.read_about(tmp_path / "run", 1)["scores"]


def test_without_matplotlib_one_line_says_how_to_get_it(recipe_file, tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert train(recipe_file, out=tmp_path / "run", members=(1,), where=Where(workers=1)) == 0
    shown = capsys.readouterr().err
    assert "training curves need matplotlib: pip install 'bacs[report]'" in shown
    assert "1 of 2 members are finished" in shown


def test_without_tensorboard_the_error_says_how_to_get_it_before_any_work(recipe_file, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(RunError, match="pip install tensorboard"):
        train(recipe_file, out=tmp_path / "run", tensorboard=True)
    assert not (tmp_path / "run").exists()


def test_curves_show_every_member(tmp_path):
    line = {"loss": 1.0, "accuracy": 0.5, "learning_rate": 0.1}
    logs = {index: [{"epoch": epoch, **line} for epoch in (1, 2)] for index in range(3)}
    curves.draw_curves(logs, tmp_path / "curves.svg")
    text = (tmp_path / "curves.svg").read_text()
    assert text.count("<!-- member") == 3
    assert "<!-- training loss -->" in text


def test_ctrl_c_stops_cleanly_and_says_how_to_go_on(recipe_file, tmp_path):
    text = recipe_file.read_text().replace("epochs = 3", "epochs = 3000")
    recipe_file.write_text(text)
    code = "import sys, tyro\nfrom bacs.cli.train import train\nif __name__ == '__main__': sys.exit(tyro.cli(train))\n"
    (tmp_path / "script.py").write_text(code)
    arguments = [str(recipe_file), "--out", str(tmp_path / "run"), "--workers", "2"]
    process = subprocess.Popen(
        [sys.executable, str(tmp_path / "script.py"), *arguments],
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    until = time.monotonic() + 90
    while not run_folder.read_log(tmp_path / "run", 0) and time.monotonic() < until:
        time.sleep(0.1)
    os.killpg(process.pid, signal.SIGINT)  # a terminal sends it to the whole group
    _, shown = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "Stopped. The same command goes on from the last checkpoint" in shown
    assert f"bacs {' '.join(arguments)}" in shown
    assert "Traceback" not in shown
