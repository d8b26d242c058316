"""Wrong turns of a new user: each ends in one line that says what to do, before any work, and leaves nothing behind."""

import json
import os
import re
import shutil
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import bacs
from bacs import cli
from bacs.files import seal
from small import small_member
from sweep_records import make_record, write_sweep
from tiny import tiny_ensemble

SIZED = bacs.Preprocessing((0.5,) * 3, (0.25,) * 3, size=(12, 12))
SWEEP = 'data = "fashion-mnist-part-c"\ncorruptions = ["fog"]\nmethods = ["vanilla"]\nlimit = 32\nbatch_size = 16\n'
TUNE = 'data = "fashion-mnist-part-c"\ncorruptions = ["spatter"]\nmethod = "bacs"\n[grid]\nlearning_rate = [1]\n'


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder to be in: a run, a nameless one, a grey one, pictures, weights, labelled arrays, a sweep, a file."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("BACS_DEBUG", raising=False)
    members = [replace(small_member(seed), preprocessing=SIZED) for seed in range(2)]
    bacs.Ensemble(members, class_names=["cat", "dog", "eel", "fox", "gnu"]).save("run")
    bacs.Ensemble(members).save("nameless")
    tiny_ensemble().save("grey")
    torch.save(members[0].model.state_dict(), "weights.pt")
    os.mkdir("photos")
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 256, (40, 12, 12, 3), dtype=np.uint8)
    for number in range(4):
        Image.fromarray(pixels[number]).save(f"photos/{number}.png")
    np.savez("five.npz", images=pixels, labels=np.arange(40) % 5)
    np.savez("nine.npz", images=pixels, labels=np.arange(40) % 9)
    Path("file").write_text("hello")
    write_sweep(tmp_path / "swept", [make_record()])
    return tmp_path


@pytest.fixture
def bacs_says(capsys):
    """Runs a command; its exit code, and what it says beside progress."""

    def run(*words):
        try:
            code = cli.main([str(word) for word in words])
        except SystemExit as exit:
            code = exit.code
        return code, capsys.readouterr().err

    return run


def adapt(*words):
    return ("adapt", "run", "photos", "--out", "a.csv", *words)


RESNET = ("--model", "resnet26", "--model-arguments")
WEIGHTS = ("--mean", 0.5, 0.5, 0.5, "--std", 0.2, 0.2, 0.2, "--size", 12, 12)

