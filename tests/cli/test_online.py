"""`bacs adapt --online --state`: rows as they come, the same end after any stop, pictures that are still to come."""

import csv
import json
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import bacs
from bacs import checkpoints, cli
from bacs.cli.work import online
from bacs.data import arrivals
from bacs.predictive import confidence_threshold
from small import small_member

KILLS = Path(__file__).parents[2] / "benchmarks" / "kill_streams.py"
SIZED = bacs.Preprocessing((0.5,) * 3, (0.25,) * 3, size=(12, 12))
NAMES = ["cat", "dog", "eel", "fox", "gnu"]


def paint(file, seed):
    pixels = np.random.default_rng(seed).integers(0, 256, (12, 15, 3), dtype=np.uint8)
    part = Path(f"{file}.part")  # not a picture by its name
    Image.fromarray(pixels).save(part, "PNG")
    part.rename(file)


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder to work in, with `run` of two members and `photos` of 41 pictures and a broken one."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("BACS_DEBUG", raising=False)
    members = [replace(small_member(seed), preprocessing=SIZED) for seed in range(2)]
    bacs.Ensemble(members, class_names=NAMES).save("run")
    os.mkdir("photos")
    for number in range(42):
        if number == 9:
            Path("photos/09.png").write_bytes(b"no picture")
        else:
            paint(f"photos/{number:02}.png", number)
    return tmp_path


@pytest.fixture
def adapt(capsys):
    """Runs the verb online, in batches of 8; exit code, standard output and error."""

    def run(images, *options, out="rows.csv", state="state"):
        words = ["run", images, "--online", "--state", state, "--out", out, "--batch-size", 8, *options]
        code = cli.main(["adapt", *map(str, words)])
        shown = capsys.readouterr()
        return code, shown.out, shown.err

    return run


def rows_of(file="rows.csv"):
    with open(file, newline="") as lines:
        return list(csv.DictReader(lines))


def stream_of(state="state"):
    """All that is kept, but for the name of the table."""
    manifest = checkpoints.read_manifest(Path(state))
    asked = manifest["stream"]["beside"].pop("asked")
    assert asked["batch_size"] == 8
    return manifest["stream"], manifest["files"]


@pytest.mark.parametrize("method", ["auto", "bacs"])
def test_rows_are_those_of_the_python_way(place, adapt, method):
    code, out, err = adapt("photos", "--method", method)
    assert code == 3  # a picture was skipped
    assert "skipped photos/09.png: not a picture" in err
    assert "images: 41, new: 41, pictures skipped: 1" in out
    stream, table = bacs.stream(bacs.load("run"), method), rows_of()
    pixels = bacs.data.pictures("photos", SIZED).images
    parts = [stream.step_predictive(pixels[a:b]) for a, b in ((0, 8), (8, 16), (16, 24), (24, 32), (32, 39), (39, 41))]
    mean = np.concatenate([part.probabilities.numpy() for part in parts])
    assert [row["path"] for row in table] == [f"photos/{number:02}.png" for number in range(42) if number != 9]
    assert [int(row["index"]) for row in table] == [number for number in range(42) if number != 9]
    assert [int(row["class_index"]) for row in table] == mean.argmax(axis=1).tolist()
    assert [row["class_name"] for row in table] == [NAMES[number] for number in mean.argmax(axis=1)]
    np.testing.assert_allclose([float(row["confidence"]) for row in table], mean.max(axis=1), rtol=1e-12)
    least = confidence_threshold(mean.max(axis=1)[:24], coverage=0.9)
    assert [row["abstain"] == "true" for row in table[16:24]] == (mean.max(axis=1)[16:24] < least).tolist()
    assert bacs.load("state").steps == stream.steps


def test_a_reset_every_so_many_steps_goes_on_with_the_state(place, adapt):
    words = ["--method", "tent", "--learning-rate", 0.05, "--reset-every", 2, "--save-every", 1]
    adapt("photos", *words, "--limit", 26)
    adapt("photos", *words)
    stream = bacs.load("state")
    assert [event.step for event in stream.history] == [2, 4, 6]
    assert {event.reason for event in stream.history} == {"every 2 steps"}
    assert "settings must be" in adapt("photos", *words[:-4])[2]


