"""Kills long streams with SIGKILL at random moments, begins them again, and checks that nothing shows of it.

    python benchmarks/kill_streams.py online --kills 20      # bacs adapt --online --state, on a folder of pictures
    python benchmarks/kill_streams.py follow --kills 20      # with --follow, on a folder that fills up meanwhile
    python benchmarks/kill_streams.py world --kills 20       # a world in a sweep

Online, the table must be the same bytes as that of a run that nobody stopped (no row lost, none twice), and the stream
must have the same weights, statistics and history. Of a world, the record must be the same but for its seconds. A run
that came to its end before its kill is compared, and another begun. Exit code 1 if anything differs.

With --follow the folder goes on filling up while the command is dead. It ends by SIGTERM once all rows are there.
Batches follow from the order of arrival, so pictures arrive in the order of their paths and make up whole batches.
"""

import argparse
import json
import multiprocessing
import os
import random
import re
import shutil
import signal
import sys
import tempfile
import time
from io import StringIO
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from rich.console import Console

import bacs
from bacs import checkpoints, cli
from bacs.benchmark import lasting, records, sweep
from bacs.benchmark.recipe import parse
from bacs.engine import Place
from bacs.parameters import read
from bacs.posteriors import swag_diag

FORK = multiprocessing.get_context("fork")  # this process only forks and waits: no thread of torch is running yet
CLOCK = ("seconds", "images_per_second", "sha256")  # and the checksum, which is of these too
WORLD = {
    "data": "fashion-mnist-part-c",
    "corruptions": ["gaussian_noise", "fog"],
    "protocols": ["world"],
    "window": 100,
    "batch_size": 8,
    "limit": 300,
}


def save_run(folder):
    """An ensemble of two tiny members with posteriors, untrained: nobody reads the predictions."""
    members = []
    for seed in range(2):
        model = bacs.training.initialised(
            lambda: bacs.models.build("resnet26", width=4, blocks=1, classes=10, channels=1), seed
        ).eval()
        generator = torch.Generator().manual_seed(seed)
        posterior = swag_diag.init(read(model))
        for _ in range(3):
            noisy = {name: p + 1e-3 * torch.randn(p.shape, generator=generator) for name, p in read(model).items()}
            posterior = swag_diag.update(posterior, noisy)
        members.append(bacs.Member(model, posterior, bacs.Preprocessing((0.5,), (0.25,), size=(28, 28))))
    bacs.Ensemble(members).save(folder)


def save_pictures(folder, count):
    """Random pictures; one in forty cannot be read."""
    folder.mkdir()
    rng = np.random.default_rng(0)
    for number in range(count):
        file = folder / f"{number:06}.png"
        if number % 40 == 13:
            file.write_bytes(b"no picture")
        else:
            Image.fromarray(rng.integers(0, 256, (28, 28), dtype=np.uint8)).save(file)


class Online:
    """A folder of pictures, met by `bacs adapt`."""

    def __init__(self, place, options):
        self.place, self.options = place, options
        save_pictures(place / "pictures", options.images)

    def begin(self, out):
        """Nothing but the command is needed."""

    def work(self, out):
        words = ["adapt", self.place / "run", self.place / "pictures", "--online", "--state", out / "state"]
        words += ["--out", out / "rows.csv", "--batch-size", 8, "--save-every", self.options.save_every]
        words += ["--method", self.options.method]
        return 0 if cli.main(list(map(str, words))) in (0, 3) else 1  # 3: pictures were skipped

    def join(self, process, out, timeout=None):
        process.join(timeout)

    def progress(self, out):
        file = out / "rows.csv"
        return file.read_bytes().count(b"\n") if file.exists() else 0

    def outcome(self, out):
        """The table, and all of the stream but the path of its table."""
        manifest = checkpoints.read_manifest(out / "state")
        manifest["stream"]["beside"].pop("asked")
        kept = {"stream": manifest["stream"], "files": manifest["files"]}
        return {"rows": (out / "rows.csv").read_text(), "state": kept}


