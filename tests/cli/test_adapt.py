"""`bacs adapt` from the command's first argument to its exit code."""

import csv
import json
import os
import runpy
import shutil
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from PIL import Image
from torch import nn

import bacs
import small
from bacs import checkpoints, cli
from bacs.files import seal
from bacs.parameters import read
from bacs.posteriors import flat
from small import small_member

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "thousand_pictures.py"
SIZED = bacs.Preprocessing((0.5,) * 3, (0.25,) * 3, size=(12, 12))
PIXELS = np.random.default_rng(1).integers(0, 256, (40, 12, 12, 3), dtype=np.uint8)
NAMES = ["cat", "dog", "eel", "fox", "gnu"]


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder to work in, with `run` of two members and `photos` of 40 pictures."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("BACS_DEBUG", raising=False)
    members = [replace(small_member(seed), preprocessing=SIZED) for seed in range(2)]
    bacs.Ensemble(members, class_names=NAMES).save("run")
    os.mkdir("photos")
    rng = np.random.default_rng(0)
    for number in range(40):
        Image.fromarray(rng.integers(0, 256, (12 + number, 30, 3), dtype=np.uint8)).save(f"photos/{number:02}.png")
    return tmp_path


@pytest.fixture
def adapt(capsys):
    """Runs the verb; exit code, standard output and error."""

    def run(*arguments):
        code = cli.main(["adapt", *map(str, arguments)])
        shown = capsys.readouterr()
        return code, shown.out, shown.err

    return run


def rows(path):
    return pq.read_table(path).to_pylist()


def test_sixty_pictures_of_every_kind_ten_of_them_broken(tmp_path):
    lines = list(runpy.run_path(str(BENCHMARK))["run"](tmp_path, 60))
    assert "50 good pictures in 20 kinds, 10 broken" in lines[0]
    assert [line.split(" rows right, 10 named failures")[0] for line in lines[1:3]] == [
        "vanilla: exit code 3, 50",
        "bacs: exit code 3, 50",
    ]
    assert len(lines) == 13


def test_the_table_is_that_of_the_python_way(place, adapt):
    options = {"batch_size": 16, "epochs": 2, "learning_rate": 0.01, "seed": 5, "optimizer": "adam"}
    flags = [part for name, value in options.items() for part in (f"--{name.replace('_', '-')}", value)]
    arguments = ("--method", "tent", *flags, "--predict-batch-size", 20, "--save", "run2")
    assert adapt("run", "photos", "--out", "a.parquet", *arguments)[0] == 0
    ensemble = bacs.load("run")
    found = bacs.data.pictures("photos", ensemble.members[0].preprocessing)
    adapted = bacs.adapt(ensemble, found.images, "tent", **options)
    table = bacs.predict_table(adapted, found.images, paths=found.paths, batch_size=20, seed=5)
    written = rows("a.parquet")
    assert [row["path"] for row in written] == [f"photos/{number:02}.png" for number in range(40)]
    for name in ("class_index", "class_name", "abstain"):
        assert [row[name] for row in written] == list(getattr(table, name))
    for name in ("confidence", "predictive_entropy", "expected_entropy", "mutual_information"):
        np.testing.assert_allclose([row[name] for row in written], getattr(table, name), atol=1e-9)
    again = bacs.load("run2")
    assert again.adaptation == adapted.adaptation
    for one, other in zip(again.members, adapted.members, strict=True):
        assert all(torch.equal(a, b) for a, b in zip(one.model.parameters(), other.model.parameters(), strict=True))
        assert one.preprocessing == SIZED


def test_the_summary_tells_before_and_after(place, adapt):
    code, out, _ = adapt("run", "photos", "--out", "a.csv", "--coverage", 0.75)
    assert code == 0
    ensemble = bacs.load("run")
    before = ensemble.predict(bacs.data.pictures("photos", SIZED).images)
    with open("a.csv", newline="") as file:
        table = list(csv.DictReader(file))
    confidence = np.mean([float(row["confidence"]) for row in table])
    assert f"{before.max(dim=1).values.mean():>8.3f} {confidence:>8.3f}" in out
    for number, name in enumerate(NAMES):
        counts = int((before.argmax(dim=1) == number).sum()), sum(row["class_name"] == name for row in table)
        assert not any(counts) or f"{name:<24} {counts[0]:>8} {counts[1]:>8}\n" in out
    assert "images: 40, flagged to abstain: 10" in out
    assert out.endswith("table: a.csv\n")
    told = json.loads(adapt("run", "photos", "--out", "b.csv", "--json")[1])
    assert told["images"] == 40
    assert sum(row["before"] for row in told["classes"]) == sum(row["after"] for row in told["classes"]) == 40
    assert told["skipped"] == told["warnings"] == []
    assert all(0 < distance < 10 for distance in told["moved"])
    assert told["after"]["confidence"] == pytest.approx(confidence)


