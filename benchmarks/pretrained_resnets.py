"""Error of published CIFAR-10 ResNets under the 15 corruptions, before and after batch-norm adaptation.

    python benchmarks/pretrained_resnets.py resnet20.npz resnet32.npz ... --data-dir DATA --limit 2000

Each .npz holds the plain arrays of one state dict of the CIFAR ResNet family (depth found from the names). Results go
to results/corruptions/resnets.json, the table to docs/measurements/corruptions.md. A check of the corruptions: models
that others trained must find them as hard as the published files.
"""

import argparse
import json
from pathlib import Path

import numpy as np
import torch
from pages import write_table

import bacs
from bacs.corruptions import TEST
from bacs.parameters import read

ROOT = Path(__file__).parents[1]
PREPROCESSING = bacs.Preprocessing((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))


def open_member(file: Path) -> bacs.Member:
    """A published checkpoint as a member without a posterior."""
    with np.load(file, allow_pickle=False) as arrays:
        state = {name: torch.from_numpy(arrays[name].copy()) for name in arrays.files}
    blocks = 1 + max(int(name.split(".")[1]) for name in state if name.startswith("layer1."))
    model = bacs.models.build("cifar_resnet", depth=6 * blocks + 2)
    missing, extra = model.load_state_dict(state, strict=False)
    assert not extra, extra
    assert all(name.endswith("num_batches_tracked") for name in missing), missing
    return bacs.Member(model.eval(), bacs.posteriors.flat.init(read(model)), PREPROCESSING)


def error(ensemble: bacs.Ensemble, images: np.ndarray, labels: np.ndarray, method: str) -> list[float]:
    """Error in percent of each member, then of the ensemble."""
    result = bacs.evaluate(ensemble, images, labels, method, batch_size=200)
    return [100 * (1 - scores["accuracy"]) for scores in (*result.members, result.ensemble)]


def table(record: dict) -> list[str]:
    """Markdown: one row a corruption, mean error of the single models and of their ensemble."""
    lines = [
        "| corruption | single, source statistics | single, batch statistics | ensemble, source | ensemble, batch |",
        "|---|---|---|---|---|",
    ]
    rows = {name: record["errors"][name] for name in ("clean", *TEST) if name in record["errors"]}
    cells = {
        name: [float(np.mean(r["vanilla"][:-1])), float(np.mean(r["bn"][:-1])), r["vanilla"][-1], r["bn"][-1]]
        for name, r in rows.items()
    }
    cells["mean of the 15"] = list(np.mean([cells[name] for name in TEST], axis=0))
    for name, values in cells.items():
        lines.append(f"| {name} | " + " | ".join(f"{value:.1f}" for value in values) + " |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoints", type=Path, nargs="+")
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--limit", type=int, default=10000)
    options = parser.parse_args()
    ensemble = bacs.Ensemble([open_member(file) for file in options.checkpoints])
    out = ROOT / "results" / "corruptions" / "resnets.json"
    out.parent.mkdir(parents=True, exist_ok=True)
    errors: dict[str, dict[str, list[float]]] = {}
    for name in ("clean", *TEST):
        shift = "cifar10/clean" if name == "clean" else f"cifar10-c/{name}/5"
        cell = bacs.data.shift(shift, data_dir=options.data_dir, limit=options.limit)
        images = np.asarray(cell.images[:])
        errors[name] = {method: error(ensemble, images, cell.labels, method) for method in ("vanilla", "bn")}
        print(name, {method: [round(v, 1) for v in values] for method, values in errors[name].items()}, flush=True)
        record = {"checkpoints": [f.name for f in options.checkpoints], "images": options.limit, "errors": errors}
        out.write_text(json.dumps(record, indent=1) + "\n")
    write_table("docs/measurements/corruptions.md", "resnets", table(record))


if __name__ == "__main__":
    main()