def test_a_state_from_before_there_were_resets_goes_on(place, adapt):
    adapt("photos", "--method", "tent", "--limit", 16)
    stream = bacs.load("state")
    del stream.beside["asked"]["settings"]["reset_every"]
    stream.save("state")
    assert "new: 26" in adapt("photos", "--method", "tent")[1]


def test_json_lines_and_probabilities(place, adapt):
    adapt("photos", "--probabilities", out="rows.jsonl")
    table = [json.loads(line) for line in Path("rows.jsonl").read_text().splitlines()]
    assert len(table) == 41
    assert all(max(row["probabilities"]) == row["confidence"] for row in table)


class Killed(BaseException):
    """The end of a process, as far as the code before it can tell."""


@pytest.mark.parametrize("save_every", [1, 2, 100])
@pytest.mark.parametrize("moment", [1, 2, 3, 5, 8])
def test_wherever_it_ends_the_same_command_goes_on_to_the_same_end(place, adapt, monkeypatch, save_every, moment):
    options = ("--method", "bacs", "--save-every", save_every)
    adapt("photos", *options, out="whole.csv", state="whole")
    calls, own = [], online.save if moment % 2 else online.GrowingTable.append

    def die(*arguments):
        """After half of the rows, or between the rows and the state."""
        calls.append(1)
        if len(calls) == (moment + 1) // 2:
            if moment % 2 == 0:
                table = arguments[0]
                table._file.write(b"half a ro")
            raise Killed
        return own(*arguments)

    target = (online, "save") if moment % 2 else (online.GrowingTable, "append")
    with monkeypatch.context() as patch:
        patch.setattr(*target, die)
        if save_every == 100 and moment in (3, 5):
            return  # it is saved once
        with pytest.raises(Killed):
            adapt("photos", *options)
    assert adapt("photos", *options)[0] == 3
    assert Path("rows.csv").read_bytes() == Path("whole.csv").read_bytes()
    assert stream_of() == stream_of("whole")