TURNS = [
    (adapt("--labels", "truth.txt"), 2, "labels must be a .csv, a .npy or the word folders, got truth.txt"),
    (adapt("--labels", "truth.csv"), 1, "labels truth.csv is missing"),
    (adapt("--classes", "dog"), 2, "classes must be two or more: with dog alone, nothing is left to predict"),
    (adapt("--settings", "nowhere.toml"), 1, "settings nowhere.toml is missing"),
    (adapt("--seed", 10**22), 2, "seed must be a whole number from 0 to 4294967295"),
    (adapt("--threads", 100_000), 2, "threads must be at most 1024, got 100000"),
    (adapt("--save", "a.csv"), 2, "save must be another folder than that of the table, a.csv, got a.csv"),
    (("adapt", "run", "photos", "--out", "s/a.csv", "--save", "s"), 2, "save must be another folder than that of the"),
    (adapt("--mean", 0.5, "--std", 0.2), 2, "mean, std and model_arguments belong to weight files"),
    (adapt("--model-arguments", "width=4"), 2, "mean, std and model_arguments belong to weight files"),
    (("adapt", "run/bacs.json", "photos", "--out", "a.csv"), 1, "is a part of a saved folder; name the folder: run"),
    (
        ("adapt", "weights.pt", "photos", "--out", "a.csv", *WEIGHTS, *RESNET, "width=0"),
        2,
        "model_arguments do not fit resnet26: width must be at least 1, got 0",
    ),
    (
        ("adapt", "weights.pt", "photos", "--out", "a.csv", *WEIGHTS, *RESNET, "widht=4"),
        2,
        "got an unexpected keyword argument 'widht'",
    ),
    (("posterior", "run", "--data", "nowhere", "--out", "p"), 2, "there is no such file or folder either"),
    (("posterior", "run", "--data", "five.npz", "--out", "p", "--split", "trian"), 1, "did you mean 'train'?"),
    (
        ("posterior", "run", "--data", "five.npz", "--out", "p", "--members", 2),
        2,
        "members must be 1 unless members_from says how they differ, got 2",
    ),
    (("posterior", "run", "--data", "five.npz", "--out", "p", "--seed", -1), 2, "seed must be a whole number"),
    (
        ("posterior", "run", "--data", "nine.npz", "--out", "p", "--kind", "fisher"),
        2,
        "data must be of the 5 classes of the model, nine.npz has labels up to 8",
    ),
    (
        ("posterior", "run", "grey", "--data", "five.npz", "--out", "p", "--kind", "fisher"),
        2,
        "height, width, 1] (NHWC)",
    ),
    (
        ("posterior", "weights.pt", "--data", "five.npz", "--out", "p", *RESNET, "width=4", "blocks=1", "classes=5"),
        2,
        "mean and std must say how images are normalised: the weight file weights.pt does not",
    ),
    (("corrupt", "photos", "--out", "c", "--size", 0), 2, "size must be at least 1 pixel, got 0"),
    (("corrupt", "photos", "--out", "c", "--size", -4), 2, "size must be at least 1 pixel, got -4"),
    (("corrupt", "photos", "--out", "c", "--split", "tset"), 2, "did you mean 'test'?"),
    (("corrupt", "five.npz", "--out", "c", "--seed", -1), 2, "seed must be at least 0, got -1"),
    (("corrupt", "five.npz", "--out", "c", "--corruptions"), 2, "corruptions must name at least one, got none"),
    (("corrupt", "photos", "--out", "photos/fog"), 2, "out must lie outside of the data, photos/fog is in photos"),
    (("train", "cifar10-c-small", "--out", "t"), 1, "bacs: cifar10-c-small: this is a recipe for bacs sweep"),
    (("train", "fashion-mnist-small", "--out", "file"), 1, "out must be a folder, file is a file"),
    (
        ("train", "fashion-mnist-small", "--out", "t", "--address", "x:1"),
        2,
        "address must be left out without engine ray",
    ),
    (("sweep", "sweep.toml", "--run", "grey", "--out", "photos"), 1, "photos holds something else, such as 0.png"),
    (("sweep", "sweep.toml", "--run", "grey", "--out", "s", "--settings", "x.toml"), 1, "settings x.toml is missing"),
    (("sweep", "sweep.toml", "--run", "file", "--out", "s"), 1, "file is a file; what bacs saves is a folder"),
    (("sweep", "sweep.toml", "--run", "grey", "--out", "s", "--threads", 10**6), 2, "threads must be at most 1024"),
    (("tune", "auto.toml", "--run", "grey", "--out", "u"), 1, "got auto, which chooses for itself"),
    (("report", "swept", "--out", "file"), 1, "out must be a folder, file is a file"),
    (("demo", "--out", "file"), 1, "out must be a folder, file is a file"),
    (("demo", "--shifts"), 2, "shifts must name at least one corruption, got none"),
    (("serve", "weights.pt"), 1, "weights.pt is a file; what bacs saves is a folder with bacs.json in it"),
    (("serve", "run/bacs.json"), 1, "run/bacs.json is a part of a saved folder; name the folder: run"),
    (("info", "weights.pt"), 1, "weights.pt is a file; what bacs saves is a folder with bacs.json in it"),
    (("--hlep",), 2, "did you mean '--help'?"),
    (("Adapt",), 2, "did you mean 'adapt'?"),
]


@pytest.mark.parametrize(("words", "code", "message"), TURNS, ids=[" ".join(map(str, turn[0][:9])) for turn in TURNS])
def test_it_ends_in_one_line_before_any_work(place, bacs_says, monkeypatch, words, code, message):
    Path("sweep.toml").write_text(SWEEP)
    Path("auto.toml").write_text(TUNE.replace('"bacs"', '"auto"'))
    monkeypatch.setattr(import_module("bacs.cli.work.adapt"), "pictures", None)  # no picture is read
    before = sorted(str(file) for file in place.rglob("*"))
    found, err = bacs_says(*words)
    assert message in err
    assert found == code
    assert len(err.splitlines()) <= 2
    assert sorted(str(file) for file in place.rglob("*")) == before


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ('[method.bacs]\nbatch_size = "8"\n', "batch_size must be a whole number, got '8'"),
        ('[method.bacs]\nmomentum = "x"\n', "momentum must be at least 0 and below 1, got 'x'"),
        ("[method]\nbacs = 3\n", "settings must be tables [method.<name>] and nothing else"),
    ],
)
def test_settings_of_a_file_are_looked_at(place, bacs_says, table, message):
    Path("s.toml").write_text(table)
    assert message in bacs_says(*adapt("--settings", "s.toml"))[1]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("path,label\nphotos/3.png\n", "truth.csv: every row must have as many cells as the first"),
        ("path,label\nphotos/3.png,\n", "truth.csv: label '' is no class"),
        ("path,label\nphotos/3.png,7\n", "truth.csv has classes -1..7, those of the ensemble are 0..4"),
    ],
)
def test_labels_that_cannot_be_are_said_before_the_work(place, bacs_says, monkeypatch, text, message):
    Path("truth.csv").write_text(text)
    monkeypatch.setattr(import_module("bacs.cli.work.adapt"), "compare", None)
    code, err = bacs_says("adapt", "nameless", "photos", "--out", "a.csv", "--method", "bn", "--labels", "truth.csv")
    assert (code, Path("a.csv").exists()) == (1, False)
    assert message in err


