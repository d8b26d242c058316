"""Whole runs in small: stored, resumed, refused."""

import errno
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from multiprocessing import active_children
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from rich.console import Console

import bacs
from bacs import checkpoints, files
from bacs.engine import Place, place
from bacs.errors import BacsError, CheckpointError, DataError, RecipeError, RunError
from bacs.training import member, progress, recipe, run_folder
from bacs.training.train import train

KILL_SCRIPT = Path(__file__).parents[2] / "benchmarks" / "kill_and_resume.py"


@pytest.fixture
def plan(recipe_file):
    return recipe.read(recipe_file)


def run(plan, out, **arguments):
    """Trains in this process; what would be shown to a person."""
    shown = io.StringIO()
    train(plan, out, **({"place": Place(workers=1), "console": Console(file=shown)} | arguments))
    return shown.getvalue()


def tensors(out, index):
    place = run_folder.member_folder(out, index)
    return checkpoints.read_tensors(place, checkpoints.read_manifest(place))["member-0"]


def assert_equal_runs(first, second, members=2):
    for index in range(members):
        ours, theirs = tensors(first, index), tensors(second, index)
        assert ours.keys() == theirs.keys()
        assert all(torch.equal(ours[name], theirs[name]) for name in ours)


def test_a_run_gives_an_ensemble_that_predicts_a_log_and_a_line_per_epoch(plan, tmp_path, other_data):
    shown = run(plan, tmp_path / "run")
    ensemble = bacs.load(tmp_path / "run")
    assert len(ensemble) == 2
    assert bacs.metrics.accuracy(ensemble.predict(other_data[0]), torch.from_numpy(other_data[1])) > 0.5
    first, second = (m.model.conv.weight for m in ensemble.members)
    assert not torch.equal(first, second)
    for index in range(2):
        log = run_folder.read_log(tmp_path / "run", index)
        assert [line["epoch"] for line in log] == [1, 2, 3]
        assert log[-1]["iterates"] == ensemble.members[index].posterior.count == 4
        about = run_folder.read_about(tmp_path / "run", index)
        assert about["log"] == log
        assert about["scores"].keys() == {"last_iterate", "mean"}
        assert 0 <= about["scores"]["mean"]["accuracy"] <= 1
        assert f"member {index}  epoch 3/3  lr 0.005" in shown
    assert shown.count("images/s") == 6


def test_running_again_leaves_finished_members_alone(plan, tmp_path):
    run(plan, tmp_path / "run")
    before = {file: file.stat().st_mtime_ns for file in (tmp_path / "run").glob("member-*/*")}
    assert len(before) == 4
    assert run(plan, tmp_path / "run") == ""
    assert {file: file.stat().st_mtime_ns for file in (tmp_path / "run").glob("member-*/*")} == before


@pytest.mark.parametrize("writes", range(1, 12, 2))
def test_a_full_disk_at_any_write_is_said_and_what_was_stored_goes_on(plan, tmp_path, monkeypatch, writes):
    """A failing write stands for a kill at that moment, too: neither may leave anything half done."""
    run(plan, tmp_path / "whole", members=[0])
    count = 0
    really = files.write

    def write(file, data, *, durable=True):
        nonlocal count
        count += durable
        if count == writes:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        really(file, data, durable=durable)

    with monkeypatch.context() as patched:
        patched.setattr(files, "write", write)
        with pytest.raises(BacsError, match="No space left on device"):
            run(plan, tmp_path / "run", members=[0])
    assert not run_folder.is_finished(tmp_path / "run", 0)
    run(plan, tmp_path / "run", members=[0])
    assert_equal_runs(tmp_path / "whole", tmp_path / "run", members=1)


def test_training_goes_on_from_the_last_checkpoint(plan, tmp_path, monkeypatch):
    epochs = []
    really = member.train_epoch

    def stopping(state, *arguments, **keywords):
        if state.epoch == 2 and not epochs.count(2):
            epochs.append(2)
            raise KeyboardInterrupt
        epochs.append(state.epoch)
        return really(state, *arguments, **keywords)

    monkeypatch.setattr(member, "train_epoch", stopping)
    with pytest.raises(KeyboardInterrupt):
        run(plan, tmp_path / "run", members=[0])
    run(plan, tmp_path / "run", members=[0])
    assert epochs == [0, 1, 2, 2]


