"""Keeps the scores of a `bacs demo` run in results/demo/ and puts their table into the README.

    bacs demo --verbose && python benchmarks/readme_table.py bacs-demo
    bacs demo --shifts contrast fog frost --out hard && python benchmarks/readme_table.py hard hard-shifts

A second argument names the record, which is then kept without a table.
"""

import json
import sys
from pathlib import Path

from pages import ROOT, write_table

from bacs.benchmark import records as sweep_records
from bacs.methods.catalogue import METHODS, label_of
from bacs.metrics import SCORES, mean_scores
from bacs.report.names import KINDS
from bacs.report.tables import cells_of


def markdown(records: list[dict]) -> list[str]:
    """The mean over the shifts as a table; the best value of each column is bold."""
    shifted = [record for record in records if record["shift"] != "clean"]
    rows = {
        label_of(method, kind): mean_scores([record[kind] for record in shifted if record["method"] == method])
        for kind in KINDS
        for method in METHODS
    }
    columns = [cells_of(score, [scores[name] for scores in rows.values()]) for name, score in SCORES.items()]
    lines = [f"| | {' | '.join(score.label for score in SCORES.values())} |", "|---|" + "---:|" * len(SCORES)]
    for label, cells in zip(rows, zip(*columns, strict=True), strict=True):
        shown = [f"**{cell.text}**" if cell.best else cell.text for cell in cells]
        lines.append(f"| {label} | {' | '.join(shown)} |")
    return lines


def keep(record: dict) -> dict:
    """What is kept of a cell: its scores, and the arguments that `bacs.evaluate` gives them again for."""
    settings = record["settings"] | {"epochs": record["epochs"]}
    scores = {key: record[key] for key in ("single", "ensemble", "members")}
    return {"shift": record["corruption"] or "clean", "method": record["method"], "settings": settings} | scores


def main(run: Path, name: str = "records") -> None:
    records = [keep(record) for record in sweep_records(run / "sweep")]
    out = ROOT / "results" / "demo"
    out.mkdir(parents=True, exist_ok=True)
    (out / f"{name}.json").write_text(json.dumps(records, indent=1) + "\n")
    if name != "records":
        return
    write_table("README.md", "demo", markdown(records))


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