def test_labels_of_a_spreadsheet_are_read(place, bacs_says):
    Path("truth.csv").write_text("\ufeffpath,label\nphotos/3.png,dog\n", encoding="utf-8")
    assert bacs_says(*adapt("--method", "vanilla", "--labels", "truth.csv"))[0] == 0


@pytest.mark.parametrize(("text", "word"), [("def f(:\n", "SyntaxError"), ("x = y\n", "NameError")])
def test_a_module_that_cannot_be_imported_says_why(place, bacs_says, text, word):
    name = f"wrong_{word.lower()}"
    Path(f"{name}.py").write_text(text)
    words = ("adapt", "weights.pt", "photos", "--out", "a.csv", *WEIGHTS, "--model", f"{name}:Net")
    code, err = bacs_says(*words)
    assert code == 2
    assert f"model '{name}:Net' cannot be imported: {word}: " in err


def test_flags_that_nothing_comes_of_are_named(place, bacs_says):
    said = "learning_rate, epochs: method bn does not use it"
    assert said in bacs_says(*adapt("--method", "bn", "--learning-rate", 5, "--epochs", 2))[1]
    Path("a.csv").unlink()
    assert "does not use it" not in bacs_says(*adapt("--method", "bacs", "--learning-rate", 0.1, "--epochs", 2))[1]


def test_a_corruption_that_is_named_twice_is_made_once(place, capsys):
    assert cli.main(["corrupt", "five.npz", "--out", "c", "--corruptions", "fog", "fog", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["written"] == ["fog"]


def test_a_grid_of_one_point_says_that_nothing_was_chosen(place, bacs_says):
    Path("tune.toml").write_text(TUNE)
    code, err = bacs_says("tune", "tune.toml", "--run", "grey", "--out", "u", "--workers", 1, "--limit", 32)
    assert code == 0
    assert "the grid has one point: nothing was chosen, only measured" in err


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"members": None}, "is no manifest that can be used: lacks 'members'"),
        ({"members": [{}]}, "is no manifest that can be used: members.0 lacks 'architecture'"),
        ({"members": 3}, "is no manifest that can be used: members must be a list of tables, got 3"),
        ({"files": []}, "is no manifest that can be used: files must be a table, got []"),
        ({"kind": "cake"}, "holds a 'cake'; this version knows ensemble, stream and run"),
    ],
)
def test_a_manifest_that_is_not_whole_is_said(place, bacs_says, change, message):
    shutil.copytree("run", "spoilt")
    manifest = json.loads(Path("spoilt/bacs.json").read_text()) | change
    del manifest["sha256"]
    whole = {key: value for key, value in manifest.items() if key not in change or value is not None}
    Path("spoilt/bacs.json").write_text(json.dumps(seal(whole)))
    code, err = bacs_says("info", "spoilt")
    assert (code, message in err) == (1, True)
    with pytest.raises(bacs.BacsError, match=re.escape(message)):
        bacs.load("spoilt")


def test_a_device_is_checked_and_taken_by_what_is_loaded(place, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ValueError, match="device must be cpu or cuda, got 'gpu'"):
        bacs.load("run", device="gpu")
    with pytest.raises(bacs.BacsError, match="device 'cuda' is not available"):
        bacs.load("run", device="cuda")
    assert next(bacs.load("run", device="meta").members[0].model.parameters()).device.type == "meta"


def test_the_word_help_helps(capsys):
    assert cli.main(["help"]) == 0
    assert "bacs demo" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        cli.main(["help", "adapt"])
    assert "usage: bacs adapt" in capsys.readouterr().out
