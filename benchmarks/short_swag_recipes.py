"""Which short SWAG makes published networks best to adapt: rates, steps and augmentation, on validation corruptions.

    python benchmarks/short_swag_recipes.py resnet20.npz resnet32.npz --data-dir DATA    # -> results/short-swag
    python benchmarks/short_swag_recipes.py --tables                 # -> docs/measurements/posteriors.md

`--part 0 2` and `--part 1 2` in two processes share the work, with OMP_NUM_THREADS=1 a core each; what has a record is
skipped. The four validation corruptions at severity 5 of the test images 5,000 to 5,999, in batches of 64: batch
statistics alone, and adaptation as `auto` does it, both at the temperature of agreement.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
from pages import ROOT, write_table
from short_swag_resnets import train_on

import bacs
from bacs import files
from bacs.control.steps import arguments_for
from bacs.corruptions import VALIDATION

RESULTS = ROOT / "results" / "short-swag"
PAGE, TITLE = "docs/measurements/posteriors.md", "short swag recipes"
FIRST, COUNT, BATCH = 5000, 1000, 64
SHIFTS = (*(f"cifar10-c/{name}/5" for name in VALIDATION), "cifar10/clean")
RECIPES: dict[str, dict[str, Any] | None] = {
    "as published": None,
    "200 steps at 0.01, shifted and mirrored": {"augment": True},
    "200 steps at 0.03, shifted and mirrored": {"learning_rate": 0.03, "augment": True},
    "200 steps at 0.1, shifted and mirrored": {"learning_rate": 0.1, "augment": True},
    "200 steps at 0.01, the first 25,000 images": {"images": 25000},
    "200 steps at 0.01": {},
    "200 steps at 0.003": {"learning_rate": 0.003},
    "200 steps at 0.03": {"learning_rate": 0.03},
    "200 steps at 0.1": {"learning_rate": 0.1},
    "400 steps at 0.03": {"learning_rate": 0.03, "steps": 400},
    "400 steps at 0.01": {"steps": 400},
}
COMMON = {"images": 50000, "augment": False, "steps": 200, "learning_rate": 0.01}


def measure(name: str, checkpoints: list[Path], data_dir: Path | None) -> dict[str, Any]:
    """Scores of the ensemble that one recipe makes."""
    began = time.monotonic()
    train = bacs.data.load("cifar10", split="train", data_dir=data_dir)
    how = RECIPES[name]
    members = [train_on(file, train, **({} if how is None else COMMON | how)) for file in checkpoints]
    ensemble = bacs.Ensemble(members)
    seconds = time.monotonic() - began
    rows = []
    for shift in SHIFTS:
        found = bacs.data.shift(shift, data_dir=data_dir)
        images = np.asarray(found.images[FIRST : FIRST + COUNT])
        labels = found.labels[FIRST : FIRST + COUNT]
        for method, settings in (
            ("bn", {"method": "bn"}),
            ("adapted", arguments_for(ensemble, -(-COUNT // BATCH))),
        ):
            adapted = bacs.adapt(ensemble, images, batch_size=BATCH, temperature="agreement", **settings)
            p = adapted.predict(images, batch_size=BATCH)
            scores = {s: getattr(bacs.metrics, s)(p, labels) for s in ("accuracy", "nll", "brier", "ece")}
            rows.append({"shift": shift, "method": method, "temperature": adapted.temperature} | scores)
    return {"recipe": name, "settings": how and COMMON | how, "seconds": seconds, "rows": rows}


def file_of(name: str) -> Path:
    return RESULTS / f"{''.join(letter if letter.isalnum() else '-' for letter in name.lower())}.json"


def table() -> list[str]:
    """Markdown: means over the four corruptions, and clean images."""
    lines = [
        "| short SWAG | BN Acc | BN NLL | adapted Acc | adapted NLL | clean Acc (BN) | clean NLL (BN) |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for name in RECIPES:
        if not file_of(name).exists():
            continue
        rows = json.loads(file_of(name).read_text())["rows"]
        cells = []
        for method, clean in (("bn", False), ("adapted", False), ("bn", True)):
            own = [r for r in rows if r["method"] == method and (r["shift"] == "cifar10/clean") == clean]
            cells += [f"{100 * np.mean([r['accuracy'] for r in own]):.2f}", f"{np.mean([r['nll'] for r in own]):.4f}"]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoints", type=Path, nargs="*")
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--part", type=int, nargs=2, default=(0, 1), metavar=("NUMBER", "OF"))
    parser.add_argument("--tables", action="store_true")
    options = parser.parse_args()
    if options.tables:
        write_table(PAGE, TITLE, table())
        return
    RESULTS.mkdir(parents=True, exist_ok=True)
    for name in list(RECIPES)[options.part[0] :: options.part[1]]:
        if not file_of(name).exists():
            record = measure(name, options.checkpoints, options.data_dir)
            files.write(file_of(name), (json.dumps(record, indent=1) + "\n").encode())
            print("\n".join(table()), flush=True)


if __name__ == "__main__":
    main()