@pytest.mark.parametrize("what", ["online", "follow"])
def test_kills_lose_no_row_and_write_none_twice(tmp_path, what):
    """In small; `python benchmarks/kill_streams.py online --kills 20` does it at length."""
    command = [sys.executable, str(KILLS), what, "--kills", "3", "--images", "320", "--save-every", "3"]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run([*command, "--out", tmp_path / "kill.json"], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads((tmp_path / "kill.json").read_text())[what]
    assert len(found["kills"]) == 3
    assert found["equal"]


def test_a_second_call_goes_on_with_what_has_come_since(place, adapt):
    adapt("photos", "--method", "bacs")
    before = Path("rows.csv").read_bytes()
    assert "images: 41, new: 0," in adapt("photos", "--method", "bacs")[1]
    assert Path("rows.csv").read_bytes() == before
    paint("photos/00a.png", 100)
    paint("photos/99.png", 101)
    told = json.loads(adapt("photos", "--method", "bacs", "--json")[1])
    assert (told["images"], told["new"], told["skipped"], told["steps"]) == (43, 2, 1, 7)
    assert Path("rows.csv").read_bytes().startswith(before)
    assert [(row["index"], row["path"]) for row in rows_of()[-2:]] == [
        ("42", "photos/00a.png"),
        ("43", "photos/99.png"),
    ]


def test_paths_from_standard_input(place, adapt, monkeypatch):
    adapt("photos", out="whole.csv", state="whole")
    lines = [f"photos/{number:02}.png\n" for number in range(42)]
    for count in (20, 42):  # the second time all are named again
        Path("paths.txt").write_text("".join(lines[:count]) + "photos/03.png")
        with open("paths.txt") as file:
            monkeypatch.setattr(sys, "stdin", file)
            adapt("-", "--limit", count)
    assert [row["path"] for row in rows_of()] == [row["path"] for row in rows_of("whole.csv")]
    with open("paths.txt") as file:
        monkeypatch.setattr(sys, "stdin", file)
        adapt("-", out="piped.csv", state="piped")
    assert Path("piped.csv").read_bytes() == Path("whole.csv").read_bytes()


def test_what_had_arrived_before_a_kill_comes_first_and_in_its_order(place, adapt, monkeypatch):
    names = [f"photos/{number:02}.png" for number in range(42)]

    def read(order, *options, **how):
        Path("paths.txt").write_text("\n".join(order) + "\n")
        with open("paths.txt") as file:
            monkeypatch.setattr(sys, "stdin", file)
            return adapt("-", "--method", "bacs", "--save-every", 100, *options, **how)

    own, calls = online.predict_batch, []

    def take(*arguments):
        calls.append(own(*arguments))
        if len(calls) == 3:
            raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(online, "predict_batch", take)
        with pytest.raises(Killed):
            read(names[::-1])
    arrived = [json.loads(line) for line in Path("state/arrived.jsonl").read_text().splitlines()]
    assert arrived == names[::-1][: len(arrived)]
    assert len(arrived) >= 24 + 2  # three batches of rows, none of them in the state, and two read ahead
    read(names)
    read([*arrived, *(name for name in names if name not in arrived)], out="whole.csv", state="whole")
    assert Path("rows.csv").read_bytes() == Path("whole.csv").read_bytes()
    assert len({row["path"] for row in rows_of()}) == len(rows_of()) == 41


def wait_for_lines(count, file):
    until = time.monotonic() + 60
    while not Path(file).exists() or Path(file).read_bytes().count(b"\n") < count:
        assert time.monotonic() < until
        time.sleep(0.01)


def test_a_folder_that_fills_up_is_followed_until_it_is_stopped(place, adapt, monkeypatch):
    monkeypatch.setattr(arrivals, "SETTLED", 0.05)
    monkeypatch.setattr(online, "followed_names", partial(arrivals.followed_names, pause=0.02))
    os.mkdir("camera")
    handler = signal.getsignal(signal.SIGTERM)

    def fill():
        for number in range(19):
            paint(f"camera/{number:02}.png", number)
            if number == 9:
                wait_for_lines(1 + 8, "rows.csv")
        wait_for_lines(1 + 16, "rows.csv")
        wait_for_lines(19, "state/arrived.jsonl")
        os.kill(os.getpid(), signal.SIGTERM)

    thread = threading.Thread(target=fill)
    thread.start()
    try:
        code, out, _ = adapt("camera", "--follow", "--method", "bacs")
    finally:
        thread.join()
    assert code == 0
    assert "images: 19, new: 19, pictures skipped: 0" in out
    adapt("camera", "--method", "bacs", out="whole.csv", state="whole")
    assert Path("rows.csv").read_bytes() == Path("whole.csv").read_bytes()  # the last three as a batch of their own
    assert signal.getsignal(signal.SIGTERM) == handler


def test_one_picture_alone_waits_for_the_next_start(place, adapt, monkeypatch):
    monkeypatch.setattr(arrivals, "SETTLED", 0.0)
    os.mkdir("camera")
    paint("camera/00.png", 0)
    met, own = [], arrivals.followed_names

    def followed(folders, seen, stopped):
        met.append(1)
        return own(folders, seen, lambda: bool(seen))

    monkeypatch.setattr(online, "followed_names", followed)
    code, out, _ = adapt("camera", "--follow")
    assert (code, "images: 0, new: 0" in out) == (0, True)
    paint("camera/01.png", 1)
    assert "images: 2, new: 2" in adapt("camera")[1]
    assert [row["path"] for row in rows_of()] == ["camera/00.png", "camera/01.png"]


def test_ctrl_c_ends_after_the_batch_at_hand(place, adapt, monkeypatch):
    adapt("photos", "--method", "bacs", out="whole.csv", state="whole")
    own = online.predict_batch

    def take(*arguments):
        own(*arguments)
        os.kill(os.getpid(), signal.SIGINT)

    with monkeypatch.context() as patch:
        patch.setattr(online, "predict_batch", take)
        code, _, err = adapt("photos", "--method", "bacs")
    assert code == 130
    assert "Stopped after 8 rows; the same command goes on." in err
    assert bacs.load("state").steps == 1
    adapt("photos", "--method", "bacs")
    assert Path("rows.csv").read_bytes() == Path("whole.csv").read_bytes()


def test_what_follows_does_not_take_a_file_that_is_being_written(tmp_path):
    file, looks, taken = tmp_path / "a.png", [], []

    def stopped():
        """Grows the file at each of the first three looks."""
        looks.append(1)
        if len(looks) <= 6:
            with file.open("ab") as handle:
                handle.write(b"more")
            taken.append(file.stat().st_size)
        return len(looks) > 60

    names = arrivals.followed_names([tmp_path], set(), stopped, pause=0.001)
    assert next(names) == str(file)
    assert file.stat().st_size == 24


def test_names_survive_a_torn_line_and_odd_letters(tmp_path):
    file = tmp_path / "arrived.jsonl"
    odd = ["a\nb.png", os.fsdecode(b"\xff.png"), "ä.png"]
    assert [each.index for each in arrivals.Arrivals(file, 0).follow(odd)] == [0, 1, 2]
    with file.open("ab") as handle:
        handle.write(b'"torn')
    again = arrivals.Arrivals(file, 1)
    assert [os.fspath(each.data) for each in again.follow(["ä.png", "new.png"])] == [*odd[1:], "new.png"]
    assert len(arrivals.Arrivals(file, 4).seen) == 4
    with pytest.raises(bacs.errors.DataError, match="it has 4 names, and 5 pictures were predicted"):
        arrivals.Arrivals(file, 5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["photos", "--follow"], "follow needs online and state"),
        (["-"], "IMAGES - needs online and state"),
        (["photos", "--state", "s"], "online must be given with state"),
        (["photos", "--state", "s", "--online", "--save-every", "0"], "save_every must be at least 1, got 0"),
        (["photos", "-", "--state", "s", "--online"], "IMAGES must be - alone"),
        (["photos", "--state", "s", "--online", "--strict"], "strict must be left out with state"),
        (["photos", "--state", "s", "--online", "--save", "t"], "save must be left out with state"),
        (["photos", "--state", "s", "--online", "--out", "a.parquet"], "out must end in .csv or .jsonl where rows"),
        (["a.npy", "--state", "s", "--online"], "state must be left out for arrays and tables"),
        (["photos/00.png", "--state", "s", "--online", "--follow"], "IMAGES must be a folder with follow"),
        (["photos", "--state", "s", "--online", "--out", "there.csv"], "out must be a new file, there.csv exists"),
    ],
)
def test_wishes_that_cannot_be(place, capsys, arguments, message):
    Path("there.csv").write_text("mine")
    out = [] if "--out" in arguments else ["--out", "rows.csv"]
    assert cli.main(["adapt", "run", *arguments, *out]) == 2
    assert message in capsys.readouterr().err
    assert Path("there.csv").read_text() == "mine"
    assert not Path("s").exists()


