"""`bacs posterior` as a person meets it: what they have becomes an ensemble with posteriors."""

import json
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from importlib import import_module

import numpy as np
import pytest
import torch
from PIL import Image

import bacs
from bacs import cli
from bacs.parameters import read
from bacs.posteriors import flat, kind_of
from bacs.pretrained.make import Plan, count_images, make

QUICK = ("--steps", "20")


def coloured(count, seed):
    """uint8 images whose brightest channel is their class."""
    random = np.random.default_rng(seed)
    labels = random.integers(0, 3, count)
    images = random.integers(0, 120, (count, 12, 12, 3))
    images[np.arange(count), :, :, labels] += 90
    return images.astype(np.uint8), labels.astype(np.int64)


@pytest.fixture
def data(tmp_path):
    x_train, y_train = coloured(40, seed=0)
    x_test, y_test = coloured(10, seed=1)
    np.savez(tmp_path / "coloured.npz", x_train=x_train, y_train=y_train, x_test=x_test, y_test=y_test)
    return str(tmp_path / "coloured.npz")


def network(seed):
    return bacs.training.initialised(lambda: bacs.models.build("resnet26", width=4, blocks=1, classes=3), seed).eval()


@pytest.fixture
def checkpoint(tmp_path):
    """A saved network without a posterior."""
    model = network(0)
    member = bacs.Member(model, flat.init(read(model)), bacs.Preprocessing((0.5,) * 3, (0.25,) * 3))
    bacs.Ensemble([member], class_names=["red", "green", "blue"]).save(tmp_path / "mine")
    return tmp_path / "mine"


@pytest.fixture
def run(capsys, tmp_path):
    def call(*arguments):
        try:
            code = cli.main(("posterior", *map(str, arguments), "--out", str(tmp_path / "out")))
        except SystemExit as exit:
            code = exit.code
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


def opened(tmp_path):
    return bacs.load(tmp_path / "out")


def test_a_pickled_network_is_refused_in_plain_words(run, data, tmp_path):
    torch.save(network(0), tmp_path / "whole.pt")
    code, _, err = run(tmp_path / "whole.pt", "--data", data, "--model", "resnet26")
    assert code == 1
    assert "holds a bacs.models.resnet26.ResNet26, a whole object that would run code; save model.state_dict()" in err
    assert "\x1b" not in err
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize("content", [b"", b"hello\n", b"PK\x03\x04 and no more"])
@pytest.mark.parametrize("suffix", [".pt", ".npz"])
def test_junk_that_is_named_like_weights_is_one_line(run, data, tmp_path, content, suffix):
    (tmp_path / f"w{suffix}").write_bytes(content)
    code, _, err = run(tmp_path / f"w{suffix}", "--data", data, "--model", "resnet26")
    assert code == 1
    assert f"w{suffix} cannot be read as weights: it is " in err
    assert len(err.splitlines()) == 1


def test_what_the_network_sees_wrongly_is_not_called_a_perfect_fit(run, data, tmp_path):
    torch.save(network(3).state_dict(), tmp_path / "w.pt")
    model = ("--model", "resnet26", "--model-arguments", "width=4", "blocks=1", "classes=3")
    code, _, err = run(
        *(tmp_path / "w.pt", "--data", data, *model, "--mean", 123, 116, 103, "--std", 58, 57, 57),
    )
    assert code == 2
    assert "mean must be on the scale 0..1, got 123: of pixels 0..255, divide by 255" in err
    # On the right scale and still wrong: this network was never trained.
    code, out, err = run(
        *(tmp_path / "w.pt", "--data", data, *model, "--mean", *(0.5,) * 3, "--std", *(0.25,) * 3, "--json"),
    )
    (entry,) = json.loads(out)["members"]
    assert entry["source_accuracy"] < 0.5
    assert f"source accuracy {entry['source_accuracy']:.2f} is that of guessing among 3 classes" in entry["guessing"]
    assert "is that of guessing" in " ".join(err.split())
    guessing = import_module("bacs.cli.work.posterior").guessing_warning
    assert [guessing(right, 1000, 10) is None for right in (0.08, 0.1, 0.13, 0.9)] == [False, False, True, True]


def test_a_misspelt_model_is_suggested(run, data, tmp_path):
    torch.save(network(0).state_dict(), tmp_path / "w.pt")
    code, _, err = run(tmp_path / "w.pt", "--data", data, "--model", "cifar_resnt")
    assert code == 2
    assert "an import path package.module:Class; got 'cifar_resnt' (did you mean 'cifar_resnet'?)" in err