def test_what_goes_beyond_the_paper_is_that_of_the_python_way(place, adapt):
    options = {
        "objective": "entropy + 0.5 * ensemble_teacher",
        "objective_temperature": 2.0,
        "batch_weight": 0.6,
        "temperature": "agreement",
        "learning_rate": 0.05,
        "batch_size": 16,
        "method": "bacs",
    }
    flags = [part for name, value in options.items() for part in (f"--{name.replace('_', '-')}", value)]
    code, out, _ = adapt("run", "photos", "--out", "a.parquet", "--save", "run2", *flags)
    found = bacs.data.pictures("photos", SIZED)
    adapted = bacs.adapt(bacs.load("run"), found.images, **options)
    assert code == 0
    assert (f"temperature: {adapted.temperature:.3g}\n" in out) == (abs(adapted.temperature - 1) >= 0.005)
    table = bacs.predict_table(adapted, found.images, batch_size=16)
    np.testing.assert_allclose([row["confidence"] for row in rows("a.parquet")], table.confidence, atol=1e-9)
    again = bacs.load("run2")
    assert (again.temperature, again.statistics) == (adapted.temperature, bacs.Statistics(0.6))
    told = json.loads(adapt("run", "photos", "--out", "b.csv", "--json", *flags)[1])
    assert told["temperature"] == adapted.temperature
    assert told["settings"]["batch_weight"] == 0.6
    told = json.loads(adapt("run", "photos", "--out", "c.csv", "--json", "--method", "bacs", "--temperature", 2.5)[1])
    assert told["temperature"] == 2.5


def test_rates_that_destroy_the_networks_are_said(place, adapt):
    wild = ("--method", "bacs-no-posterior", "--learning-rate", 30, "--batch-size", 40)
    told = json.loads(adapt("run", "photos", "--out", "a.csv", "--json", *wild)[1])
    assert max(told["moved"]) > 5
    assert any("weights moved by" in warning for warning in told["warnings"])
    usual = json.loads(adapt("run", "photos", "--out", "b.csv", "--json", "--method", "bacs")[1])
    assert not any("weights moved by" in warning for warning in usual["warnings"])


def test_a_flat_posterior_and_an_idle_method_have_no_distance(place, adapt):
    bacs.Ensemble([replace(small_member(0, flat), preprocessing=SIZED)]).save("flat")
    assert "deviations: no posterior" in adapt("flat", "photos", "--out", "a.csv")[1]
    assert json.loads(adapt("run", "photos", "--out", "b.csv", "--method", "bn", "--json")[1])["moved"] == [None, None]


def test_probabilities_are_written_when_asked_for(place, adapt):
    adapt("run", "photos", "--out", "a.jsonl", "--probabilities")
    with open("a.jsonl") as file:
        table = [json.loads(line) for line in file]
    assert {len(row["probabilities"]) for row in table} == {5}
    assert all(sum(row["probabilities"]) == pytest.approx(1) for row in table)
    assert all(max(row["probabilities"]) == row["confidence"] for row in table)


