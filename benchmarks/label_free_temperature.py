"""How near temperatures without labels come to the best by labels, for two members to all, on validation corruptions.

    python benchmarks/label_free_temperature.py RUN --name four-resnets --data-dir DATA   # -> results/temperatures
    python benchmarks/label_free_temperature.py --tables                                # -> docs/temperature.md

Batch statistics alone, and weights adapted as `auto` does it, on 1,000 test images (5,000 and on) of the four
validation corruptions at severity 5 and of no corruption, in batches of 64. Every choice of so many members counts.
Beside the rule stand what it replaced, confidence that meets the accuracy estimated from agreement, and T = 1.
"""

import argparse
import json
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import torch
from pages import ROOT, write_table

import bacs
from bacs import files, metrics, temperature
from bacs.agreement import estimate, observe
from bacs.control.steps import arguments_for
from bacs.corruptions import VALIDATION
from bacs.predictive import average

RESULTS = ROOT / "results" / "temperatures"
FIRST, COUNT, BATCH = 5000, 1000, 64
SHIFTS = (*(f"cifar10-c/{name}/5" for name in VALIDATION), "cifar10/clean")
NAMES = {"bn": "batch statistics", "adapted": "adapted"}
RULES = {
    "labels": "best by labels",
    "members": "by the members' labels",
    "estimate": "by estimated accuracy",
    "one": "1",
}


def measure(ensemble: bacs.Ensemble, shift: str, method: str, data_dir: Path | None) -> list[dict[str, Any]]:
    """Scores at every rule's temperature, for each number of members the mean over all choices of them."""
    found = bacs.data.shift(shift, data_dir=data_dir)
    images = np.asarray(found.images[FIRST : FIRST + COUNT])
    labels = torch.as_tensor(found.labels[FIRST : FIRST + COUNT])
    how = {"method": "bn"} if method == "bn" else arguments_for(ensemble, -(-COUNT // BATCH))
    adapted = bacs.adapt(ensemble, images, batch_size=BATCH, **how)
    rows = adapted.predict_members(images, batch_size=BATCH)
    measured = []
    for count in range(2, len(ensemble) + 1):
        scores = [score(rows[list(chosen)], labels) for chosen in combinations(range(len(ensemble)), count)]
        means = {key: float(np.mean([each[key] for each in scores])) for key in scores[0]}
        measured.append({"shift": shift, "method": method, "members": count} | means)
    return measured


def score(rows: torch.Tensor, labels: torch.Tensor) -> dict[str, float]:
    """Of one choice of members: accuracy and its estimate, and by each rule temperature, NLL and ECE."""
    predictive = average(rows)
    guess = estimate(observe(predictive), len(labels), len(rows))
    chosen = {
        "labels": temperature.fit(rows, labels),
        "members": temperature.by_agreement(rows),
        "estimate": temperature.as_confident_as(guess.ensemble, rows),
        "one": 1.0,
    }
    found = {"accuracy": metrics.accuracy(predictive.probabilities, labels), "estimated": guess.ensemble}
    for rule, value in chosen.items():
        mean = temperature.tempered(rows, value).mean(dim=0)
        own = {"temperature": value, "nll": metrics.nll(mean, labels), "ece": metrics.ece(mean, labels)}
        found |= {f"{rule}.{key}": number for key, number in own.items()}
    return found


def table(rows: list[dict[str, Any]]) -> list[str]:
    """Markdown: temperature, NLL and ECE by method, number of members and rule, means over the shifts."""
    lines = [f"| | members | Acc | {' | '.join(f'T {words}: T, NLL, ECE' for words in RULES.values())} |"]
    lines.append(f"|---|---:|---:|{'---:|' * len(RULES)}")
    for method, words in NAMES.items():
        for count in sorted({row["members"] for row in rows}):
            own = [row for row in rows if row["method"] == method and row["members"] == count]

            def mean(key: str, own: list[dict[str, Any]] = own) -> float:
                return float(np.mean([row[key] for row in own]))

            cells = [f"{mean(f'{r}.temperature'):.2f}, {mean(f'{r}.nll'):.3f}, {mean(f'{r}.ece'):.3f}" for r in RULES]
            lines.append(f"| {words} | {count} | {100 * mean('accuracy'):.1f} | {' | '.join(cells)} |")
    return lines


def tables() -> dict[str, list[str]]:
    """A table for each ensemble."""
    found = {file.stem: json.loads(file.read_text())["rows"] for file in sorted(RESULTS.glob("*.json"))}
    return {f"temperatures, {name}": table(rows) for name, rows in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, nargs="?")
    parser.add_argument("--name", default="four-resnets")
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--tables", action="store_true")
    options = parser.parse_args()
    if options.tables:
        for title, lines in tables().items():
            write_table("docs/temperature.md", title, lines)
        return
    ensemble, rows = bacs.load(options.run), []
    for shift in SHIFTS:
        for method in NAMES:
            rows += measure(ensemble, shift, method, options.data_dir)
            print(shift, method, flush=True)
    record = RESULTS / f"{options.name}.json"
    record.parent.mkdir(parents=True, exist_ok=True)
    files.write(record, (json.dumps({"first": FIRST, "images": COUNT, "rows": rows}, indent=1) + "\n").encode())


if __name__ == "__main__":
    main()
