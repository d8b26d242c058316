"""Kills a sweep with SIGKILL at random moments, resumes it, and compares it with a sweep that was never killed.

    python benchmarks/kill_and_resume_sweep.py --kills 10                # two local worker processes
    python benchmarks/kill_and_resume_sweep.py --kills 10 --engine ray   # a Ray cluster that outlives the sweeps
    python benchmarks/kill_and_resume_sweep.py --kills 10 --out results/benchmark/kill.json

The whole process group dies: the sweep and, on local processes, its workers; Ray ends the workers of a dead driver
itself. Networks are tiny, so that a record is written every fraction of a second and kills fall into the writing of
one. After each kill every record that was finished before must still be there, bit for bit, and every file must be
whole; in the end all scores must equal those of the uninterrupted sweep, bit for bit. Exit code 1 if not.
"""

import argparse
import io
import json
import multiprocessing
import os
import random
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import torch
from rich.console import Console

import bacs
from bacs.benchmark import plan, records, sweep
from bacs.benchmark.recipe import parse
from bacs.engine import Place
from bacs.parameters import read
from bacs.posteriors import swag_diag

FORK = multiprocessing.get_context("fork")  # this process only forks and waits: no thread of torch is running yet
EQUAL = ("members", "single", "ensemble", "class_accuracy", "reliability", "risk_coverage", "images", "settings")
RECIPE = parse(
    {
        "data": "fashion-mnist-part-c",
        "corruptions": ["gaussian_noise", "fog", "contrast"],
        "methods": ["vanilla", "bn", "tent", "bacs", "bacs-no-posterior"],
        "protocols": ["offline", "online"],
        "limit": 64,
        "batch_size": 16,
    }
)


def save_run(folder):
    """An ensemble of two tiny members with posteriors, untrained: nobody reads the scores."""
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
        members.append(bacs.Member(model, posterior, bacs.Preprocessing((0.5,), (0.25,))))
    bacs.Ensemble(members).save(folder)


def work(recipe, run, out, engine, address, log):
    os.setsid()  # a group of its own, to be killed as a whole
    with log.open("a") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
        summary = sweep(
            recipe, run, out, place=Place(engine, workers=2, address=address), console=Console(file=io.StringIO())
        )
    os._exit(1 if summary.failed else 0)


def begin(*arguments):
    process = FORK.Process(target=work, args=arguments)
    process.start()
    return process


def finished(out):
    """The bytes of every finished record; raises if a file is not a whole record."""
    return {file.name: file.read_bytes() for file in (out / "records").glob("*.json") if json.loads(file.read_text())}


def scores(out):
    return {record["id"]: {key: record[key] for key in EQUAL} for record in records(out)}


def kill_at(process, out, target, delay):
    """Kills the sweep's whole group once `target` records are there and a moment has passed. False if it was done."""
    while process.is_alive() and len(list((out / "records").glob("*.json"))) < target:
        time.sleep(0.002)
    process.join(timeout=delay)
    if process.exitcode is not None:
        return False
    os.killpg(process.pid, signal.SIGKILL)
    process.join()
    return True


def start_ray(folder):
    """A Ray cluster of two CPUs in a process of its own, and its address."""
    port = random.SystemRandom().randrange(20000, 30000)
    command = [sys.executable, "-m", "ray.scripts.scripts", "start", "--head", "--block", f"--port={port}"]
    options = ["--num-cpus=2", "--include-dashboard=false", f"--temp-dir={folder}", "--disable-usage-stats"]
    options += ["--node-ip-address=127.0.0.1"]
    # A token of its own for this cluster; the sweeps inherit it from this process.
    os.environ |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
    log = (folder / "start.log").open("w")
    patient = os.environ | {"RAY_raylet_start_wait_time_s": "200"}  # on a busy machine
    process = subprocess.Popen([*command, *options], stdout=log, stderr=subprocess.STDOUT, env=patient)
    until = time.monotonic() + 240
    while "runtime started" not in (folder / "start.log").read_text().lower():
        if process.poll() is not None or time.monotonic() > until:
            process.terminate()
            sys.exit(f"Ray did not start:\n{(folder / 'start.log').read_text()}")
        time.sleep(0.2)
    return process, f"127.0.0.1:{port}"


def measure(place, engine, address, kills, seed, recipe):
    """One line a kill; what was seen, for the record."""
    moments = random.Random(seed)
    save_run(place / "run")
    cells, log = len(plan(recipe)), place / "log.txt"
    arguments = (recipe, place / "run"), (engine, address, log)

    def end(process, name):
        process.join()
        if process.exitcode != 0:
            sys.exit(f"{name} ended with exit code {process.exitcode}:\n{log.read_text()[-3000:]}")

    began = time.perf_counter()
    end(begin(*arguments[0], place / "whole", *arguments[1]), "the uninterrupted sweep")
    seconds = time.perf_counter() - began
    expected = scores(place / "whole")
    assert len(expected) == cells
    print(f"uninterrupted: {cells} cells in {seconds:.1f} s", flush=True)
    seen, folder, before = [], 0, {}
    while len(seen) < kills:
        out = place / f"killed-{folder}"
        # Somewhere in the next third of the cells, so that one folder is killed several times.
        target, delay = len(before) + moments.randrange(0, cells // 3), moments.uniform(0, 1.5 * seconds / cells)
        killed = kill_at(begin(*arguments[0], out, *arguments[1]), out, target, delay)
        after = finished(out)
        lost = [name for name, content in before.items() if after.get(name) != content]
        if lost:
            sys.exit(f"lost or changed by the kill: {', '.join(lost)}")
        if killed:
            stray = len(list((out / "records").glob(".*.tmp")))
            seen.append({"records_before": len(before), "records_after": len(after), "half_written_and_ignored": stray})
            note = f", {stray} in the middle of being written" if stray else ""
            print(f"kill {len(seen)}: {len(before)} -> {len(after)} of {cells} records{note}", flush=True)
        before = after
        if len(before) > 0.7 * cells or len(seen) == kills:  # near its end: finished, compared, and another begun
            end(begin(*arguments[0], out, *arguments[1]), "the resumed sweep")
            if scores(out) != expected:
                sys.exit(f"{out.name} differs from the uninterrupted sweep")
            folder, before = folder + 1, {}
    print(f"{len(seen)} kills in {folder} sweeps: nothing lost, equal bit for bit", flush=True)
    return {"engine": engine, "cells": cells, "sweeps": folder, "kills": seen, "equal_bit_for_bit": True}


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--kills", type=int, default=10)
    options.add_argument("--engine", choices=["local", "ray"], default="local")
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--limit", type=int, default=RECIPE.limit, help="images of each shift")
    options.add_argument("--out", type=Path, help="JSON file; keeps what it has of the other engine")
    chosen = options.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        process, address = start_ray(place) if chosen.engine == "ray" else (None, None)
        try:
            recipe = replace(RECIPE, limit=chosen.limit)
            found = measure(place, chosen.engine, address, chosen.kills, chosen.seed, recipe)
        finally:
            if process is not None:
                process.terminate()
                process.wait()
    if chosen.out is not None:
        known = json.loads(chosen.out.read_text()) if chosen.out.exists() else {}
        chosen.out.parent.mkdir(parents=True, exist_ok=True)
        chosen.out.write_text(json.dumps(known | {chosen.engine: found}, indent=1) + "\n")


if __name__ == "__main__":
    main()
