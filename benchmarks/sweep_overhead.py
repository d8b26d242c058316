"""Seconds of a whole sweep against the bare adaptation and prediction passes that it must make.

    python benchmarks/sweep_overhead.py cifar10-c-small --run runs/cifar10 --corruptions fog snow
        --limit 500 --repeats 3 --out results/benchmark/overhead.json

Both run in this process, one after the other, `repeats` times, on one worker and one thread. Bare: `bacs.adapt` and
`predict`, or the steps of `bacs.stream`, with ensemble and images in memory already. Sweep: the same and reading the
run, making images, scores of members and ensemble, curves, storing records. Neither has the start of Python in it.
"""

import argparse
import io
import json
import statistics
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from rich.console import Console

import bacs
from bacs.benchmark import plan, read, records, run_checksum, sweep
from bacs.engine import Place
from bacs.inputs import batches


def bare_passes(cell, ensemble, shift):
    """The passes of one cell and nothing else."""
    settings = dict(cell.settings)
    batch_size = settings.pop("batch_size")
    mask = None if shift.class_mask is None else torch.as_tensor(shift.class_mask)
    if cell.protocol == "online":
        stream = bacs.stream(ensemble, cell.method, class_mask=mask, **settings)
        for _, batch in batches(shift.images, batch_size):
            stream.step(batch)
        return
    how = {"epochs": cell.epochs, "batch_size": batch_size, "class_mask": mask, "seed": cell.seed}
    adapted = bacs.adapt(ensemble, shift.images, cell.method, **how, **settings)
    adapted.predict(shift.images, batch_size=batch_size)


def bare_seconds(cells, ensemble, shifts):
    began = time.perf_counter()
    for cell in cells:
        bare_passes(cell, ensemble, shifts[cell.shift])
    return time.perf_counter() - began


def sweep_seconds(recipe, run, data_dir):
    """Seconds of the sweep, and what its records say of them."""
    run_checksum.open_unchanged.cache_clear()  # reading the run is part of it
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        summary = sweep(
            recipe, run, folder, place=Place(workers=1), data_dir=data_dir, console=Console(file=io.StringIO())
        )
        seconds = time.perf_counter() - began
        assert not summary.failed, summary.failed
        spent = [record["seconds"] for record in records(folder)]
    return seconds, {name: sum(each.get(name, 0.0) for each in spent) for name in ("load", "data", "passes", "scores")}


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("recipe", type=Path)
    options.add_argument("--run", type=Path, required=True)
    options.add_argument("--corruptions", nargs="+", help="of the recipe's; all by default")
    options.add_argument("--limit", type=int)
    options.add_argument("--repeats", type=int, default=3)
    options.add_argument("--data-dir", type=Path)
    options.add_argument("--out", type=Path)
    chosen = options.parse_args()
    torch.set_num_threads(1)
    recipe = read(chosen.recipe, limit=chosen.limit)
    if chosen.corruptions:
        recipe = replace(recipe, corruptions=tuple(chosen.corruptions))
    cells, ensemble = plan(recipe), bacs.load(chosen.run)
    shifts = {}
    for name in recipe.shift_names():
        shift = bacs.data.shift(name, data_dir=chosen.data_dir, seed=recipe.seed, limit=recipe.limit)
        shifts[name] = replace(shift, images=np.asarray(shift.images[:]))
    bare_passes(cells[-1], ensemble, shifts[cells[-1].shift])  # what torch does only once
    pairs, spent = [], {}
    for repeat in range(chosen.repeats):
        bare = bare_seconds(cells, ensemble, shifts)
        whole, spent = sweep_seconds(recipe, chosen.run, chosen.data_dir)
        pairs.append({"bare": bare, "sweep": whole, "ratio": whole / bare})
        print(f"{repeat + 1}: bare {bare:.2f} s, sweep {whole:.2f} s, ratio {whole / bare:.3f}", flush=True)
    ratio = statistics.median(pair["ratio"] for pair in pairs)
    shares = {name: seconds / sum(spent.values()) for name, seconds in spent.items()}
    print(
        f"median ratio {ratio:.3f}; of the last sweep " + ", ".join(f"{k} {100 * v:.1f} %" for k, v in shares.items())
    )
    if chosen.out is not None:
        images = {len(shift) for shift in shifts.values()}
        about = {"recipe": chosen.recipe.name, "cells": len(cells), "members": len(ensemble), "images": sorted(images)}
        chosen.out.parent.mkdir(parents=True, exist_ok=True)
        found = about | {"ratio": ratio, "pairs": pairs, "shares": shares, "torch": torch.__version__}
        chosen.out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
