"""How much the labels and the images matter for a Fisher posterior: precisions of a published ResNet.

    python benchmarks/fisher_labels.py resnet20.npz --data-dir DATA

Results go to results/posteriors/labels.json; `posterior_tables.py` puts their table into
docs/measurements/posteriors.md.
"""

import argparse
import json
from pathlib import Path

import torch
from pretrained_resnets import open_member
from torch import Tensor

import bacs
from bacs.parameters import read
from bacs.posteriors import fisher_diag
from bacs.pretrained import squared_gradients

OUT = Path(__file__).parents[1] / "results" / "posteriors" / "labels.json"


def log_precision(member: bacs.Member, squares: dict[str, Tensor], count: int) -> Tensor:
    state = fisher_diag.update(fisher_diag.init(read(member.model), source_size=50_000), squares, count)
    return torch.cat([value.flatten() for value in fisher_diag.precision(state).values()]).log()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--images", type=int, default=200)
    options = parser.parse_args()
    member = open_member(options.checkpoint)
    rows: dict[str, dict[str, dict[str, float]]] = {}
    for split in ("train", "test"):
        data = bacs.data.load("cifar10", split=split, data_dir=options.data_dir)
        inputs = member.prepare(torch.from_numpy(data.images[: options.images].copy()))
        with torch.no_grad():
            p = member.model(inputs).softmax(dim=1)
        drawn = torch.multinomial(p, 1, generator=torch.Generator().manual_seed(0))[:, 0]
        found = {
            "exact": squared_gradients(member.model, inputs),
            "random directions": squared_gradients(member.model, inputs, expectation="sampled"),
            "drawn labels": squared_gradients(member.model, inputs, drawn),
            "given labels": squared_gradients(member.model, inputs, torch.from_numpy(data.labels[: options.images])),
        }
        precisions = {name: log_precision(member, squares, len(inputs)) for name, squares in found.items()}
        for name, values in precisions.items():
            correlation = torch.corrcoef(torch.stack([values, precisions["exact"]]))[0, 1].item()
            rows.setdefault(name, {})[split] = {"median": values.median().exp().item(), "correlation": correlation}
    record = {"checkpoint": options.checkpoint.name, "images": options.images, "rows": rows}
    OUT.parent.mkdir(parents=True, exist_ok=True)
    OUT.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