class Follow(Online):
    """A folder that fills up, some pictures at a time, from the first command on; SIGTERM when all have their row."""

    def __init__(self, place, options):
        super().__init__(place, options)
        self.files = sorted((place / "pictures").iterdir())
        self.lines = 1 + sum(file.read_bytes() != b"no picture" for file in self.files)  # one for the columns' names
        if (self.lines - 1) % 8:
            sys.exit(f"images must make up whole batches of 8, as 640 do; got {self.lines - 1} that can be read")

    def fill(self, out):
        """Moves pictures in, a folder of a few at a time, so that a look sees all of them or none."""
        pace, rest, number = random.Random(out.name), list(self.files), 0
        while rest:
            part = out / f"part-{number:04}"
            part.mkdir()
            for file in rest[: (count := pace.randint(1, 13))]:
                shutil.copy2(file, part)
            part.rename(out / "camera" / f"{number:04}")
            rest, number = rest[count:], number + 1
            time.sleep(pace.uniform(0, 0.2))

    def work(self, out):
        os.chdir(out)
        words = ["adapt", self.place / "run", "camera", "--online", "--follow", "--state", "state", "--out", "rows.csv"]
        words += ["--batch-size", 8, "--save-every", self.options.save_every, "--method", self.options.method]
        return 0 if cli.main(list(map(str, words))) in (0, 3) else 1

    def begin(self, out):
        if not (out / "camera").exists():
            (out / "camera").mkdir()
            FORK.Process(target=self.fill, args=(out,), daemon=True).start()

    def join(self, process, out, timeout=None):
        end = None if timeout is None else time.monotonic() + timeout
        while process.exitcode is None and (end is None or time.monotonic() < end):
            if self.progress(out) == self.lines and hears(process.pid, signal.SIGTERM):
                os.kill(process.pid, signal.SIGTERM)
                process.join()
            process.join(0.05)

    def outcome(self, out):
        """As online, but for the folders in paths, which hold as many pictures as had come by chance."""
        found = super().outcome(out)
        rows = re.sub(r"camera/\d+/", "", found["rows"])
        names = re.findall(r"\d+\.png", rows)
        if len(names) != self.lines - 1 or names != sorted(set(names)):
            sys.exit(f"{out.name} has not every picture once, in the order of arrival")
        return found | {"rows": rows}


def hears(pid, number):
    """Whether a process has a handler for a signal, which would end it before."""
    caught = re.search(r"SigCgt:\s*(\w+)", Path(f"/proc/{pid}/status").read_text())
    return caught is not None and bool(int(caught[1], 16) >> (number - 1) & 1)


class Swept:
    """A world, met by a sweep."""

    def __init__(self, place, options):
        self.place, self.options = place, options
        table = {"changes": ["abrupt", "gradual", "blended"], "segment_images": 150, "images": options.images}
        self.recipe = parse(WORLD | {"methods": [options.method], "world": {"all": table}})

    def work(self, out):
        lasting.SAVE_EVERY = self.options.save_every
        how = {"place": Place(workers=1), "console": Console(file=StringIO())}
        return 1 if sweep(self.recipe, self.place / "run", out, **how).failed else 0

    def begin(self, out):
        """Nothing but the command is needed."""

    def join(self, process, out, timeout=None):
        process.join(timeout)

    def progress(self, out):
        manifests = list((out / "streams").glob("*/bacs.json"))
        return json.loads(manifests[0].read_text())["stream"]["steps"] if manifests else 0

    def outcome(self, out):
        (record,) = records(out)
        return {key: value for key, value in record.items() if key not in CLOCK}


def begin(subject, out, log):
    """A process that works until it is done or killed."""

    def work():
        with log.open("a") as file:
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
            code = subject.work(out)
        os._exit(code)

    subject.begin(out)
    process = FORK.Process(target=work)
    process.start()
    return process


def measure(subject, place, options):
    """What was seen, for the record."""
    moments, log = random.Random(options.seed), place / "log.txt"

    def end(process, out, name):
        subject.join(process, out)
        if process.exitcode != 0:
            sys.exit(f"{name} ended with exit code {process.exitcode}:\n{log.read_text()[-3000:]}")

    began = time.perf_counter()
    (place / "whole").mkdir()
    end(begin(subject, place / "whole", log), place / "whole", "the uninterrupted stream")
    seconds = time.perf_counter() - began
    expected, kills, streams = subject.outcome(place / "whole"), [], 0

    def compare(out):
        if subject.outcome(out) != expected:
            sys.exit(f"{out.name} differs from the uninterrupted stream")

    while len(kills) < options.kills:
        out, own, over = place / f"killed-{streams}", [], False
        out.mkdir()
        while len(kills) + len(own) < options.kills and not over:
            before, process = subject.progress(out), begin(subject, out, log)
            subject.join(process, out, timeout=moments.uniform(0.0, 0.5 * seconds))
            over = process.exitcode is not None
            if not over:
                process.kill()
                process.join()
                own.append({"before": before, "after": subject.progress(out)})
                print(f"kill {len(kills) + len(own)}: {before} -> {own[-1]['after']}", flush=True)
        end(process if over else begin(subject, out, log), out, "the resumed stream")
        compare(out)
        kills, streams = kills + own, streams + 1
    print(f"{len(kills)} kills in {streams} streams: the end is that of the uninterrupted one", flush=True)
    return {"images": options.images, "method": options.method, "streams": streams, "kills": kills, "equal": True}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["online", "follow", "world"])
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--method", default="auto")
    parser.add_argument("--images", type=int, default=1280)
    parser.add_argument("--save-every", type=int, default=7, help="batches of 8 images")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, help="JSON file; keeps what it has of the other kinds")
    options = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        save_run(place / "run")
        subject = {"online": Online, "follow": Follow, "world": Swept}[options.what](place, options)
        found = measure(subject, place, options)
    if options.out is not None:
        known = json.loads(options.out.read_text()) if options.out.exists() else {}
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps(known | {options.what: found}, indent=1) + "\n")


if __name__ == "__main__":
    main()