def test_data_of_fewer_classes_than_the_model_name_none(run, tmp_path):
    images, labels = coloured(20, seed=0)
    np.savez(tmp_path / "two.npz", x_train=images[labels < 2], y_train=labels[labels < 2])
    model = network(0)
    member = bacs.Member(model, flat.init(read(model)), bacs.Preprocessing((0.5,) * 3, (0.25,) * 3))
    bacs.Ensemble([member]).save(tmp_path / "nameless")
    code, _, err = run(tmp_path / "nameless", "--data", tmp_path / "two.npz")
    assert code == 0, err
    assert opened(tmp_path).class_names is None
    assert opened(tmp_path).predict(images).shape == (20, 3)


def test_members_without_a_size_take_that_of_the_source_images(run, checkpoint, data, tmp_path):
    assert bacs.load(checkpoint).members[0].preprocessing.size is None
    assert run(checkpoint, "--data", data, "--images", "8")[0] == 0
    assert opened(tmp_path).members[0].preprocessing.size == (12, 12)


def test_a_checkpoint_gets_a_fisher_posterior_from_as_many_images_as_asked_for(run, checkpoint, data, tmp_path):
    code, out, _ = run(checkpoint, "--data", data, "--images", "12")
    assert code == 0
    ensemble = opened(tmp_path)
    (member,) = ensemble.members
    assert list(ensemble.class_names) == ["red", "green", "blue"]
    assert (member.posterior.count, member.posterior.source_size, member.posterior.prior_precision) == (12, 40, 1.0)
    assert all(torch.equal(p, q) for p, q in zip(member.model.parameters(), network(0).parameters(), strict=True))
    assert "member 0  fisher_diag  precision" in out
    assert f"scale {member.posterior_scale:.3g}\n" in out
    assert f"bacs.load('{tmp_path / 'out'}') opens 1 member" in out


def test_adapt_holds_a_fisher_posterior_by_its_scale(run, checkpoint, data, tmp_path, capsys):
    _, out, _ = run(checkpoint, "--data", data, "--json")
    scale = json.loads(out)["members"][0]["posterior_scale"]
    (member,) = opened(tmp_path).members
    assert member.posterior_scale == scale > 100  # far from SWAG's 1
    bacs.Ensemble([replace(member, posterior_scale=1.0)]).save(tmp_path / "plain")

    def adapt(folder, *arguments):
        wishes = ("adapt", tmp_path / folder, data, "--method", "bacs", "--out", tmp_path / "a.csv", "--overwrite")
        assert cli.main([str(word) for word in (*wishes, "--learning-rate", "0.1", "--json", *arguments)]) == 0
        told = json.loads(capsys.readouterr().out)
        return told["settings"]["posterior_weight"], told["moved"][0]

    weight, moved = adapt("out")
    assert weight == 1e-4
    assert moved == pytest.approx(adapt("plain", "--posterior-weight", str(1e-4 * scale))[1], rel=1e-3)
    assert moved < 0.9 * adapt("plain")[1]  # where 1e-4 does nothing
    assert adapt("out", "--online")[1] == pytest.approx(
        adapt("plain", "--online", "--posterior-weight", str(1e-4 * scale))[1], rel=1e-3
    )


@pytest.mark.parametrize(
    ("wish", "message"),
    [
        (("--images", "8"), "images must be left out: the checkpoint has a posterior, which is kept; --kind fisher"),
        (("--steps", "40"), "steps must be left out: nothing is trained with it; --kind swag trains, --members-from"),
        (("--learning-rate", "0.1"), "learning_rate must be left out: nothing is trained with it; --kind swag trains"),
        (("--kind", "fisher", "--steps", "40"), "steps must be left out"),
        (("--members-from", "heads", "--learning-rate", "0.1"), "learning_rate must be left out"),
    ],
)
def test_wishes_that_nothing_would_come_of_are_refused(run, checkpoint, data, tmp_path, wish, message):
    run(checkpoint, "--data", data, "--kind", "swag", *QUICK)
    (tmp_path / "out").rename(tmp_path / "swag")
    code, _, err = run(tmp_path / "swag", "--data", data, *wish)
    assert code == 2
    assert message in err


def test_little_information_is_said_once_per_member(run, checkpoint, data):
    _, _, err = run(checkpoint, "--data", data, "--images", "12")  # of a network that was never trained
    assert " ".join(err.split()).count("member 0: the Fisher posterior is mostly its prior: ") == 1


