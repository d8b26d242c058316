"""Sweeps: what is in a record, what is skipped, what happens when cells fail or processes die."""

import io
import json
import multiprocessing
import os
import re
import signal
import threading
import time
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console

import bacs
from bacs.adaptation import forward
from bacs.benchmark import images, plan, records, run_checksum, store, sweep
from bacs.benchmark.recipe import parse
from bacs.engine import Place
from bacs.errors import DataError, RunError
from tiny import scores_of, tiny_ensemble


def quiet():
    return Console(file=io.StringIO(), width=200)


def run(recipe, run_folder, out, **options):
    return sweep(recipe, run_folder, out, **({"place": Place(workers=1), "console": quiet()} | options))


def by_cell(out):
    return {record["id"]: record for record in records(out)}


@pytest.fixture(scope="module")
def swept(run_folder, tmp_path_factory):
    """One whole sweep over offline and online, on one worker."""
    out = tmp_path_factory.mktemp("sweeps") / "whole"
    recipe = parse(
        {
            "shifts": ["fashion-mnist-part-c/fog/5"],
            "methods": ["vanilla", "bn", "tent", "bacs"],
            "protocols": ["offline", "online"],
            "epochs": [1, 2],
            "batch_size": 16,
            "limit": 48,
            "seed": 3,
            "method": {"bacs": {"learning_rate": 0.01, "posterior_weight": 0.001}},
        }
    )
    summary = run(recipe, run_folder, out)
    return recipe, out, summary


def test_every_cell_has_a_record_and_nothing_else_is_left(swept):
    recipe, out, summary = swept
    assert summary == (9, 0, 9, {})  # vanilla 1, bn 2, tent and bacs 3 each
    assert sorted(by_cell(out)) == sorted(cell.id for cell in plan(recipe))
    assert sorted(file.name for file in out.iterdir()) == ["records", "sweep.json"]


def test_scores_are_those_of_evaluate(swept, run_folder):
    _, out, _ = swept
    shift = bacs.data.shift("fashion-mnist-part-c/fog/5", limit=48, seed=3)
    ensemble = bacs.load(run_folder)
    checked = 0
    for record in records(out):
        offline = {"epochs": record["epochs"], "seed": 3} if record["protocol"] == "offline" else {}
        how = {"protocol": record["protocol"], **record["settings"], **offline}
        expected = bacs.evaluate(ensemble, np.array(shift.images), shift.labels, record["method"], **how)
        assert record["members"] == expected.members
        assert record["ensemble"] == expected.ensemble
        assert record["single"] == expected.single
        checked += 1
    assert checked == 9


def test_classes_and_curves_agree_with_the_scores(swept):
    _, out, _ = swept
    labels = bacs.data.shift("fashion-mnist-part-c/fog/5", limit=48).labels
    counts = np.bincount(labels, minlength=10)
    for record in records(out):
        assert record["images"] == 48
        shares = [count * (share or 0.0) for count, share in zip(counts, record["class_accuracy"], strict=True)]
        assert sum(shares) / 48 == pytest.approx(record["ensemble"]["accuracy"])
        assert [share is None for share in record["class_accuracy"]] == [count == 0 for count in counts]
        curve = record["reliability"]
        gaps = np.abs(np.array(curve["confidence"]) - np.array(curve["accuracy"]))
        assert len(gaps) == 20
        assert gaps.mean() == pytest.approx(record["ensemble"]["ece"])
        risk = record["risk_coverage"]
        assert risk["coverage"][-1] == 1
        assert risk["risk"][-1] == pytest.approx(1 - record["ensemble"]["accuracy"])


def test_a_record_says_where_it_comes_from(swept, run_folder):
    _, out, _ = swept
    record = by_cell(out)["fashion-mnist-part-c.fog.5--bacs--offline--2"]
    assert (record["data"], record["corruption"], record["severity"]) == ("fashion-mnist-part-c", "fog", 5)
    assert (record["seed"], record["limit"], record["error"], record["format"]) == (3, 48, None, 2)
    assert record["settings"]["learning_rate"] == 0.01
    assert record["class_names"][0] == "T-shirt/top"
    assert record["run"] == {"sha256": run_checksum.identify_run(run_folder)["sha256"], "members": 2, "name": "tiny"}
    assert set(record["versions"]) == {"bacs", "torch", "numpy", "python"}
    seconds = record["seconds"]
    assert seconds["total"] >= seconds["passes"] > 0
    assert record["images_per_second"] == pytest.approx(48 * 2 / seconds["passes"])
    manifest = json.loads((out / "sweep.json").read_text())
    assert manifest["recipe"]["shifts"] == ["fashion-mnist-part-c/fog/5"]
    assert manifest["run"] == record["run"]


