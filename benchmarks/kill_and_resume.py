"""Kills a training run with SIGKILL at random moments, resumes it, and compares it with a run that was never killed.

    python benchmarks/kill_and_resume.py --kills 10

The recipe is tiny, so that checkpoints are a fraction of a second apart and many kills fall into the writing of one.
Prints one line a kill and `equal bit for bit` at the end; exit code 1 if a tensor or a logged loss differs.
"""

import argparse
import hashlib
import io
import json
import multiprocessing
import os
import random
import signal
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from rich.console import Console

from bacs.engine import Place
from bacs.training.recipe import parse
from bacs.training.train import train

FORK = multiprocessing.get_context("fork")  # this process only forks and waits: no thread of torch is running yet
torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.1)  # loads what every child would else load anew


def work(recipe, out):
    torch.set_num_threads(1)
    train(recipe, out, place=Place(workers=1), console=Console(file=io.StringIO()))


def child(recipe, out, seconds=None):
    """Runs the training in a process of its own, killed after so many seconds. True if it got to its end."""
    process = FORK.Process(target=work, args=(recipe, out))
    process.start()
    process.join(timeout=seconds)
    if process.exitcode is None:
        os.kill(process.pid, signal.SIGKILL)
        process.join()
        return False
    if process.exitcode != 0:
        sys.exit(f"the training failed with exit code {process.exitcode}")
    return True


def contents(out, members):
    """Checksums of every member's tensors, and what was logged apart from times."""
    found = {}
    for index in range(members):
        (file,) = (out / f"member-{index}").glob("*.safetensors")
        log = json.loads((out / f"member-{index}" / "bacs.json").read_text())["training"]["log"]
        losses = [(line["epoch"], line["loss"], line["accuracy"], line["iterates"]) for line in log]
        found[index] = hashlib.sha256(file.read_bytes()).hexdigest(), losses
    return found


def state_of(out):
    done = len(list(out.glob("member-*/bacs.json")))
    half = [json.loads(file.read_text())["epoch"] for file in out.glob("training/member-*/bacs.json")]
    return f"{done} members finished, {half[0] if half else 0} epochs of the next"


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--kills", type=int, default=10)
    options.add_argument("--epochs", type=int, default=8)
    options.add_argument("--seed", type=int, default=0)
    chosen = options.parse_args()
    moments = random.Random(chosen.seed)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        numbers = np.random.default_rng(0)
        arrays = {
            f"x_{split}": numbers.integers(0, 256, (64, 12, 12, 3), dtype=np.uint8) for split in ("train", "test")
        }
        labels = {f"y_{split}": numbers.integers(0, 3, 64) for split in ("train", "test")}
        np.savez(place / "data.npz", **arrays, **labels)
        model = {"name": "resnet26", "width": 4, "blocks": 1}
        table = {"data": str(place / "data.npz"), "model": model, "epochs": chosen.epochs, "members": 2}
        recipe = parse(table | {"batch_size": 16, "collections_per_epoch": 2})
        begin = time.perf_counter()
        assert child(recipe, place / "whole")
        seconds = time.perf_counter() - begin
        print(f"uninterrupted: {seconds:.1f} s")
        expected, killed, run = contents(place / "whole", 2), 0, 0
        while killed < chosen.kills:  # a run that reaches its end in spite of the kills is compared and begun anew
            out = place / f"killed-{run}"
            finished = child(recipe, out, seconds=moments.uniform(0.02, 0.6) * seconds)
            if not finished:
                killed += 1
                print(f"kill {killed}: {state_of(out)}", flush=True)
            if finished or killed == chosen.kills:
                assert finished or child(recipe, out)
                if contents(out, 2) != expected:
                    sys.exit(f"run {run} differs from the uninterrupted one")
                run += 1
        print(f"{killed} kills in {run} runs: equal bit for bit")


if __name__ == "__main__":
    main()
