"""One network has nobody to agree with: whom should it ask, mirrored pictures or draws of its own posterior?

    python benchmarks/one_network.py RUN --data-dir DATA    # records -> results/auto/one-network.json, docs/auto.md
    python benchmarks/one_network.py --tables               # the record -> docs/auto.md

Every network of RUN alone, on development situations: validation corruptions of test images that no table of results
shows, of all classes and of few. Who is asked decides the share r of batch statistics; labels say how good that was.
"""

import argparse
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from pages import ROOT, write_table

import bacs
from bacs.adaptation.statistics import Statistics
from bacs.control import probe
from bacs.control.candidates import WEIGHTS, pick
from bacs.corruptions import corrupt
from bacs.files import write as write_whole
from bacs.methods.prepare import copy_member
from bacs.posteriors import KINDS, kind_of

RECORD = ROOT / "results" / "auto" / "one-network.json"
FIRST, COUNT, BATCH = 5000, 256, 64
DRAWS = 3
SITUATIONS = [
    ("clean", ()),
    ("speckle_noise/1", ()),
    ("speckle_noise/5", ()),
    ("gaussian_blur/3", ()),
    ("gaussian_blur/5", ()),
    ("spatter/3", ()),
    ("spatter/5", ()),
    ("saturate/5", ()),
    ("clean", (3,)),
    ("clean", (0, 4, 7)),
    ("spatter/4", (3,)),
    ("gaussian_blur/5", (1, 5)),
    ("speckle_noise/5", (0, 3, 5, 7, 8)),
]


def pictures(test, shift: str, classes: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    images, labels = np.asarray(test.images[FIRST:]), test.labels[FIRST:]
    chosen = (np.flatnonzero(np.isin(labels, classes)) if classes else np.arange(len(labels)))[:COUNT]
    if shift == "clean":
        return images[chosen], labels[chosen]
    name, severity = shift.split("/")
    return corrupt(images[chosen], name, int(severity)), labels[chosen]


def drawn(member: bacs.Member, seed: int) -> bacs.Member:
    """The member at weights drawn from its posterior."""
    own = copy_member(member, None)
    sample = KINDS[kind_of(member.posterior)].module.sample(member.posterior, torch.Generator().manual_seed(seed))
    with torch.no_grad():
        for name, p in own.model.named_parameters():
            p.copy_(sample[name])
    return own


def record(member: bacs.Member, images: np.ndarray, labels: np.ndarray) -> dict:
    """Accuracy under every share, and the share that each way of asking picks."""
    alone = bacs.Ensemble([member])
    asked = {"mirrored": alone, "draws": bacs.Ensemble([drawn(member, seed) for seed in range(DRAWS)])}
    how = {"batch_size": BATCH, "seed": 0}
    accuracy, seen = {}, {who: {} for who in asked}
    for r in WEIGHTS:
        rows = replace(alone, statistics=Statistics(r)).predict(images, **how)
        accuracy[str(r)] = bacs.metrics.accuracy(rows, torch.as_tensor(labels))
        for who, ensemble in asked.items():
            under = replace(ensemble, statistics=Statistics(r))
            seen[who][r] = probe.look(under, images, **how, mirrored=who == "mirrored")
    picked = {who: pick(found, mirrored=True).batch_weight for who, found in seen.items()}
    agreement = {who: {str(r): each.agreement for r, each in found.items()} for who, found in seen.items()}
    return {"accuracy": accuracy, "picked": picked, "agreement": agreement}


def table(records: list[dict]) -> list[str]:
    def mean(choose) -> str:
        return f"{100 * np.mean([choose(row['accuracy'], row) for row in records]):.1f}"

    def worst(choose) -> str:
        return f"{100 * min(choose(row['accuracy'], row) - row['accuracy']['0.0'] for row in records):+.1f}"

    rows = {
        "vanilla": lambda a, row: a["0.0"],
        "BN": lambda a, row: a["1.0"],
        "r by mirrored pictures": lambda a, row: a[str(row["picked"]["mirrored"])],
        f"r by {DRAWS} draws of the posterior": lambda a, row: a[str(row["picked"]["draws"])],
        "best r by labels": lambda a, row: max(a.values()),
    }
    head = ["| | mean accuracy | worst against vanilla |", "|---|---:|---:|"]
    return head + [f"| {name} | {mean(choose)} | {worst(choose)} |" for name, choose in rows.items()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, nargs="?")
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--tables", action="store_true")
    options = parser.parse_args()
    if not options.tables:
        ensemble = bacs.load(options.run)
        test = bacs.data.load("cifar10", data_dir=options.data_dir)
        records = []
        for shift, classes in SITUATIONS:
            images, labels = pictures(test, shift, classes)
            for index, member in enumerate(ensemble.members):
                about = {"situation": shift, "classes": list(classes), "member": index}
                records.append(about | record(member, images, labels))
                print(about, records[-1]["accuracy"], records[-1]["picked"], flush=True)
        RECORD.parent.mkdir(parents=True, exist_ok=True)
        write_whole(RECORD, (json.dumps(records, indent=1) + "\n").encode())
    write_table("docs/auto.md", "one network", table(json.loads(RECORD.read_text())))


if __name__ == "__main__":
    main()