def test_finished_cells_are_left_alone_and_new_ones_added(recipe, run_folder, tmp_path):
    out = tmp_path / "out"
    assert run(replace(recipe, methods=("vanilla",)), run_folder, out) == (2, 0, 2, {})
    before = {file.name: file.stat().st_mtime_ns for file in (out / "records").iterdir()}
    assert run(replace(recipe, methods=("bn", "vanilla")), run_folder, out) == (4, 2, 2, {})
    after = {file.name: file.stat().st_mtime_ns for file in (out / "records").iterdir()}
    assert {name: after[name] for name in before} == before
    assert len(after) == 4


def test_several_workers_give_the_same_records_and_share_one_making_of_images(recipe, run_folder, tmp_path):
    one = replace(recipe, corruptions=("fog",), methods=("vanilla", "bn", "tent", "bacs", "bacs-no-posterior"))
    assert run(one, run_folder, tmp_path / "one").finished == 5
    assert run(one, run_folder, tmp_path / "two", place=Place(workers=2)).finished == 5
    assert scores_of(tmp_path / "one") == scores_of(tmp_path / "two")


def test_images_are_made_once_for_all_cells_of_a_shift(recipe, run_folder, tmp_path, monkeypatch):
    made = []
    write = images._write
    monkeypatch.setattr(images, "_write", lambda shift, folder: (made.append(shift.name), write(shift, folder)))
    assert run(recipe, run_folder, tmp_path / "out").finished == 8
    assert made == ["fashion-mnist-part-c/gaussian_noise/5", "fashion-mnist-part-c/fog/5"]


def test_a_cell_that_fails_is_recorded_and_stops_no_other(recipe, run_folder, tmp_path):
    wild = replace(recipe, methods=("bn", "bacs-no-posterior"), method={"bacs-no-posterior": {"learning_rate": 1e30}})
    summary = run(wild, run_folder, tmp_path / "out")
    assert (summary.cells, summary.finished) == (4, 2)
    failed = {record["id"]: record for record in records(tmp_path / "out") if record["error"]}
    assert set(failed) == set(summary.failed)
    for record in failed.values():
        assert record["error"].startswith("DivergenceError: ")
        assert "\n" not in record["error"]
        assert "ensemble" not in record
        assert "in forward" in record["traceback"]


def test_a_failed_cell_is_tried_again_with_other_settings_if_need_be(recipe, run_folder, tmp_path):
    wild = replace(recipe, methods=("bacs-no-posterior",), method={"bacs-no-posterior": {"learning_rate": 1e30}})
    assert len(run(wild, run_folder, tmp_path / "out").failed) == 2
    assert len(run(wild, run_folder, tmp_path / "out").failed) == 2
    calm = replace(wild, method={})
    assert run(calm, run_folder, tmp_path / "out") == (2, 0, 2, {})
    assert all(record["error"] is None for record in records(tmp_path / "out"))


def test_data_that_one_shift_lacks_fails_its_cells_alone(run_folder, tmp_path):
    recipe = parse({"shifts": ["mnist", "fashion-mnist-part"], "methods": ["vanilla", "bn"], "limit": 16})
    summary = run(recipe, run_folder, tmp_path / "out", data_dir=tmp_path / "nowhere")
    assert summary.finished == 2
    assert {name.split("--")[0]: error[:16] for name, error in summary.failed.items()} == {"mnist": "DataError: mnist"}


def test_data_that_all_shifts_lack_are_said_before_any_work(run_folder, tmp_path):
    recipe = parse({"shifts": ["mnist", "cifar10.1"], "methods": ["vanilla"]})
    with pytest.raises(DataError, match="mnist: put"):
        run(recipe, run_folder, tmp_path / "out", data_dir=tmp_path / "nowhere")
    assert not (tmp_path / "out").exists()


