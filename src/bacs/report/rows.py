"""The paper's rows from records of cells.

A record holds the scores of one method on one shift: `{"shift", "method", "single": {score: value}, "ensemble":
{score: value}, ...}`. A table averages them over shifts.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from bacs.methods.catalogue import METHODS, label_of
from bacs.metrics import mean_scores

KINDS = ("single", "ensemble")


class Row(NamedTuple):
    label: str
    method: str
    kind: str  # one of KINDS
    scores: dict[str, float]


def table(records: Sequence[dict[str, Any]]) -> list[Row]:
    """The single rows, then the ensemble rows, each score averaged over the shifts of the records."""
    rows = []
    for kind in KINDS:
        for method in METHODS:
            scores = [record[kind] for record in records if record["method"] == method]
            if scores:
                rows.append(Row(label_of(method, kind), method, kind, mean_scores(scores)))
    return rows
