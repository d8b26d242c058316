"""Which learning rate fits how many steps: the way rate * steps, tried at several lengths on several numbers of images.

    python benchmarks/rates_and_steps.py RUN --name resnets --data-dir DATA    # -> results/rates, goes on at will
    python benchmarks/rates_and_steps.py --tables                              # records -> docs/auto.md

Gradient descent at a small rate follows the gradient flow, so that where it ends depends on rate * steps alone: the
same way, taken in more and smaller steps. The posterior's pull is proportional to the rate and goes along. How long a
way is best, and whether that depends on the number of images, is what this measures, with the objective of `auto`, on
validation corruptions. Scores are of 1,000 images, at the temperature that agreement gives.
"""

import argparse
import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from pages import ROOT, write_table

import bacs
from bacs import files
from bacs.control.steps import OBJECTIVE, PULL, PULL_RATE
from bacs.posteriors import posterior_weight_for

RESULTS = ROOT / "results" / "rates"
SCORED = 1000
BATCH = 64
FIRST = 5000
"""Image to begin with; those before it are for results, and come last."""
IMAGES = (128, 500, 2000, 10_000)
WAYS = (0.0, 0.04, 0.16, 0.64, 2.56)
"""rate * steps; 0 is batch statistics alone."""
CORRUPTIONS = ("speckle_noise", "spatter")


def arguments(ensemble: bacs.Ensemble, way: float, steps: int, posterior: str) -> dict[str, Any]:
    """Of bacs.adapt, for a way of this length."""
    if way == 0:
        return {"method": "bn", "temperature": "agreement"}
    weights = [posterior_weight_for(member, PULL, learning_rate=PULL_RATE) for member in ensemble.members]
    held = {"method": "bacs", "posterior_weight": float(np.exp(np.log(weights).mean()))}
    chosen = held if posterior == "member" else {"method": "bacs-no-posterior"}
    return {**chosen, "learning_rate": way / steps, "temperature": "agreement", **OBJECTIVE}


def measure(ensemble: bacs.Ensemble, name: str, count: int, way: float, posterior: str, data_dir: Path) -> dict:
    """Scores of one length of the way on so many images of one shift."""
    shift = bacs.data.shift(f"cifar10-c/{name}/5", data_dir=data_dir)
    order = np.roll(np.arange(len(shift)), -FIRST)
    images, labels = np.asarray(shift.images)[order], shift.labels[order][:SCORED]
    steps = max(1, round(count / BATCH))
    how = arguments(ensemble, way, steps, posterior)
    adapted = bacs.adapt(ensemble, images[:count], batch_size=BATCH, **how)
    probabilities = adapted.predict(images[:SCORED], batch_size=BATCH)
    scores = {s: getattr(bacs.metrics, s)(probabilities, labels) for s in ("accuracy", "nll", "brier", "ece")}
    about = {"shift": name, "images": count, "way": way, "posterior": posterior, "steps": steps}
    return about | {"learning_rate": how.get("learning_rate"), "temperature": adapted.temperature} | scores


def planned(counts: Iterable[int]) -> list[tuple[str, int, float, str]]:
    """What is measured, in this order; where nothing is adapted, no posterior holds anything."""
    ways = [(0.0, "flat"), *((way, "member") for way in WAYS if way), *((way, "flat") for way in WAYS if way)]
    kinds = sorted(ways, key=lambda each: each[1] == "flat" and each[0] > 0)
    return [(name, count, way, posterior) for count in counts for way, posterior in kinds for name in CORRUPTIONS]


def table(rows: list[dict], posterior: str) -> list[str]:
    """Markdown: accuracy and NLL by number of images and length of the way, means of the two shifts."""
    lines = [
        f"| images | steps | {' | '.join('batch statistics alone' if way == 0 else f'{way:g}' for way in WAYS)} |",
        f"|---:|---:|{'---:|' * len(WAYS)}",
    ]
    for count in sorted({row["images"] for row in rows if row["way"] and row["posterior"] == posterior}):
        own = [row for row in rows if row["images"] == count]
        cells = []
        for way in WAYS:
            found = [row for row in own if row["way"] == way and (way == 0 or row["posterior"] == posterior)]
            means = [np.mean([row[name] for row in found]) for name in ("accuracy", "nll")] if len(found) == 2 else None
            cells.append("" if means is None else f"{100 * means[0]:.1f} / {means[1]:.3f}")
        lines.append(f"| {count:,} | {own[0]['steps']} | {' | '.join(cells)} |")
    return lines


def tables() -> dict[str, list[str]]:
    found = {}
    for file in sorted(RESULTS.glob("*.json")):
        rows = json.loads(file.read_text())["rows"]
        for posterior, words in (("member", "with"), ("flat", "without")):
            if any(row["posterior"] == posterior and row["way"] for row in rows):
                found[f"rates, {file.stem}, {words} posterior"] = table(rows, posterior)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, nargs="?")
    parser.add_argument("--name", default="resnets")
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--members", type=int, default=2, help="the first ones of the run")
    parser.add_argument("--images", type=int, nargs="+", default=IMAGES)
    parser.add_argument("--tables", action="store_true")
    options = parser.parse_args()
    if options.tables:
        for title, lines in tables().items():
            write_table("docs/auto.md", title, lines)
        return
    record = RESULTS / f"{options.name}.json"
    record.parent.mkdir(parents=True, exist_ok=True)
    whole = bacs.load(options.run)
    ensemble = replace(whole, members=whole.members[: options.members])
    rows = json.loads(record.read_text())["rows"] if record.exists() else []
    known = {(row["shift"], row["images"], row["way"], row["posterior"]) for row in rows}
    for each in planned(options.images):
        if each not in known:
            rows.append(measure(ensemble, *each, options.data_dir))
            content = {"members": options.members, "batch_size": BATCH, "rows": rows}
            files.write(record, (json.dumps(content, indent=1) + "\n").encode())
            print(rows[-1], flush=True)


if __name__ == "__main__":
    main()