class TestAuto:
    """What nobody asks for is `auto`: it decides, says why, and says how good it is."""

    def test_it_is_the_default_and_that_of_the_python_way(self, place, adapt):
        code, out, _ = adapt("run", "photos", "--out", "a.parquet", "--save", "run2")
        adapted = bacs.adapt(bacs.load("run"), found := bacs.data.pictures("photos", SIZED).images, "auto")
        assert code == 0
        assert out.startswith("auto, offline, members: 2")
        for reason in adapted.adaptation["reasons"]:
            assert f"  {reason}\n" in out
        table = bacs.predict_table(adapted, found, batch_size=64)
        np.testing.assert_allclose([row["confidence"] for row in rows("a.parquet")], table.confidence, atol=1e-9)
        again = bacs.load("run2")
        assert again.adaptation == adapted.adaptation
        told = json.loads(adapt("run", "photos", "--out", "b.csv", "--json")[1])
        assert told["reasons"] == adapted.adaptation["reasons"]
        assert told["estimated"]["after"] == pytest.approx(adapted.adaptation["estimate"], abs=1e-5)
        guess = told["estimated"]["before"]
        assert guess["low"] <= guess["ensemble"] <= guess["high"]
        assert f"estimated accuracy {100 * guess['ensemble']:.0f} % (" in out
        assert told["warnings"] == []  # auto has seen to them

    def test_online_it_says_what_it_decided_when(self, place, adapt):
        told = json.loads(adapt("run", "photos", "--out", "a.csv", "--online", "--batch-size", 20, "--json")[1])
        assert (told["method"], told["protocol"]) == ("auto", "online")
        stream = bacs.stream(bacs.load("run"), "auto")
        images = torch.from_numpy(np.array(bacs.data.pictures("photos", SIZED).images))
        for batch in images.split(20):
            stream.step(batch)
        assert told["reasons"] == [f"after step {event.step}: {event.reason}" for event in stream.history]
        assert told["temperature"] == stream.temperature

    def test_a_wished_accuracy_decides_how_many_are_answered_for(self, place, adapt):
        answered = []
        for wished in (0.3, 0.5, 0.99):
            out = f"{wished}.csv"
            told = json.loads(adapt("run", "photos", "--out", out, "--accuracy", wished, "--json")[1])
            with open(out, newline="") as file:
                table = list(csv.DictReader(file))
            kept = [float(row["confidence"]) for row in table if row["abstain"] == "false"]
            assert len(kept) == 40 - told["abstained"]
            assert not kept or np.mean(kept) >= wished
            answered.append(len(kept))
        assert answered == sorted(answered, reverse=True)
        assert answered[0] > answered[-1]

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (("--learning-rate", 0.1), "learning_rate must be left out with method 'auto', which chooses it"),
            (("--accuracy", 0.9, "--method", "bn"), "accuracy needs probabilities that agreement made honest"),
            (("--accuracy", 0.9, "--coverage", 0.5), "coverage must be left out with accuracy"),
            (("--accuracy", 1.0), "accuracy must be above 0 and below 1, got 1.0"),
        ],
    )
    def test_what_contradicts_it_is_refused(self, place, adapt, arguments, message):
        code, _, err = adapt("run", "photos", "--out", "a.csv", *arguments)
        assert code == 2
        assert message in err
        assert not Path("a.csv").exists()

    def test_a_single_network_has_no_accuracy_to_wish_for(self, place, adapt):
        bacs.Ensemble([replace(small_member(), preprocessing=SIZED)]).save("one")
        code, _, err = adapt("one", "photos", "--out", "a.csv", "--accuracy", 0.9)
        assert code == 2
        assert "accuracy must be left out for a single network" in err
        told = json.loads(adapt("one", "photos", "--out", "a.csv", "--json")[1])
        assert told["estimated"] is None