def test_short_swag_collects_a_trajectory(run, checkpoint, data, tmp_path):
    code, _, _ = run(checkpoint, "--data", data, "--kind", "swag", *QUICK)
    assert code == 0
    (member,) = opened(tmp_path).members
    assert kind_of(member.posterior) == "swag_diag"
    assert member.posterior.count == 2


@pytest.mark.parametrize(
    ("way", "kind"),
    [
        (("samples", "--images", "12"), "fisher_diag"),
        (("samples", "--kind", "swag", *QUICK), "swag_diag"),
        (("heads", "--images", "12", *QUICK), "fisher_diag"),
        (("seeds", *QUICK), "swag_diag"),
    ],
)
def test_one_checkpoint_becomes_several_different_members(run, checkpoint, data, tmp_path, way, kind):
    code, _, _ = run(checkpoint, "--data", data, "--members", "3", "--members-from", *way)
    assert code == 0
    ensemble = opened(tmp_path)
    assert [kind_of(member.posterior) for member in ensemble.members] == [kind] * 3
    heads = [read(member.model)["head.weight"] for member in ensemble.members]
    assert not torch.equal(heads[0], heads[1])
    assert not torch.equal(heads[1], heads[2])
    images, _ = coloured(10, seed=1)
    assert bacs.adapt(ensemble, images, "bacs").predict(images).shape == (10, 3)


def test_several_checkpoints_become_one_ensemble(run, checkpoint, data, tmp_path):
    other = network(1)
    bacs.Ensemble([bacs.Member(other, flat.init(read(other)), bacs.Preprocessing((0.5,) * 3, (0.25,) * 3))]).save(
        tmp_path / "second"
    )
    code, _, _ = run(checkpoint, tmp_path / "second", "--data", data, "--images", "8")
    assert code == 0
    assert torch.equal(read(opened(tmp_path).members[1].model)["head.weight"], read(other)["head.weight"])


def test_a_posterior_that_is_there_is_kept_unless_another_is_asked_for(run, checkpoint, data, tmp_path):
    run(checkpoint, "--data", data, "--kind", "swag", *QUICK)
    (tmp_path / "out").rename(tmp_path / "swag")
    code, out, _ = run(tmp_path / "swag", "--data", data, "--members", "2", "--members-from", "samples", "--json")
    assert code == 0
    assert [entry["kind"] for entry in json.loads(out)["members"]] == ["swag_diag"] * 2


def test_weight_files_become_members_of_a_named_model(run, data, tmp_path):
    torch.save(network(3).state_dict(), tmp_path / "weights.pt")
    model = ("--model", "resnet26", "--model-arguments", "width=4", "blocks=1", "classes=3")
    code, _, _ = run(
        *(tmp_path / "weights.pt", "--data", data, "--images", "8", *model),
        *("--mean", ".5", ".5", ".5", "--std", ".25", ".25", ".25"),
    )
    assert code == 0
    (member,) = opened(tmp_path).members
    assert torch.equal(read(member.model)["head.weight"], read(network(3))["head.weight"])
    assert member.preprocessing == bacs.Preprocessing((0.5,) * 3, (0.25,) * 3, size=(12, 12))


def test_a_folder_of_pictures_gives_a_weight_file_the_size_it_was_read_at(run, tmp_path):
    images, _ = coloured(8, seed=0)
    for number, image in enumerate(images):
        place = tmp_path / "pictures" / "ab"[number % 2] / f"{number}.png"
        place.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).resize((20, 14)).save(place)
    torch.save(network(3).state_dict(), tmp_path / "weights.pt")
    model = ("--model", "resnet26", "--model-arguments", "width=4", "blocks=1", "classes=3")
    channels = ("--mean", ".5", ".5", ".5", "--std", ".25", ".25", ".25")
    code, _, err = run(tmp_path / "weights.pt", "--data", tmp_path / "pictures", "--size", "12", *model, *channels)
    assert code == 0, err
    (member,) = opened(tmp_path).members
    # `bacs adapt` then sees a file as the posterior did.
    read_here = bacs.data.load(str(tmp_path / "pictures"), split="train", size=12).images[:]
    again = bacs.data.pictures(str(tmp_path / "pictures"), member.preprocessing)
    assert sorted(image.tobytes() for image in again.images) == sorted(image.tobytes() for image in read_here)


