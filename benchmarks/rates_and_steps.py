"""Which learning rate fits how many steps: the way rate * steps, tried at several lengths on several numbers of images.

    python benchmarks/rates_and_steps.py RUN --data-dir DATA       # goes on where it stopped

Gradient descent at a small rate follows the gradient flow, so that where it ends depends on rate * steps alone: the same
way, taken in more and smaller steps. The pull of the posterior is a rate, too, and goes along. More images do not make
the way longer by themselves. How long is best, and whether that depends on the number of images, is what this measures, with the
objective of `auto`, on validation corruptions alone. Scores are of 1,000 images, by the first members of
the run, at the temperature that their agreement gives.
"""

import argparse
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import bacs
from bacs import files
from bacs.control.steps import OBJECTIVE, PULL, RATE
from bacs.posteriors import posterior_weight_for

RECORD = Path(__file__).parent.parent / "results" / "benchmark" / "rates.json"
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
    weights = [posterior_weight_for(member, PULL, learning_rate=RATE) for member in ensemble.members]
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
    about = {"shift": name, "images": count, "way": way, "posterior": posterior if way else "flat", "steps": steps}
    return about | {"learning_rate": how.get("learning_rate"), "temperature": adapted.temperature} | scores


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--members", type=int, default=2, help="the first ones of the run")
    parser.add_argument("--images", type=int, nargs="+", default=IMAGES)
    parser.add_argument("--record", type=Path, default=RECORD)
    options = parser.parse_args()
    whole = bacs.load(options.run)
    ensemble = replace(whole, members=whole.members[: options.members])
    rows = json.loads(options.record.read_text())["rows"] if options.record.exists() else []
    known = {(r["shift"], r["images"], r["way"], r["posterior"]) for r in rows}
    for posterior in ("member", "flat"):
        for count in options.images:
            for way in WAYS:
                for name in CORRUPTIONS:
                    if (name, count, way, posterior if way else "flat") in known:
                        continue
                    row = measure(ensemble, name, count, way, posterior, options.data_dir)
                    known.add((name, count, way, row["posterior"]))
                    rows.append(row)
                    table = {"members": options.members, "batch_size": BATCH, "rows": rows}
                    files.write(options.record, (json.dumps(table, indent=1) + "\n").encode())
                    print(row, flush=True)


if __name__ == "__main__":
    main()
