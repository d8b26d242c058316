"""What the temperature of the objective does: rows of settings on two published ResNets with short SWAG posteriors.

    python benchmarks/short_swag_resnets.py resnet20.npz resnet32.npz --data-dir DATA --out runs/short-swag
    python benchmarks/tempered_entropy.py runs/short-swag --data-dir DATA

Each row is a sweep of its own in results/tempered: 1,000 images in batches of 64, one epoch, gaussian_noise and fog at
severity 5, and clean. The table goes to docs/temperature.md. Rows were named before any of them was run here.
"""

import argparse
from pathlib import Path

import numpy as np
from pages import ROOT, write_table

from bacs.benchmark import records, sweep
from bacs.benchmark.recipe import parse

RESULTS = ROOT / "results" / "tempered"
SHIFTS = ["cifar10-c/gaussian_noise/5", "cifar10-c/fog/5", "cifar10/clean"]
BEYOND = {"posterior_weight": 1e-6}
ROWS = {
    "BN": ("bn", {}),
    "TENT, T = 3": ("tent", {"objective_temperature": 3.0}),
    "all weights, T = 3, no posterior": ("bacs-no-posterior", {"objective_temperature": 3.0}),
    "BACS, T = 1": ("bacs", BEYOND),
    "BACS, T = 2": ("bacs", BEYOND | {"objective_temperature": 2.0}),
    "BACS, T = 3": ("bacs", BEYOND | {"objective_temperature": 3.0}),
    "BACS, T = 5": ("bacs", BEYOND | {"objective_temperature": 5.0}),
    "BACS, T = 3, rate 3e-2": ("bacs", BEYOND | {"objective_temperature": 3.0, "learning_rate": 0.03}),
    "BACS, T = 5, temperature by agreement": (
        "bacs",
        BEYOND | {"objective_temperature": 5.0, "temperature": "agreement"},
    ),
    "information maximisation, T = 5": (
        "bacs",
        BEYOND | {"objective_temperature": 5.0, "objective": "information_maximisation"},
    ),
    "BACS, T = 5, r = 0.7": ("bacs", BEYOND | {"objective_temperature": 5.0, "batch_weight": 0.7}),
    "entropy and consistency, T = 5": (
        "bacs",
        BEYOND | {"objective_temperature": 5.0, "objective": "entropy + 1.0 * consistency"},
    ),
    "ensemble as teacher, T = 1": ("bacs", BEYOND | {"objective": "ensemble_teacher"}),
    "ensemble as teacher, T = 3": ("bacs", BEYOND | {"objective": "ensemble_teacher", "objective_temperature": 3.0}),
}


def folder(row: str) -> Path:
    return RESULTS / "".join(letter if letter.isalnum() else "-" for letter in row.lower())


def table() -> list[str]:
    """Markdown from the records: means over the two corruptions, and NLL on clean images."""
    lines = [
        "| objective | accuracy | NLL | best NLL (at) | ECE there | agreement | clean accuracy | clean NLL |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for row in ROWS:
        if not (folder(row) / "records").is_dir():
            continue
        found = {record["shift"]: record for record in records(folder(row))}
        shifted, clean = [found[name] for name in SHIFTS[:2]], found[SHIFTS[2]]
        nll = np.mean([record["tempered"]["nll"] for record in shifted], axis=0)
        ece = np.mean([record["tempered"]["ece"] for record in shifted], axis=0)
        best = int(nll.argmin())
        at = shifted[0]["tempered"]["temperature"][best]
        means = {name: np.mean([record["ensemble"][name] for record in shifted]) for name in ("accuracy", "nll")}
        agreement = np.mean([record["observed"]["agreement"] for record in shifted])
        cells = [
            f"{100 * means['accuracy']:.1f}",
            f"{means['nll']:.3f}",
            f"{nll[best]:.3f} ({at:g})",
            f"{ece[best]:.3f}",
            f"{100 * agreement:.1f}",
            f"{100 * clean['ensemble']['accuracy']:.1f}",
            f"{clean['ensemble']['nll']:.3f}",
        ]
        lines.append(f"| {row} | {' | '.join(cells)} |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--data-dir", type=Path)
    options = parser.parse_args()
    for row, (method, settings) in ROWS.items():
        common = {"batch_size": 64, "limit": 1000, **({} if method == "bn" else {"learning_rate": 0.01})}
        recipe = parse({"title": row, "shifts": SHIFTS, "methods": [method]} | common | settings)
        print(row, sweep(recipe, options.run, folder(row), data_dir=options.data_dir), flush=True)
        print(table()[-1], flush=True)
    write_table("docs/temperature.md", "tempered", table())


if __name__ == "__main__":
    main()