def test_kill_9_at_random_moments_and_resuming_equals_an_uninterrupted_run(tmp_path):
    command = [sys.executable, str(KILL_SCRIPT), "--kills", "4", "--epochs", "4", "--seed", "1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "4 kills in" in done.stdout
    assert done.stdout.endswith("equal bit for bit\n")


@pytest.mark.slow
def test_thirty_kills_and_resuming_equals_an_uninterrupted_run():
    done = subprocess.run([sys.executable, str(KILL_SCRIPT), "--kills", "30"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_killed_worker_is_replaced_and_the_result_is_the_same(plan, tmp_path):
    killed = []

    def kill_the_first_worker_that_has_begun():
        until = time.monotonic() + 60
        while not killed and time.monotonic() < until:
            if list((tmp_path / "run").glob("training/*.now")):
                victim = active_children()[0]
                os.kill(victim.pid, signal.SIGKILL)
                killed.append(victim.pid)
            time.sleep(0.005)

    killer = threading.Thread(target=kill_the_first_worker_that_has_begun)
    killer.start()
    run(plan, tmp_path / "run", place=Place(workers=2))
    killer.join()
    assert len(killed) == 1
    run(plan, tmp_path / "whole")
    assert_equal_runs(tmp_path / "run", tmp_path / "whole")


def test_members_trained_elsewhere_are_copied_in(plan, tmp_path):
    run(plan, tmp_path / "here", members=[0])
    run(plan, tmp_path / "there", members=[1])
    assert len(bacs.load(tmp_path / "here")) == 1
    shutil.copytree(tmp_path / "there" / "member-1", tmp_path / "here" / "member-1")
    assert len(bacs.load(tmp_path / "here")) == 2
    assert run(plan, tmp_path / "here") == ""


def test_more_members_can_be_added_to_a_run(plan, tmp_path):
    run(plan, tmp_path / "run", members=[0])
    more = recipe.parse(plan.as_json() | {"members": 12})
    run(more, tmp_path / "run", members=[11, 2])
    assert [path.name for path in sorted((tmp_path / "run").glob("member-*"))] == ["member-0", "member-11", "member-2"]
    expected = [tensors(tmp_path / "run", index)["model/conv.weight"] for index in (0, 2, 11)]
    loaded = [m.model.conv.weight for m in bacs.load(tmp_path / "run").members]
    assert all(torch.equal(ours, theirs) for ours, theirs in zip(loaded, expected, strict=True))


def test_a_run_without_a_finished_member_says_so(plan, tmp_path):
    run_folder.open_run(tmp_path / "run", plan)
    with pytest.raises(CheckpointError, match="is a training run without a finished member yet"):
        bacs.load(tmp_path / "run")


def test_a_folder_with_another_run_is_refused_and_not_touched(plan, tmp_path):
    run_folder.open_run(tmp_path / "run", plan)
    before = (tmp_path / "run" / "bacs.json").read_bytes()
    other = recipe.parse(plan.as_json() | {"learning_rate": 0.2})
    with pytest.raises(RunError, match=r"another recipe: learning_rate is 0.05 there and 0.2 here"):
        run(other, tmp_path / "run")
    assert (tmp_path / "run" / "bacs.json").read_bytes() == before


def test_a_folder_with_something_else_is_refused(plan, tmp_path, ensemble):
    ensemble.save(tmp_path / "saved")
    with pytest.raises(RunError, match="holds a saved ensemble, not a training run"):
        run(plan, tmp_path / "saved")
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.tex").write_text("")
    with pytest.raises(CheckpointError, match="holds something else"):
        run(plan, tmp_path / "thesis")


def test_missing_data_are_said_before_anything_is_made(plan, tmp_path):
    absent = recipe.parse(plan.as_json() | {"data": "cifar10"})
    with pytest.raises(DataError, match="cifar10: put"):
        run(absent, tmp_path / "run", data_dir=tmp_path / "nowhere")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ({"name": "resnet62"}, "the model cannot be built: model must be one of .*did you mean"),
        ({"name": "resnet26", "wdith": 4}, "the model cannot be built: .*wdith"),
        ({"name": "resnet26", "width": 0}, "the model cannot be built: width must be at least 1, got 0"),
    ],
)
def test_a_model_that_cannot_be_built_is_said_before_anything_is_made(plan, tmp_path, model, message):
    with pytest.raises(RecipeError, match=message):
        run(recipe.parse(plan.as_json() | {"model": model}), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_recipe_that_collects_too_little_is_refused_before_anything_is_made(plan, tmp_path):
    short = recipe.parse(plan.as_json() | {"epochs": 1, "collections_per_epoch": 1})
    with pytest.raises(RecipeError, match="a posterior needs at least 2 iterates, got 1 of epochs=1"):
        run(short, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_damaged_checkpoint_is_said_with_what_to_do(plan, tmp_path):
    run(plan, tmp_path / "run", members=[0])
    shutil.rmtree(tmp_path / "run" / "member-0")
    state = run_folder.state_folder(tmp_path / "run", 0)
    checkpoints.write(state, {"kind": "training", "epoch": 1, "posterior": {}, "log": []}, {"state": {}})
    with pytest.raises(RunError, match="does not fit this recipe's model.*delete it to start over"):
        run(plan, tmp_path / "run", members=[0])


def test_two_commands_do_not_train_one_member(plan, tmp_path):
    run_folder.open_run(tmp_path / "run", plan)
    with (
        run_folder.lock_member(tmp_path / "run", 0),
        pytest.raises(RunError, match=rf"member 0 in .* is being trained by another process \(pid {os.getpid()}\)"),
    ):
        run(plan, tmp_path / "run", members=[0])


def test_wrong_arguments_are_named(plan, tmp_path):
    with pytest.raises(ValueError, match=r"members must be 0..1, got 2"):
        run(plan, tmp_path / "run", members=[2])
    with pytest.raises(ValueError, match="checkpoint_every must be at least 1, got 0"):
        run(plan, tmp_path / "run", checkpoint_every=0)
    with pytest.raises(ValueError, match="workers must be at least 1, got 0"):
        run(plan, tmp_path / "run", place=Place(workers=0))


def test_a_device_that_is_not_there_is_said_before_anything_is_made(plan, tmp_path, monkeypatch):
    with pytest.raises(ValueError, match="device must be cpu or cuda, got 'gpu'"):
        run(plan, tmp_path / "run", place=Place(device="gpu"))
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(RunError, match="device 'cuda' is not available: it needs a GPU"):
        run(plan, tmp_path / "run", place=Place(device="cuda"))
    assert not (tmp_path / "run").exists()


def test_members_are_spread_over_the_gpus_of_this_machine(plan, tmp_path, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    started = {}
    monkeypatch.setattr(place, "run", lambda function, jobs, **arguments: started.update(jobs=jobs, **arguments))
    with pytest.raises(CheckpointError):  # nothing was trained
        run(recipe.parse(plan.as_json() | {"members": 3}), tmp_path / "run", place=Place(device="cuda"))
    assert [job.device for job in started["jobs"]] == ["cuda:0", "cuda:1", "cuda:0"]
    assert started["workers"] == 2


def test_checkpoints_can_be_further_apart(plan, tmp_path, monkeypatch):
    saved = []
    really = run_folder.save_state
    monkeypatch.setattr(
        run_folder, "save_state", lambda where, state, log: saved.append(state.epoch) or really(where, state, log)
    )
    run(plan, tmp_path / "run", members=[0], checkpoint_every=2)
    assert saved == [2, 3]


def test_a_terminal_shows_one_line_per_member(plan, tmp_path):
    shown = io.StringIO()
    console = Console(file=shown, force_terminal=True, width=160)
    with progress.show_progress(tmp_path / "run", [0, 1], 3, console):
        run(plan, tmp_path / "run")
    assert "member 0" in shown.getvalue()
    assert "epoch 3/3" in shown.getvalue()


def test_the_imagenet_recipe_trains_on_folders_of_files(tmp_path):
    for split in ("train", "val"):
        for number, wnid in enumerate(("n01440764", "n15075141")):
            parent = tmp_path / "imagenet" / split / wnid
            parent.mkdir(parents=True)
            for index in range(3):
                pixels = np.full((60, 80 + index, 3), 90 + 60 * number, np.uint8)
                Image.fromarray(pixels).save(parent / f"{index}.JPEG")
    whole = recipe.read(Path(bacs.__file__).parent / "recipes" / "imagenet.toml")
    small = {"members": 1, "epochs": 2, "batch_size": 3, "collect_from": 0.5, "collections_per_epoch": 2}
    plan = recipe.parse(whole.as_json() | small | {"model": {"name": "resnet50v2", "width": 4}})
    run(plan, tmp_path / "run", data_dir=tmp_path)
    (member,) = bacs.load(tmp_path / "run").members
    assert member.preprocessing.mean == (0.485, 0.456, 0.406)
    assert member.posterior.count == 2
    assert member.model.head.out_features == 1000


def test_times_are_shown_as_a_clock():
    assert [progress.clock_text(s) for s in (5, 65, 3723.4)] == ["0:05", "1:05", "1:02:03"]


def test_the_log_is_json_lines(plan, tmp_path):
    run(plan, tmp_path / "run", members=[1])
    lines = run_folder.log_file(tmp_path / "run", 1).read_text().splitlines()
    keys = ["epoch", "learning_rate", "loss", "accuracy", "seconds", "images_per_second", "iterates"]
    assert [list(json.loads(line)) for line in lines] == [keys] * 3
