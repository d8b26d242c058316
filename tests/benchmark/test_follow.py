"""Streams of several shifts: no reset, every image in one window, and the scores of a loop written by hand."""

import io
from dataclasses import replace

import numpy as np
import pytest
import torch
from rich.console import Console

import bacs
from bacs.agreement import pairwise
from bacs.benchmark import plan, records, sweep
from bacs.benchmark.clock import Clock
from bacs.benchmark.follow import follow, window_bounds
from bacs.benchmark.recipe import parse
from bacs.data import continual_names
from bacs.engine import Place
from bacs.errors import RunError
from bacs.metrics import scores_of
from small import small_member
from tiny import tiny_ensemble

CORRUPTIONS = ["gaussian_noise", "fog", "snow"]
RECIPE = {
    "data": "fashion-mnist-part-c",
    "corruptions": CORRUPTIONS,
    "methods": ["vanilla", "bn", "bacs"],
    "protocols": ["continual"],
    "batch_size": 16,
    "learning_rate": 0.05,
    "limit": 49,  # of three batches the last would be a single image
    "window": 20,  # two of a shift, the second with the rest
    "seed": 3,
}
NAMES = continual_names("fashion-mnist-part-c", CORRUPTIONS)


def run(recipe, run_folder, out, **options):
    console = Console(file=io.StringIO(), width=200)
    return sweep(recipe, run_folder, out, **({"place": Place(workers=1), "console": console} | options))


@pytest.fixture(scope="module")
def swept(run_folder, tmp_path_factory):
    out = tmp_path_factory.mktemp("streams") / "continual"
    assert run(parse(RECIPE), run_folder, out) == (3, 0, 3, {})
    return out


def by_method(out):
    return {record["method"]: record for record in records(out)}


def shuffled(number):
    """Images and labels of the shift at this place of the stream, in the order of their arrival."""
    shift = bacs.data.shift(NAMES[number], limit=49, seed=3)
    order = np.random.default_rng((3, number)).permutation(49)
    return np.asarray(shift.images)[order], shift.labels[order]


def settings_of(record):
    return {name: value for name, value in record["settings"].items() if name != "batch_size"}


@pytest.mark.parametrize("method", ["vanilla", "bn", "bacs"])
def test_a_cell_is_the_hand_written_loop(swept, run_folder, method):
    record, ensemble = by_method(swept)[method], bacs.load(run_folder)
    streams = [bacs.stream(ensemble, method, **settings_of(record))]
    streams += [bacs.stream(bacs.Ensemble([member]), method, **settings_of(record)) for member in ensemble.members]
    predicted, labels = [[] for _ in streams], []
    for number in range(3):
        images, own = shuffled(number)
        labels.append(own)
        for batch in (images[:16], images[16:32], images[32:47], images[47:]):
            for rows, stream in zip(predicted, streams, strict=True):
                rows.append(stream.step_predictive(batch).probabilities)
    whole, *members = [scores_of(torch.cat(rows), np.concatenate(labels)) for rows in predicted]
    assert record["ensemble"] == pytest.approx(whole, rel=1e-9)
    assert record["members"] == [pytest.approx(scores, rel=1e-9) for scores in members]
    assert record["single"]["nll"] == pytest.approx(np.mean([scores["nll"] for scores in members]))
    right = torch.cat(predicted[0]).argmax(dim=1).numpy() == np.concatenate(labels)
    assert record["class_accuracy"] == [
        pytest.approx(right[np.concatenate(labels) == number].mean()) for number in range(10)
    ]
    # A window by hand: the last 29 images of the second shift.
    window, rows = record["windows"][3], [torch.cat(each)[69:98] for each in predicted]
    assert window["ensemble"] == pytest.approx(scores_of(rows[0], labels[1][20:]), rel=1e-9)
    assert window["observed"]["agreement"] == pytest.approx(pairwise(rows[1:]))
    assert window["observed"]["confidence"] == pytest.approx(float(rows[0].max(dim=1).values.mean()))


def test_windows_have_every_image_once_and_never_two_shifts(swept):
    for record in records(swept):
        windows = record["windows"]
        assert [(each["shift"], each["first"], each["images"]) for each in windows] == [
            (name, 49 * number + start, count)
            for number, name in enumerate(NAMES)
            for start, count in ((0, 20), (20, 29))
        ]
        assert record["images"] == sum(each["images"] for each in windows) == 3 * 49
        for kind in ("single", "ensemble"):
            counts = [each["images"] * each[kind]["accuracy"] for each in windows]
            assert sum(counts) / (3 * 49) == pytest.approx(record[kind]["accuracy"])


@pytest.mark.parametrize("size", [1, 2, 3, 10])
def test_a_short_rest_joins_the_window_before(size):
    for images in range(1, 45):
        bounds = window_bounds(images, size)
        assert [start for start, _ in bounds] == [0, *(end for _, end in bounds[:-1])]
        assert bounds[-1][1] == images
        lengths = [end - start for start, end in bounds]
        assert set(lengths[:-1]) <= {size}
        assert size / 2 <= lengths[-1] < 1.5 * size or len(lengths) == 1


