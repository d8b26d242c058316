"""Kills long streams with SIGKILL at random moments, begins them again, and checks that nothing shows of it.

    python benchmarks/kill_streams.py online --kills 20      # bacs adapt --online --state, on a folder of pictures
    python benchmarks/kill_streams.py world --kills 20       # a world in a sweep

Online, the table must be the same bytes as that of a run that nobody stopped (no row lost, none twice), and the stream
must have the same weights, statistics and history. Of a world, the record must be the same but for its seconds. A run
that came to its end before its kill is compared, and another begun. Exit code 1 if anything differs.
"""

import argparse
import json
import multiprocessing
import os
import random
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
    """A folder of pictures, followed by `bacs adapt`."""

    def __init__(self, place, options):
        self.place, self.options = place, options
        save_pictures(place / "pictures", options.images)

    def work(self, out):
        words = ["adapt", self.place / "run", self.place / "pictures", "--online", "--state", out / "state"]
        words += ["--out", out / "rows.csv", "--batch-size", 8, "--save-every", self.options.save_every]
        words += ["--method", self.options.method]
        return 0 if cli.main(list(map(str, words))) in (0, 3) else 1  # 3: pictures were skipped

    def progress(self, out):
        file = out / "rows.csv"
        return file.read_bytes().count(b"\n") if file.exists() else 0

    def outcome(self, out):
        """The table, and all of the stream but the path of its table."""
        manifest = checkpoints.read_manifest(out / "state")
        manifest["stream"]["beside"].pop("asked")
        kept = {"stream": manifest["stream"], "files": manifest["files"]}
        return {"rows": (out / "rows.csv").read_text(), "state": kept}


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

    process = FORK.Process(target=work)
    process.start()
    return process


def measure(subject, place, options):
    """What was seen, for the record."""
    moments, log = random.Random(options.seed), place / "log.txt"

    def end(process, name):
        process.join()
        if process.exitcode != 0:
            sys.exit(f"{name} ended with exit code {process.exitcode}:\n{log.read_text()[-3000:]}")

    began = time.perf_counter()
    (place / "whole").mkdir()
    end(begin(subject, place / "whole", log), "the uninterrupted stream")
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
            process.join(timeout=moments.uniform(0.0, 0.5 * seconds))
            over = process.exitcode is not None
            if not over:
                process.kill()
                process.join()
                own.append({"before": before, "after": subject.progress(out)})
                print(f"kill {len(kills) + len(own)}: {before} -> {own[-1]['after']}", flush=True)
        end(process if over else begin(subject, out, log), "the resumed stream")
        compare(out)
        kills, streams = kills + own, streams + 1
    print(f"{len(kills)} kills in {streams} streams: the end is that of the uninterrupted one", flush=True)
    return {"images": options.images, "method": options.method, "streams": streams, "kills": kills, "equal": True}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["online", "world"])
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--method", default="auto")
    parser.add_argument("--images", type=int, default=2000)
    parser.add_argument("--save-every", type=int, default=7, help="batches of 8 images")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, help="JSON file; keeps what it has of the other kind")
    options = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        save_run(place / "run")
        subject = {"online": Online, "world": Swept}[options.what](place, options)
        found = measure(subject, place, options)
    if options.out is not None:
        known = json.loads(options.out.read_text()) if options.out.exists() else {}
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps(known | {options.what: found}, indent=1) + "\n")


if __name__ == "__main__":
    main()