def test_a_class_in_the_present_folder_is_found_by_name(data, tmp_path):
    (tmp_path / "ours.py").write_text(
        "import bacs\n\n\ndef net():\n    return bacs.models.build('resnet26', width=4, blocks=1, classes=3)\n"
    )
    torch.save(network(3).state_dict(), tmp_path / "weights.pt")
    channels = ("--mean", ".5", ".5", ".5", "--std", ".25", ".25", ".25")
    made = (
        "posterior",
        "weights.pt",
        "--data",
        data,
        "--images",
        "8",
        "--model",
        "ours:net",
        *channels,
        "--out",
        "out",
    )
    # A process of its own: as a console script does, it looks for modules where the script is, not where it is called.
    script = tmp_path / "elsewhere" / "bacs.py"
    script.parent.mkdir()
    script.write_text("import sys\nsys.path.pop(0)\nfrom bacs.cli import main\nsys.exit(main())\n")
    done = subprocess.run([sys.executable, script, *made], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out" / "bacs.json").exists()


def test_json_has_the_scale_of_every_posterior(run, checkpoint, data):
    _, out, _ = run(checkpoint, "--data", data, "--images", "12", "--json")
    (entry,) = json.loads(out)["members"]
    assert entry["kind"] == "fisher_diag"
    assert entry["precision"]["low"] <= entry["precision"]["median"] <= entry["precision"]["high"]
    assert 0 <= entry["prior_share"] <= 1
    assert entry["posterior_scale"] == pytest.approx(0.2 * 0.1 / 1e-3 / entry["precision"]["median"] / 1e-4)
    assert 0 <= entry["source_accuracy"] <= 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--members", "3"), "members must be 1 unless members_from says how they differ, got 3"),
        (("--kind", "fisher", "--members-from", "seeds"), "kind must be swag for members from seeds"),
        (("--members-from", "heads", "--steps", "0"), "steps must be at least 1, got 0"),
        (("--kind", "swag", "--steps", "19"), "steps must be at least 20, got 19"),
        (("--kind", "swag", "--learning-rate", "0"), "learning_rate must be > 0 and finite, got 0"),
        (("--images", "1"), "images must be at least 2, got 1"),
        (("--mean", "0.5", "--std", "0.5"), "model_arguments, mean and std belong to weight files"),
    ],
)
def test_what_is_impossible_is_said_before_any_work(run, checkpoint, data, tmp_path, arguments, message):
    code, _, err = run(checkpoint, "--data", data, *arguments)
    assert code == 2
    assert message in err
    assert not (tmp_path / "out").exists()


def test_failures_have_one_line_and_code_1(run, checkpoint, data, tmp_path):
    code, _, err = run(tmp_path / "nothing", "--data", data)
    assert code == 1
    assert "is not a saved ensemble" in err
    np.savez(tmp_path / "bare.npz", x_train=coloured(8, 0)[0], x_test=coloured(8, 0)[0])
    code, _, err = run(checkpoint, "--data", tmp_path / "bare.npz", "--kind", "swag")
    assert code == 1
    assert "has no labels, which swag and new heads are trained on" in err
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.tex").write_text("mine")
    code, _, err = run(checkpoint, "--data", data)
    assert code == 1
    assert "holds something else; choose a new folder" in err


def test_unlabelled_images_are_enough_for_fisher(run, checkpoint, tmp_path):
    np.savez(tmp_path / "bare.npz", x_train=coloured(8, 0)[0], x_test=coloured(8, 0)[0])
    code, out, _ = run(checkpoint, "--data", tmp_path / "bare.npz")
    assert code == 0
    assert "accuracy" not in out


def test_a_weight_file_needs_the_name_of_its_model(run, data, tmp_path):
    torch.save(network(3).state_dict(), tmp_path / "weights.pt")
    code, _, err = run(tmp_path / "weights.pt", "--data", data)
    assert code == 2
    assert "model must name what the weights" in err
    code, _, err = run(tmp_path / "weights.pt", "--data", data, "--model", "resnet26", "--model-arguments", "width")
    assert code == 2
    assert "model_arguments must be like depth=20, got 'width'" in err


@pytest.mark.filterwarnings("ignore:the Fisher posterior is mostly its prior")
@pytest.mark.parametrize("way", [None, "samples", "heads", "seeds"])
@pytest.mark.parametrize("kind", [None, "fisher", "swag"])
def test_the_progress_bar_ends_where_the_work_does(checkpoint, data, way, kind):
    if (way, kind) == ("seeds", "fisher"):
        return
    plan = Plan(kind, 2 if way else 1, way, images=10, steps=25)
    (member,) = bacs.load(checkpoint).members
    source = bacs.data.load(data, split="train")
    seen = Counter()
    make(member, source, plan, on_batch=lambda count: seen.update(images=count))
    assert seen["images"] == count_images(member, source, plan)