def test_a_state_goes_on_with_what_it_began_with(place, adapt):
    adapt("photos", "--method", "bacs")
    for options, how, message in (
        (("--method", "tent"), {}, "method must be bacs, with which state began, got tent"),
        (("--method", "bacs", "--learning-rate", "0.5"), {}, "settings must be"),
        (("--method", "bacs", "--probabilities"), {}, "probabilities must be False, as state began, got True"),
        (("--method", "bacs"), {"out": "other.csv"}, "out must be"),
    ):
        code, _, err = adapt("photos", *options, **how)
        assert (code, message in err) == (2, True), err
    os.truncate("rows.csv", 100)
    code, _, err = adapt("photos", "--method", "bacs")
    assert code == 1
    assert "rows.csv has 100 bytes and its state goes with" in err


def test_a_size_that_nobody_knows_is_said_before_anything_is_written(place, adapt):
    members = [replace(small_member(0), preprocessing=replace(SIZED, size=None))]
    bacs.Ensemble(members).save("run")
    code, _, err = adapt("photos")
    assert (code, "size must say what the models take" in err) == (2, True)
    assert not Path("state").exists()
    code, _, err = adapt("photos", "--size", 12, 12, "--accuracy", 0.9)
    assert (code, "accuracy must be left out for a single network" in err) == (2, True)
    assert adapt("photos", "--size", 12, 12)[0] == 3


def test_dry_run_says_what_would_be_done(place, adapt):
    code, out, _ = adapt("photos", "--dry-run")
    assert (code, "would begin state" in out, "would write: rows.csv" in out) == (0, True, True)
    assert not Path("state").exists()
    adapt("photos")
    assert "would go on with state" in adapt("photos", "--dry-run")[1]