class TestImages:
    """Several places, a part of them, the truth about them, and the classes that can occur."""

    @pytest.fixture
    def sorted_photos(self, place):
        for number, name in enumerate(["cat", "dog", "eel"]):
            os.makedirs(f"known/{name}")
            for file in sorted(Path("photos").glob(f"{number}*.png")):
                file.rename(Path("known", name, file.name))
        return place

    def test_several_places_and_a_limit(self, place, adapt):
        files = ("photos/07.png", "photos/1*.png", "photos")
        assert adapt("run", *files, "--out", "a.parquet")[0] == 0
        named = [row["path"] for row in rows("a.parquet")]
        assert named[:3] == ["photos/07.png", "photos/10.png", "photos/11.png"]
        assert sorted(named) == [f"photos/{number:02}.png" for number in range(40)]  # none twice
        assert adapt("run", *files, "--out", "b.parquet", "--limit", 4)[0] == 0
        assert [row["path"] for row in rows("b.parquet")] == named[:4]
        np.save("array.npy", np.zeros((5, 12, 12, 3), np.uint8))
        code, _, err = adapt("run", "photos", "array.npy", "--out", "c.csv")
        assert code == 1
        assert "array.npy must be given alone" in err
        assert json.loads(adapt("run", "array.npy", "--out", "d.csv", "--limit", 3, "--json")[1])["images"] == 3

    def test_folders_named_by_class_are_labels(self, sorted_photos, adapt):
        told = json.loads(adapt("run", "known", "--out", "a.parquet", "--labels", "folders", "--json")[1])
        written = rows("a.parquet")
        right = [Path(row["path"]).parent.name == row["class_name"] for row in written]
        before = [Path(row["path"]).parent.name == row["class_before"] for row in written]
        assert told["scores"]["images"] == 30
        assert told["scores"]["after"]["accuracy"] == pytest.approx(np.mean(right))
        assert told["scores"]["before"]["accuracy"] == pytest.approx(np.mean(before))
        out = adapt("run", "known", "--out", "b.csv", "--labels", "folders")[1]
        assert f"after  by 30 labels: accuracy {100 * np.mean(right):.1f} %" in out

    def test_labels_of_a_table_or_an_array(self, place, adapt):
        Path("truth.csv").write_text("path,label\nphotos/03.png,dog\n04.png,2\n")
        assert (
            json.loads(adapt("run", "photos", "--out", "a.csv", "--labels", "truth.csv", "--json")[1])["scores"][
                "images"
            ]
            == 2
        )
        np.save("truth.npy", np.arange(40) % 5)
        told = json.loads(adapt("run", "photos", "--out", "b.parquet", "--labels", "truth.npy", "--json")[1])
        right = [row["class_index"] == row["index"] % 5 for row in rows("b.parquet")]
        assert told["scores"]["after"]["accuracy"] == pytest.approx(np.mean(right))

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            ("path,label\nphotos/03.png,dgo\n", "label 'dgo' is no class (did you mean 'dog'?)"),
            ("file,label\nphotos/03.png,dog\n", "labels must have the columns path or index, and label"),
            ("path,label\nelsewhere.png,dog\n", "says nothing of any of the 40 images"),
        ],
    )
    def test_wrong_labels_are_named(self, place, adapt, content, message):
        Path("truth.csv").write_text(content)
        code, _, err = adapt("run", "photos", "--out", "a.csv", "--labels", "truth.csv")
        assert code == 1
        assert message in err

    def test_only_named_classes_are_predicted(self, place, adapt):
        assert adapt("run", "photos", "--out", "a.parquet", "--classes", "dog", "4")[0] == 0
        assert {row["class_name"] for row in rows("a.parquet")} <= {"dog", "gnu"}
        code, _, err = adapt("run", "photos", "--out", "b.csv", "--classes", "dgo")
        assert (code, "did you mean 'dog'?" in err) == (2, True)

    def test_a_dry_run_does_nothing(self, place, adapt):
        code, out, _ = adapt("run", "photos", "--out", "a.csv", "--save", "run2", "--dry-run")
        assert code == 0
        assert "images: 40" in out
        assert "would write: a.csv and run2" in out
        assert sorted(os.listdir()) == ["photos", "run"]

    def test_settings_of_a_file(self, place, adapt):
        Path("chosen.toml").write_text("[method.tent]\nlearning_rate = 0.05\nepochs = 2\nbatch_size = 20\n")
        told = json.loads(adapt("run", "photos", "--out", "a.parquet", "--settings", "chosen.toml", "--json")[1])
        assert (told["method"], told["settings"]["learning_rate"]) == ("tent", 0.05)
        images = bacs.data.pictures("photos", SIZED).images
        expected = bacs.adapt(bacs.load("run"), images, "tent", learning_rate=0.05, epochs=2, batch_size=20)
        table = bacs.predict_table(expected, images, batch_size=20)
        np.testing.assert_allclose([row["confidence"] for row in rows("a.parquet")], table.confidence, atol=1e-9)
        flagged = ("--settings", "chosen.toml", "--learning-rate", 0.01, "--json")
        assert json.loads(adapt("run", "photos", "--out", "b.csv", *flagged)[1])["settings"]["learning_rate"] == 0.01
        code, _, err = adapt("run", "photos", "--out", "c.csv", "--settings", "chosen.toml", "--method", "bacs")
        assert (code, "settings must have a table [method.bacs]" in err) == (2, True)

    def test_a_weight_file_works_without_a_posterior(self, place, adapt):
        model = bacs.models.build("resnet26", width=4, classes=5)
        torch.save(model.state_dict(), "weights.pt")
        of = ("--model", "resnet26", "--model-arguments", "width=4", "classes=5", "--size", 12, 12)
        scale = ("--mean", 0.5, 0.5, 0.5, "--std", 0.25, 0.25, 0.25)
        code, out, err = adapt("weights.pt", "photos", "--out", "a.csv", *of, *scale)
        assert code == 0
        assert out.startswith("auto, offline, members: 1")
        assert "has no posterior" in err
        code, _, err = adapt("weights.pt", "photos", "--out", "b.csv", *of)
        assert (code, "mean and std must say how pictures are normalised" in err) == (2, True)
        code, _, err = adapt("weights.pt", "photos", "--out", "b.csv", *scale)
        assert (code, "model must name what the weights in weights.pt belong to" in err) == (2, True)