def test_nothing_is_reset_between_shifts(swept, run_folder):
    record, ensemble = by_method(swept)["bacs"], bacs.load(run_folder)
    alone = []
    for number in range(3):
        images, labels = shuffled(number)
        result = bacs.evaluate(ensemble, images, labels, "bacs", protocol="online", **record["settings"])
        alone.append([scores_of(result.probabilities[part], labels[part]) for part in (slice(20), slice(20, 49))])
    found = [window["ensemble"] for window in record["windows"]]
    assert found[:2] == [pytest.approx(scores, rel=1e-9) for scores in alone[0]]
    for later, separate in zip(found[2:], alone[1] + alone[2], strict=True):
        assert later["nll"] != pytest.approx(separate["nll"], rel=1e-6)


def test_vanilla_has_nothing_to_reset(swept, run_folder):
    record, ensemble = by_method(swept)["vanilla"], bacs.load(run_folder)
    for number in range(3):
        images, labels = shuffled(number)
        scores = bacs.evaluate(ensemble, images[:20], labels[:20], "vanilla").ensemble
        assert record["windows"][2 * number]["ensemble"] == pytest.approx(scores, rel=1e-6)


def test_each_shift_is_made_once_and_nothing_of_it_is_left(run_folder, tmp_path, monkeypatch):
    made, shift = [], bacs.data.shift

    def counted(name, **options):
        made.append((name, options["limit"]))
        return shift(name, **options)

    monkeypatch.setattr(bacs.data, "shift", counted)
    recipe = parse({key: value for key, value in RECIPE.items() if key != "learning_rate"} | {"limit": 8})
    run(replace(recipe, corruptions=("fog",), protocols=("online", "gradual")), run_folder, tmp_path / "out")
    assert sorted(name for name, limit in made if limit == 8) == [
        f"fashion-mnist-part-c/fog/{severity}" for severity in (1, 2, 3, 4, 5)
    ]
    assert sorted(file.name for file in (tmp_path / "out").iterdir()) == ["records", "sweep.json"]
    (gradual,) = [r for r in records(tmp_path / "out") if (r["protocol"], r["method"]) == ("gradual", "bn")]
    assert [window["shift"][-1] for window in gradual["windows"]] == list("123454321")


def test_published_files_make_a_stream_too(tmp_path):
    folder, rng = tmp_path / "data" / "CIFAR-10-C", np.random.default_rng(0)
    folder.mkdir(parents=True)
    np.save(folder / "labels.npy", np.arange(50) % 10)  # ten images at five severities
    for name in ("fog", "snow"):
        np.save(folder / f"{name}.npy", rng.integers(0, 256, (50, 32, 32, 3), dtype=np.uint8))
    preprocessing = bacs.Preprocessing((0.5,) * 3, (0.25,) * 3)
    bacs.Ensemble([replace(small_member(0, classes=10), preprocessing=preprocessing)]).save(tmp_path / "run")
    how = {"methods": ["bn"], "protocols": ["continual"], "corruptions": ["fog", "snow"], "severities": [2]}
    recipe = parse({"data": "cifar10-c", "published": True, "batch_size": 5} | how)
    assert run(recipe, tmp_path / "run", tmp_path / "out", data_dir=tmp_path / "data").failed == {}
    (record,) = records(tmp_path / "out")
    assert record["shift"] == "cifar10-c/continual/2@published"
    assert [window["shift"] for window in record["windows"]] == [
        "cifar10-c/fog/2@published",
        "cifar10-c/snow/2@published",
    ]
    assert record["windows"][0]["observed"]["agreement"] is None  # one member has nobody to agree with


def test_a_shift_is_opened_when_the_one_before_it_has_passed():
    (cell,) = plan(replace(parse(RECIPE), methods=("bn",)))
    ensemble, counts, passed = tiny_ensemble(), [], []

    def shifts():
        for name in cell.sequence:
            passed.append(sum(counts))
            yield bacs.data.shift(name, limit=49)

    follow(cell, ensemble, shifts(), [], Clock(), counts.append)
    assert passed == [0, 49 * 2, 2 * 49 * 2]
    assert sum(counts) == 3 * 49 * 2  # images and members, as progress counts them


def test_a_second_call_skips_streams_and_another_stream_is_refused(swept, run_folder):
    assert run(parse(RECIPE), run_folder, swept).skipped == 3
    more = replace(parse(RECIPE), methods=("tent",))
    for changes, message in (
        ({"window": 30}, r"window of fashion-mnist-part-c/continual/5 is 20 there and 30 here"),
        (
            {"corruptions": ("gaussian_noise", "snow", "fog")},
            r"shift 2 of fashion-mnist-part-c/continual/5 is '.*/fog/5' there and '.*/snow/5' here",
        ),
        ({"corruptions": ("gaussian_noise", "fog")}, r"shift 3 of .* is '.*/snow/5' there and None here"),
    ):
        with pytest.raises(RunError, match=f"holds another sweep: {message}; choose another folder"):
            run(replace(more, **changes), run_folder, swept)
