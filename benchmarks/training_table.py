"""Puts the clean accuracy of the CIFAR-10 members and their ensemble into docs/measurements/training.md.

python benchmarks/training_table.py
"""

import json

from pages import ROOT, write_table

PAGE, TITLE = "docs/measurements/training.md", "cifar10"
ENSEMBLE = "cifar10-clean/records/cifar10.clean--vanilla--offline--0.json"


def lines() -> list[str]:
    """One line per member, one for the ensemble."""
    shown = ["| | mean: Acc | NLL | last iterate: Acc | NLL |", "|---|---:|---:|---:|---:|"]
    members = sorted((ROOT / "results" / "cifar10").glob("member-*/bacs.json"))
    for file in members:
        scores = json.loads(file.read_text())["training"]["scores"]
        cells = [pair(scores[where]) for where in ("mean", "last_iterate")]
        shown.append(f"| {file.parent.name.replace('-', ' ')} | {' | '.join(cells)} |")
    ensemble = json.loads((ROOT / "results" / ENSEMBLE).read_text())["ensemble"]
    return [*shown, f"| ensemble of {len(members)} | {pair(ensemble)} | | |"]


def pair(scores: dict[str, float]) -> str:
    return f"{100 * scores['accuracy']:.2f} | {scores['nll']:.4f}"


if __name__ == "__main__":
    write_table(PAGE, TITLE, lines())