def test_the_help_names_every_method():
    assert set(import_module("bacs.cli.adapt").METHODS) == set(bacs.METHODS)


class TestOnline:
    def test_images_come_in_their_order_and_the_stream_goes_on(self, place, adapt):
        whole = ("--online", "--method", "bacs", "--batch-size", 10, "--learning-rate", 0.01)
        assert adapt("run", "photos", "--out", "whole.parquet", *whole)[0] == 0
        stream = bacs.stream(bacs.load("run"), "bacs", learning_rate=0.01)
        images = torch.from_numpy(np.array(bacs.data.pictures("photos", SIZED).images))
        expected = torch.cat([stream.step(batch) for batch in images.split(10)])
        confidence = [row["confidence"] for row in rows("whole.parquet")]
        np.testing.assert_allclose(confidence, expected.max(dim=1).values, atol=1e-6)
        # The same in two commands, the second going on with the stream of the first.
        assert adapt("run", "photos/[01]*.png", "--out", "1.parquet", *whole, "--save", "half")[0] == 0
        following = ("--online", "--save", "rest")  # its method, settings and batch size are its own
        assert adapt("half", "photos/[23]*.png", "--out", "2.parquet", *following)[0] == 0
        halves = [row["confidence"] for name in ("1.parquet", "2.parquet") for row in rows(name)]
        np.testing.assert_allclose(halves, confidence, atol=1e-9)
        assert bacs.load("rest").steps == 4

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ((), "online must be given for a saved stream"),
            (("--online", "--method", "bn"), "method must be bacs, with which the stream began, got bn"),
            (("--online", "--learning-rate", 0.5), "a saved stream goes on with its own settings"),
            (("--online", "--size", 8, 8), "size must be left out for a saved stream, got (8, 8)"),
        ],
    )
    def test_a_saved_stream_is_not_bent(self, place, adapt, arguments, message):
        begun = ("--online", "--method", "bacs", "--learning-rate", 0.01, "--save", "half")
        assert adapt("run", "photos", "--out", "a.csv", *begun)[0] == 0
        code, _, err = adapt("half", "photos", "--out", "b.csv", *arguments)
        assert code == 2
        assert message in err

    def test_a_stream_of_another_machine_goes_on_where_the_device_is_named(self, place, adapt, monkeypatch):
        monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
        assert adapt("run", "photos", "--out", "a.csv", "--online", "--method", "bn", "--save", "half")[0] == 0
        file = Path("half/bacs.json")
        manifest = json.loads(file.read_text())
        manifest["stream"]["device"] = "cuda"
        del manifest["sha256"]
        file.write_text(json.dumps(seal(manifest)))
        code, _, err = adapt("half", "photos", "--out", "b.csv", "--online")
        assert code == 1
        assert "device 'cuda' is not available" in err
        assert adapt("half", "photos", "--out", "b.csv", "--online", "--device", "cpu")[0] == 0

    @pytest.mark.parametrize("flag", ["--epochs", "--predict-batch-size"])
    def test_what_belongs_to_offline_is_refused(self, place, adapt, flag):
        code, _, err = adapt("run", "photos", "--out", "a.csv", "--online", flag, 2)
        assert code == 2
        assert "with online: one pass both adapts and predicts" in err