def test_a_run_that_does_not_fit_the_data_is_said_before_any_work(recipe, tmp_path):
    tiny_ensemble(classes=7).save(tmp_path / "seven")
    with pytest.raises(
        RunError, match=r"seven tells 7 classes apart and .*gaussian_noise/5 has 10: is it the right run"
    ):
        run(recipe, tmp_path / "seven", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_another_ensemble_under_the_same_name_is_noticed(recipe, tmp_path):
    tiny_ensemble().save(tmp_path / "run")
    run(recipe, tmp_path / "run", tmp_path / "out")
    tiny_ensemble().save(tmp_path / "run")  # the same content
    assert run(recipe, tmp_path / "run", tmp_path / "out").skipped == 8
    tiny_ensemble(seeds=(0, 2)).save(tmp_path / "run")
    with pytest.raises(RunError, match="the run's sha256 is"):
        run(recipe, tmp_path / "run", tmp_path / "out")


def test_a_run_that_changes_while_it_is_swept_fails_the_cells_that_met_it(recipe, tmp_path):
    tiny_ensemble().save(tmp_path / "run")
    known = run_checksum.identify_run(tmp_path / "run")["sha256"]
    tiny_ensemble(seeds=(5, 6)).save(tmp_path / "run")
    run_checksum.open_unchanged.cache_clear()
    with pytest.raises(RunError, match="has changed since the sweep began"):
        run_checksum.open_unchanged(tmp_path / "run", known)


def test_a_killed_worker_costs_no_cell(recipe, run_folder, tmp_path):
    out = tmp_path / "out"
    killed = []

    def kill_one():
        until = time.monotonic() + 60
        while not killed and time.monotonic() < until:
            if list(out.glob("working/*/progress/*")):
                worker = multiprocessing.active_children()[0]
                os.kill(worker.pid, signal.SIGKILL)
                killed.append(worker.pid)
            time.sleep(0.01)

    thread = threading.Thread(target=kill_one)
    thread.start()
    summary = run(replace(recipe, methods=("bacs",), epochs=(20,)), run_folder, out, place=Place(workers=2))
    thread.join()
    assert len(killed) == 1
    assert summary == (2, 0, 2, {})


def test_a_process_that_always_dies_is_the_failure_of_its_cell(recipe, run_folder, tmp_path, monkeypatch):
    out = tmp_path / "out"

    def outcomes(function, jobs, **options):
        from bacs.engine import Outcome
        from bacs.engine.outcome import attempt, job_lost

        for index, job in enumerate(jobs):
            yield Outcome(index, *((None, job_lost(3, "signal SIGKILL")) if index == 1 else attempt(function, job)), 1)

    monkeypatch.setattr("bacs.engine.jobs._run_here", outcomes)
    summary = run(recipe, run_folder, out)
    assert summary.finished == 7
    ((name, error),) = summary.failed.items()
    assert error == "RunError: the job's process died 3 times (signal SIGKILL); out of memory, or killed?"
    assert by_cell(out)[name]["error"] == error


def test_ray_that_is_not_there_is_no_failure_of_cells(recipe, run_folder, tmp_path, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(RunError, match="engine 'ray' needs Ray"):
        run(recipe, run_folder, tmp_path / "out", place=Place("ray"))
    assert records(tmp_path / "out") == []


def test_progress_counts_work_and_not_cells(recipe, run_folder, tmp_path):
    console = quiet()
    run(
        replace(recipe, corruptions=("fog",), methods=("bn", "bacs"), epochs=(5,)),
        run_folder,
        tmp_path / "out",
        console=console,
    )
    lines = console.file.getvalue().splitlines()
    assert re.fullmatch(r"1/2 cells  \d+:\d\d left  fashion-mnist-part-c/fog/5 bacs 5 epochs", lines[0])
    assert lines[1] == "2/2 cells  fashion-mnist-part-c/fog/5 bn offline"


def test_steps_are_compiled_if_asked_for(recipe, run_folder, tmp_path, monkeypatch):
    called = []
    monkeypatch.setattr(forward, "_compiled_call", lambda: lambda model, inputs: called.append(model) or model(inputs))
    one = replace(recipe, methods=("bn", "bacs"), corruptions=("fog",))
    run(one, run_folder, tmp_path / "plain")
    assert not called
    run(one, run_folder, tmp_path / "compiled", compile=True)
    assert len(called) == 4  # two members, two batches; BN takes no steps
    assert [record["compile"] for record in records(tmp_path / "compiled")] == [True, True]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"workers": 0}, "workers must be at least 1, got 0"),
        ({"threads": 0}, "threads must be at least 1, got 0"),
        ({"engine": "rai"}, "engine must be one of local, ray; got 'rai'"),
        ({"device": "gpu"}, "device must be cpu or cuda, got 'gpu'"),
    ],
)
def test_wrong_options_are_named(recipe, run_folder, tmp_path, options, message):
    with pytest.raises(ValueError, match=message):
        run(recipe, run_folder, tmp_path / "out", place=Place(**options))


def test_a_stream_is_no_run(recipe, run_folder, tmp_path):
    bacs.stream(bacs.load(run_folder), "bacs").save(tmp_path / "stream")
    with pytest.raises(RunError, match="holds a stream; a sweep begins with a training run or a saved ensemble"):
        run(recipe, tmp_path / "stream", tmp_path / "out")


def test_a_folder_in_use_is_refused(recipe, run_folder, tmp_path):
    with store.lock_folder(tmp_path / "out"), pytest.raises(RunError, match="is being filled by another process"):
        run(recipe, run_folder, tmp_path / "out")
