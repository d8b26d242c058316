"""The transformers of examples/small_vit.py on six corruptions at two severities: adaptation without batch norm.

    python benchmarks/small_vit.py

Default settings, one seed, 1,000 test images a shift. Results go to results/models/small_vit.json, the table to
docs/measurements/models.md by benchmarks/model_tables.py.
"""

import itertools
import json
import runpy
from pathlib import Path

import torch

import bacs

ROOT = Path(__file__).parents[1]
CORRUPTIONS = ("gaussian_noise", "impulse_noise", "motion_blur", "brightness", "contrast", "fog")
METHODS = ("vanilla", "tent", "bacs-no-posterior", "bacs", "auto")


def main() -> None:
    torch.set_num_threads(1)
    ensemble = runpy.run_path(str(ROOT / "examples" / "small_vit.py"))["trained"]()
    cells = {}
    for name, severity in itertools.product(CORRUPTIONS, (3, 5)):
        shift = bacs.data.shift(f"fashion-mnist-part-c/{name}/{severity}", limit=1000)
        cells[f"{name} / {severity}"] = {
            method: bacs.evaluate(ensemble, shift.images, shift.labels, method, batch_size=64).ensemble
            for method in METHODS
        }
        print(
            name, severity, {m: round(s["accuracy"], 3) for m, s in cells[f"{name} / {severity}"].items()}, flush=True
        )
    record = {"torch": torch.__version__, "images": 1000, "batch_size": 64, "members": 2, "cells": cells}
    out = ROOT / "results" / "models" / "small_vit.json"
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