class TestFailures:
    def test_they_are_listed_and_the_exit_code_says_that_the_table_is_there(self, place, adapt):
        Path("photos/05.png").write_bytes(b"")
        Path("photos/notes.md").write_text("")
        code, out, err = adapt("run", "photos", "--out", "a.parquet")
        assert code == 3
        assert "skipped photos/05.png: empty" in err
        assert "pictures skipped: 1, other files in the folder: 1" in out
        assert [row["index"] for row in rows("a.parquet")] == [n for n in range(40) if n != 5]

    def test_strict_writes_nothing(self, place, adapt):
        Path("photos/05.png").write_bytes(b"")
        code, out, err = adapt("run", "photos", "--out", "a.csv", "--save", "run2", "--strict")
        assert (code, out) == (1, "")
        assert err.endswith("bacs: photos/05.png: empty\n")
        assert sorted(os.listdir()) == ["photos", "run"]

    def test_ctrl_c_leaves_an_existing_table(self, place, adapt, monkeypatch):
        Path("a.csv").write_text("precious")

        def stopped(*arguments, **options):
            raise KeyboardInterrupt

        monkeypatch.setattr(import_module("bacs.cli.work.adapt"), "compare", stopped)
        code, _, err = adapt("run", "photos", "--out", "a.csv", "--overwrite")
        assert code == 130
        assert "The same command begins anew" in err
        assert Path("a.csv").read_text() == "precious"

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (("--out", "a.xlsx"), "out must end in .parquet, .csv, .jsonl, got a.xlsx"),
            (("--out", "there.csv"), "there.csv exists: overwrite=True (--overwrite) replaces it"),
            (("--out", "a.csv", "--method", "bax"), "did you mean 'bacs'"),
            (("--out", "a.csv", "--coverage", 0), "coverage must be above 0 and at most 1, got 0.0"),
            (("--out", "a.csv", "--batch-size", 0), "batch_size must be at least 1, got 0"),
            (("--out", "a.csv", "--predict-batch-size", 0), "predict_batch_size must be at least 1, got 0"),
            (("--out", "a.csv", "--epochs", -1), "epochs must be a finite number >= 0, got -1"),
            (("--out", "a.csv", "--momentum", 1), "momentum must be at least 0 and below 1"),
            (("--out", "a.csv", "--optimizer", "sdg"), "did you mean 'sgd'"),
            (("--out", "a.csv", "--device", "tpu9"), "device must be cpu or cuda"),
            (("--out", "a.csv", "--save", "run"), "save must be another folder than the one that is adapted"),
            (("--out", "a.csv", "--save", "photos"), "save must be a new folder, photos holds something else"),
            (("--out", "a.csv", "--save", "run3"), "save must be a new folder, run3 exists: --overwrite replaces it"),
            (("--out", "a.csv", "--size", 8, 8), "size must be left out: the checkpoint says"),
        ],
    )
    def test_impossible_wishes_are_said_before_any_work(self, place, adapt, monkeypatch, arguments, message):
        Path("there.csv").write_text("precious")
        bacs.load("run").save("run3")
        monkeypatch.setattr(import_module("bacs.cli.work.adapt"), "pictures", None)  # no picture is read
        code, out, err = adapt("run", "photos", *arguments)
        assert (code, out) == (2, "")
        assert message in err
        assert not Path("a.csv").exists()

    @pytest.mark.parametrize(
        "arguments", [("--out", "run/bacs.json/a.csv"), ("--out", "a.csv", "--save", "photos/00.png/b")]
    )
    def test_outputs_that_cannot_be_written_are_said_before_any_work(self, place, adapt, monkeypatch, arguments):
        monkeypatch.setattr(import_module("bacs.cli.work.adapt"), "pictures", None)  # no picture is read
        code, out, err = adapt("run", "photos", *arguments)
        assert (code, out) == (1, "")
        flag, path = arguments[-2:]
        assert f"{flag.strip('-')} {path} cannot be written: {Path(path).parent}: Not a directory" in err
        assert sorted(os.listdir()) == ["photos", "run"]

    def test_of_table_and_ensemble_both_are_written_or_neither(self, place, adapt, monkeypatch):
        wishes = ("run", "photos", "--out", "a.csv", "--save", "run2", "--method", "bn")

        def full(file, data):
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as patch:
            patch.setattr("bacs.files.write", full)
            code, _, err = adapt(*wishes)
        assert code == 1
        assert "could not save to run2: No space left on device" in err
        assert not Path("a.csv").exists()
        assert adapt(*wishes)[0] == 0  # nothing is in its way
        assert Path("a.csv").exists()

    def test_a_training_run_is_never_replaced(self, place, adapt):
        os.mkdir("training")
        manifest = json.loads(Path("run/bacs.json").read_text())
        del manifest["sha256"]
        Path("training/bacs.json").write_text(json.dumps(seal(manifest | {"kind": "run"})))
        code, _, err = adapt("run", "photos", "--out", "a.csv", "--save", "training", "--overwrite")
        assert code == 2
        assert "training holds a run, which is not replaced" in err

    def test_overwrite_replaces_table_and_ensemble(self, place, adapt):
        for _ in range(2):
            assert adapt("run", "photos", "--out", "a.csv", "--save", "run2", "--overwrite")[0] == 0
        assert bacs.load("run2").adaptation["method"] == "auto"


