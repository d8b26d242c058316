"""`auto` where there is little to go by: a few images, and streams that are sorted by class.

    python benchmarks/auto_edges.py RUN --name four-resnets --data-dir DATA    # goes on where it stopped
    python benchmarks/auto_edges.py --tables                                   # records -> docs/auto.md

A few: sets of 1, 4, 16 and 32 of the first 5,000 test images, many sets of each size, each adapted to on its own.
Sorted: 1,000 images ordered by class, in batches of 64, online, so that a batch shows one class or two.
"""

import argparse
import json
from pathlib import Path

import numpy as np
import torch
from pages import ROOT, write_table
from situations import pictures, slug

import bacs
from bacs.files import write as write_whole
from bacs.metrics import scores_of

RESULTS = ROOT / "results" / "auto"
METHODS = ("vanilla", "bn", "bacs", "auto")
SIZES = {1: 64, 4: 32, 16: 16, 32: 8}
"""Images of a set, and how many sets."""

FEW_SHIFTS = ("clean", "fog/5", "gaussian_noise/5")
SORTED_SHIFTS = ("clean", "fog/5", "gaussian_noise/5", "contrast/5", "pixelate/3", "snow/3")
BATCH = 64


def few(ensemble, images: np.ndarray, labels: np.ndarray) -> dict:
    """Scores by size of the set and method, over all sets of that size together."""
    found = {}
    for size, sets in SIZES.items():
        rows: dict[str, list] = {method: [] for method in METHODS}
        for number in range(sets):
            own = images[number * size : (number + 1) * size]
            for method in METHODS:
                how = {"batch_size": 32}
                rows[method].append(bacs.adapt(ensemble, own, method, **how).predict(own, **how))
        truth = labels[: size * sets]
        found[str(size)] = {method: scores_of(torch.cat(parts), truth) for method, parts in rows.items()}
    return found


def in_order(ensemble, images: np.ndarray, labels: np.ndarray) -> dict:
    """Scores by method of a stream that is sorted by class, and what auto decided."""
    order = np.argsort(labels, kind="stable")
    arriving, truth = torch.from_numpy(images[order]), labels[order]
    found = {}
    for method in METHODS:
        stream = bacs.stream(ensemble, method)
        rows = torch.cat([stream.step(batch) for batch in arriving.split(BATCH)])
        found[method] = scores_of(rows, truth)
        if method == "auto":
            decisions = [[event.step, event.what, event.reason] for event in stream.history]
    return {"scores": found, "decisions": decisions}


def few_table(records: dict[str, dict]) -> list[str]:
    lines = ["| images | shift | " + " | ".join(METHODS) + " |", "|---:|---|" + "---:|" * len(METHODS)]
    for size, sets in SIZES.items():
        for shift, found in records.items():
            cells = [pair(found[str(size)][method]) for method in METHODS]
            lines.append(f"| {size} ({sets} sets) | {shift} | {' | '.join(cells)} |")
    return lines


def sorted_table(records: dict[str, dict]) -> list[str]:
    lines = ["| shift | " + " | ".join(METHODS) + " |", "|---|" + "---:|" * len(METHODS)]
    for shift, found in records.items():
        lines.append(f"| {shift} | {' | '.join(pair(found['scores'][method]) for method in METHODS)} |")
    return lines


def pair(scores: dict[str, float]) -> str:
    return f"{100 * scores['accuracy']:.1f} / {scores['nll']:.2f}"


KINDS = {
    "few images": (FEW_SHIFTS, few, few_table),
    "sorted streams": (SORTED_SHIFTS, in_order, sorted_table),
}


def tables() -> dict[str, list[str]]:
    """Every table that has a record."""
    found = {}
    for title, (shifts, _, table) in KINDS.items():
        for folder in sorted(RESULTS.glob("*")):
            files = {shift: folder / f"{slug(title)}-{slug(shift)}.json" for shift in shifts}
            records = {shift: json.loads(file.read_text()) for shift, file in files.items() if file.exists()}
            if records:
                found[f"{folder.name} {title}"] = table(records)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, nargs="?")
    parser.add_argument("--name")
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--tables", action="store_true")
    options = parser.parse_args()
    if options.tables:
        for title, lines in tables().items():
            write_table("docs/auto.md", title, lines)
        return
    ensemble = bacs.load(options.run)
    test = bacs.data.load("cifar10", data_dir=options.data_dir)
    folder = RESULTS / options.name
    folder.mkdir(parents=True, exist_ok=True)
    for title, (shifts, measure, _) in KINDS.items():
        for shift in shifts:
            file = folder / f"{slug(title)}-{slug(shift)}.json"
            if file.exists():
                continue
            found = measure(ensemble, *pictures(test, shift, ()))
            write_whole(file, (json.dumps(found, indent=1) + "\n").encode())
            print(title, shift, json.dumps(found)[:600], flush=True)


if __name__ == "__main__":
    main()
