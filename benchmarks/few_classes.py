"""What batch statistics do to images of few classes, and whether the warnings of `bacs adapt` tell it from a shift.

    python benchmarks/few_classes.py resnet32.npz --data-dir DATA

The .npz holds the plain arrays of a published CIFAR-10 ResNet. Its test images, of all classes under each of the 15
corruptions and of few classes with and without fog, are predicted before and after `bn`. Results go to
results/adapt/few_classes.json, the table to docs/measurements/adapt.md.
"""

import argparse
import json
from pathlib import Path

import numpy as np
import torch
from pages import ROOT, write_table
from pretrained_resnets import open_member

import bacs
from bacs.corruptions import TEST, corrupt
from bacs.metrics import accuracy
from bacs.predictions import summarise

RESULT = ROOT / "results" / "adapt" / "few_classes.json"
FEW = ((2,), (9,), (4, 7), (1, 6, 9), (0, 2, 3, 5, 6))
FIRST = 5000  # the rule was chosen on test images before this one, with other classes and another network


def shifts(images, labels, names, limit):
    """Name, images and labels of each set."""
    for corruption in TEST:
        yield f"all classes, {corruption}", corrupt(images[:limit], corruption, 5), labels[:limit]
    for classes in FEW:
        chosen = np.flatnonzero(np.isin(labels, classes))[:limit]
        called = ", ".join(names[number] for number in classes)
        yield called, images[chosen], labels[chosen]
        yield f"{called}, fog", corrupt(images[chosen], "fog", 4), labels[chosen]


def record(ensemble, images, labels):
    """Scores before and after `bn`, and the warnings."""
    before, after = ensemble.predictive(images), bacs.adapt(ensemble, images, "bn").predictive(images)
    summary = summarise(ensemble, before, after, [None], method="bn", batch_size=128)
    scores = {
        name: {
            "accuracy": accuracy(predictive.probabilities, labels),
            "mean_confidence": found.confidence,
            "effective_classes": found.effective_classes,
        }
        for name, predictive, found in (("before", before, summary.before), ("after", after, summary.after))
    }
    return scores | {"images": len(images), "warnings": list(summary.warnings)}


def table(records):
    """Markdown, one row a set."""
    lines = ["| images | accuracy | effective classes | mean confidence | warned |", "|---|---|---|---|---|"]
    for name, found in records.items():
        before, after = found["before"], found["after"]
        cells = [
            f"{100 * before['accuracy']:.0f} → {100 * after['accuracy']:.0f} %",
            f"{before['effective_classes']:.1f} → {after['effective_classes']:.1f}",
            f"{before['mean_confidence']:.2f} → {after['mean_confidence']:.2f}",
            "yes" if found["warnings"] else "",
        ]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return lines


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("weights", type=Path)
    options.add_argument("--data-dir", type=Path)
    options.add_argument("--limit", type=int, default=256, help="images of each set")
    chosen = options.parse_args()
    torch.set_num_threads(1)
    test = bacs.data.load("cifar10", data_dir=chosen.data_dir)
    ensemble = bacs.Ensemble([open_member(chosen.weights)], class_names=test.classes)
    images, labels = np.asarray(test.images[FIRST:]), test.labels[FIRST:]
    sets = shifts(images, labels, test.classes, chosen.limit)
    records = {name: record(ensemble, images, labels) for name, images, labels in sets}
    RESULT.parent.mkdir(parents=True, exist_ok=True)
    RESULT.write_text(json.dumps({"weights": chosen.weights.name, "first": FIRST, "records": records}, indent=1) + "\n")
    write_table("docs/measurements/adapt.md", "few classes", table(records))


if __name__ == "__main__":
    main()
