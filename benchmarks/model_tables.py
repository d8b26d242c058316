"""Puts the tables of docs/measurements/models.md between their marks, from the records that exist.

python benchmarks/model_tables.py
"""

import json

import numpy as np
from pages import ROOT, write_table

RESULTS = ROOT / "results"


def memory() -> list[str]:
    """Megabytes and their ratio to training, a row per batch size."""
    rows = json.loads((RESULTS / "performance" / "memory.json").read_text())["megabytes"]
    names = list(next(iter(rows.values())))
    lines = ["| batch | " + " | ".join(names) + " |", "|---:|" + "---:|" * len(names)]
    for batch, found in rows.items():
        cells = [f"{found[name]:,} MB ({found[name] / found['training']:.2f}x)" for name in names]
        lines.append(f"| {batch} | " + " | ".join(cells) + " |")
    return lines


def small_vit() -> list[str]:
    """Accuracy and NLL, a row a shift."""
    cells = json.loads((RESULTS / "models" / "small_vit.json").read_text())["cells"]
    methods = list(next(iter(cells.values())))
    lines = ["| shift / severity | " + " | ".join(methods) + " |", "|---|" + "---:|" * len(methods)]
    return lines + [f"| {shift} | " + " | ".join(pair(cells[shift][m]) for m in methods) + " |" for shift in cells]


def efficientnet() -> list[str]:
    """Accuracy and NLL by shift and in the mean over the corruptions, a row per method."""
    records = [json.loads(file.read_text()) for file in (RESULTS / "efficientnet").glob("*.*.json")]
    shifts = ["clean", *sorted({r["shift"] for r in records} - {"clean"})]
    rows = list(dict.fromkeys(r["row"] for r in sorted(records, key=lambda r: r["place"])))
    scores = {(r["row"], r["shift"]): r["scores"] for r in records}
    lines = ["| | " + " | ".join(shifts) + " | mean of the corruptions |", "|---|" + "---:|" * (len(shifts) + 1)]
    for row in rows:
        found = [scores[row, shift] for shift in shifts]
        mean = {name: float(np.mean([s[name] for s in found[1:]])) for name in ("accuracy", "nll")}
        lines.append(f"| {row} | " + " | ".join(pair(s) for s in (*found, mean)) + " |")
    return lines


def pair(scores: dict[str, float]) -> str:
    return f"{100 * scores['accuracy']:.1f} / {scores['nll']:.2f}"


def tables() -> dict[str, list[str]]:
    """Every table of the page that has its record."""
    known = {
        "memory": (RESULTS / "performance" / "memory.json", memory),
        "small_vit": (RESULTS / "models" / "small_vit.json", small_vit),
        "efficientnet": (RESULTS / "efficientnet" / "about.json", efficientnet),
    }
    return {title: table() for title, (record, table) in known.items() if record.exists()}


if __name__ == "__main__":
    for title, lines in tables().items():
        write_table("docs/measurements/models.md", title, lines)