class TestCheckpoints:
    def test_without_a_size_the_command_says_what_to_do_and_size_does_it(self, place, adapt):
        unsized = replace(SIZED, size=None)
        bacs.Ensemble([replace(small_member(), preprocessing=unsized)]).save("old")
        code, _, err = adapt("old", "photos", "--out", "a.csv")
        assert code == 1
        assert "photos/01.png has 13 x 30 pixels and photos/00.png 12 x 30" in err
        assert "--size HEIGHT WIDTH" in err
        assert adapt("old", "photos", "--size", 12, 12, "--out", "a.csv", "--save", "new")[0] == 0
        assert bacs.load("new").members[0].preprocessing == SIZED

    def test_a_run_without_a_size_says_so_before_any_picture_is_read(self, place, adapt):
        bacs.Ensemble([replace(small_member(), preprocessing=replace(SIZED, size=None))]).save("old")
        said = "old does not say which size its models take"
        assert said in adapt("old", "photos/00.png", "--out", "a.csv")[2]
        assert said in adapt("old", "nowhere", "--out", "b.csv")[2]
        for arguments in (("run", "photos"), ("old", "photos", "--size", 12, 12)):
            assert "which size" not in adapt(*arguments, "--out", f"{arguments[0]}.csv")[2]

    def test_a_training_run_that_lost_a_member_says_so(self, place, adapt, caplog):
        for index in range(2):
            bacs.Ensemble([replace(small_member(index), preprocessing=SIZED)]).save(f"training/member-{index}")
        checkpoints.write("whole", {"kind": "run", "recipe": {"members": 2}}, {})
        for name in ("member-0", "member-1"):
            shutil.copytree(f"training/{name}", f"whole/{name}")
        assert adapt("whole", "photos", "--out", "a.csv", "--method", "bn")[0] == 0
        assert caplog.messages == []
        shutil.rmtree("whole/member-0")
        assert "members: 1" in adapt("whole", "photos", "--out", "b.csv", "--method", "bn")[1]
        assert caplog.messages == ["whole has 1 of its 2 members: no member-0"]

    def test_without_preprocessing_pictures_are_refused(self, place, adapt):
        bacs.Ensemble([small_member()]).save("bare")
        code, _, err = adapt("bare", "photos", "--out", "a.csv")
        assert code == 2
        assert "pictures need a member with preprocessing" in err

    def test_members_of_different_sizes(self, place, adapt):
        sizes = [(12, 12), (16, 9)]
        members = [replace(small_member(n), preprocessing=replace(SIZED, size=s)) for n, s in enumerate(sizes)]
        bacs.Ensemble(members).save("sizes")
        for online in ((), ("--online",)):
            assert adapt("sizes", "photos", "--out", "a.parquet", "--method", "bn", "--overwrite", *online)[0] == 0
            alone = []
            for member in members:
                images = bacs.data.pictures("photos", member.preprocessing).images
                one = bacs.Ensemble([member])
                if online:
                    alone.append(bacs.stream(one, "bn").step(np.array(images)))
                else:
                    alone.append(bacs.adapt(one, images, "bn").predict(images))
            expected = torch.stack(alone).mean(dim=0).max(dim=1).values
            np.testing.assert_allclose([row["confidence"] for row in rows("a.parquet")], expected, atol=1e-6)

    def test_a_class_of_the_users_own(self, place, adapt, monkeypatch):
        Path("ours.py").write_text(
            "from torch import nn\n"
            "class Net(nn.Sequential):\n"
            "    def __init__(self):\n"
            "        super().__init__(nn.Flatten(), nn.LayerNorm(432), nn.Linear(432, 5))\n"
        )
        monkeypatch.syspath_prepend(place)
        model = import_module("ours").Net()
        member = bacs.Member(model, flat.init(read(model)), SIZED)
        bacs.Ensemble([member]).save("own")
        code, _, err = adapt("own", "photos", "--out", "a.csv")
        assert code == 1
        assert "ours:Net" in err
        code, out, err = adapt("own", "photos", "--out", "a.csv", "--model", "ours:Net")
        assert code == 0
        assert out.count("no batch-norm layers") == 1
        assert "no batch-norm layers" not in err


