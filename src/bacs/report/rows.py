"""The paper's rows and columns from records of cells.

A record holds the scores of one method on one shift: `{"shift", "method", "single": {score: value}, "ensemble":
{score: value}, ...}`. A table averages them over shifts.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

SINGLE = {
    "vanilla": "Vanilla",
    "bn": "BN Adapt",
    "tent": "TENT",
    "bacs": "BACS (MAP)",
    "bacs-no-posterior": "BACS (MAP) - posterior",
}
ENSEMBLE = {
    "vanilla": "Vanilla Ensemble",
    "bn": "Ensemble BN Adapt",
    "tent": "Ensemble TENT",
    "bacs": "BACS",
    "bacs-no-posterior": "BACS - posterior",
}
COLUMNS = {"accuracy": "Acc", "nll": "NLL", "brier": "Brier", "ece": "ECE"}


class Row(NamedTuple):
    label: str
    method: str
    kind: str  # "single" or "ensemble"
    scores: dict[str, float]


def table(records: Sequence[dict[str, Any]]) -> list[Row]:
    """The single rows, then the ensemble rows, each score averaged over the shifts of the records."""
    rows = []
    for kind, labels in (("single", SINGLE), ("ensemble", ENSEMBLE)):
        for method, label in labels.items():
            scores = [record[kind] for record in records if record["method"] == method]
            if scores:
                mean = {name: float(np.mean([each[name] for each in scores])) for name in COLUMNS}
                rows.append(Row(label, method, kind, mean))
    return rows


def best(rows: Sequence[Row]) -> dict[str, float]:
    """The best value of each column: highest accuracy, lowest of the rest."""
    return {name: (max if name == "accuracy" else min)(row.scores[name] for row in rows) for name in COLUMNS}


def formatted(name: str, value: float) -> str:
    """A score as the paper prints it: accuracy and mCE in percent, the others with four digits."""
    if np.isinf(value):
        return "∞"
    return f"{100 * value:.2f}" if name in ("accuracy", "mce") else f"{value:.4f}"
