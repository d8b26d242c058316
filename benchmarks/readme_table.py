"""Keeps the scores of a `bacs demo` run in results/demo/ and puts their table into the README.

    bacs demo --verbose && python benchmarks/readme_table.py bacs-demo
    bacs demo --shifts contrast fog frost --out hard && python benchmarks/readme_table.py hard hard-shifts

A second argument names the record, which is then kept without a table.
"""

import json
import sys
from pathlib import Path

from pages import ROOT, write_table

from bacs.metrics import SCORES
from bacs.report.rows import table
from bacs.report.tables import cells_of

KEPT = ("shift", "method", "settings", "single", "ensemble", "members")


def markdown(records: list[dict]) -> list[str]:
    """The mean over the shifts as a table; the best value of each column is bold."""
    rows = table([record for record in records if record["shift"] != "clean"])
    columns = [cells_of(score, [row.scores[name] for row in rows]) for name, score in SCORES.items()]
    lines = [f"| | {' | '.join(score.label for score in SCORES.values())} |", "|---|" + "---:|" * len(SCORES)]
    for row, cells in zip(rows, zip(*columns, strict=True), strict=True):
        shown = [f"**{cell.text}**" if cell.best else cell.text for cell in cells]
        lines.append(f"| {row.label} | {' | '.join(shown)} |")
    return lines


def main(run: Path, name: str = "records") -> None:
    records = [{key: record[key] for key in KEPT} for record in json.loads((run / "records.json").read_text())]
    out = ROOT / "results" / "demo"
    out.mkdir(parents=True, exist_ok=True)
    (out / f"{name}.json").write_text(json.dumps(records, indent=1) + "\n")
    if name != "records":
        return
    write_table("README.md", "demo", markdown(records))


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