class TestArrays:
    @pytest.mark.parametrize("suffix", [".npy", ".npz"])
    def test_pixels_go_through_the_members_preprocessing(self, place, adapt, suffix):
        pixels = np.random.default_rng(1).integers(0, 256, (40, 15, 20, 3), dtype=np.uint8)
        np.save("a.npy", pixels)
        np.savez("a.npz", images=pixels)
        assert adapt("run", f"a{suffix}", "--method", "vanilla", "--out", "a.parquet")[0] == 0
        expected = bacs.load("run").predict(pixels).max(dim=1).values
        table = rows("a.parquet")
        np.testing.assert_allclose([row["confidence"] for row in table], expected, atol=1e-6)
        assert "path" not in table[0]
        assert [row["index"] for row in table] == list(range(40))

    @pytest.mark.parametrize("channel_axis", [True, False])
    def test_grey_arrays_are_taken_as_grey_pictures_are(self, place, adapt, channel_axis):
        grey = np.random.default_rng(1).integers(0, 256, (40, 15, 20, 1), dtype=np.uint8)
        np.save("grey.npy", grey if channel_axis else grey[..., 0])
        os.mkdir("grey")
        for number, image in enumerate(grey):
            Image.fromarray(image[..., 0]).save(f"grey/{number:02}.png")
        for source, out in (("grey.npy", "a.parquet"), ("grey", "b.parquet")):
            assert adapt("run", source, "--method", "vanilla", "--out", out)[0] == 0
        found, expected = ([row["confidence"] for row in rows(out)] for out in ("a.parquet", "b.parquet"))
        np.testing.assert_allclose(found, expected, atol=1e-9)

    @pytest.mark.parametrize(
        ("array", "code", "message"),
        [
            (PIXELS.astype(np.int32), 2, "pixels must be uint8, 0..255, got torch.int32"),
            (PIXELS.astype(np.uint16), 2, "pixels must be uint8, 0..255, got torch.uint16"),
            (PIXELS.astype(np.float32).transpose(0, 3, 1, 2), 2, "floats must be as the model takes them"),
            (PIXELS.astype(np.float32) / 255, 2, "tried were the first of [40, 12, 12, 3]"),
            (PIXELS[0], 1, "a.npy: (12, 12, 3) looks like one image"),
        ],
    )
    def test_what_an_array_should_be_is_said(self, place, adapt, array, code, message):
        np.save("a.npy", array)
        found, _, err = adapt("run", "a.npy", "--out", "a.csv")
        assert found == code
        assert message in err
        assert "groups=" not in err

    def test_text_that_is_named_like_an_array_is_said(self, place, adapt):
        Path("a.npy").write_text("hello\n")
        code, _, err = adapt("run", "a.npy", "--out", "a.csv")
        assert code == 1
        assert "a.npy: damaged or foreign .npy file (it begins with b'hello\\n')" in err

    def test_floats_are_what_the_model_takes(self, place, adapt, images):
        np.save("a.npy", images.numpy())
        assert adapt("run", "a.npy", "--method", "vanilla", "--out", "a.parquet")[0] == 0
        expected = bacs.load("run").predict(images).max(dim=1).values
        np.testing.assert_allclose([row["confidence"] for row in rows("a.parquet")], expected, atol=1e-6)

    def test_a_table_of_features_for_a_model_that_takes_no_images(self, place, adapt, monkeypatch):
        def tabular():
            return nn.Sequential(nn.Linear(7, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 3)).eval()

        monkeypatch.setattr(small, "tabular", tabular, raising=False)
        model = tabular()
        member = bacs.Member(model, flat.init(read(model)), architecture=bacs.Architecture("small:tabular"))
        bacs.Ensemble([member]).save("tabular")
        np.save("features.npy", np.random.default_rng(0).normal(size=(64, 7)))
        code, _, err = adapt("tabular", "features.npy", "--out", "a.parquet", "--model", "small:tabular")
        assert code == 0, err
        assert len(rows("a.parquet")) == 64
