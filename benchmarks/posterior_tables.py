"""Records and tables of docs/measurements/posteriors.md from the cells that posterior_comparison.py left.

    python benchmarks/posterior_tables.py work              # results/posteriors/{tuning,tests}.json and the tables

Nothing is computed anew: the tables follow from the records in results/posteriors alone (run it without an argument).
"""

import json
import sys
from pathlib import Path
from typing import Any

from pages import ROOT, write_table
from posterior_comparison import DEEP, OF_ONE, records

from bacs import files
from bacs.metrics import SCORES, mean_scores

RESULTS = ROOT / "results" / "posteriors"
HEADS = [score.label for score in SCORES.values()]
PLAIN = {
    "vanilla": "no adaptation",
    "bn": "BN",
    "tent": "TENT",
    "bacs-no-posterior": "all weights, no posterior",
}


def mean(rows: list[dict[str, Any]], kind: str) -> list[str]:
    """The scores of one table row, averaged over shifts."""
    return [SCORES[name].text(value) for name, value in mean_scores([row[kind] for row in rows]).items()]


def head(*groups: str, stub: str = "") -> list[str]:
    """The first lines of a table that has every score of each group."""
    columns = [f"{group}: {' | '.join(HEADS)}" for group in groups]
    return [f"|{stub} | {' | '.join(columns)} |", "|---|" + "---:|" * len(HEADS) * len(columns)]


def chosen_rows(tests: list[dict[str, Any]], variant: str, method: str) -> list[dict[str, Any]]:
    return [record for record in tests if (record["variant"], record["method"]) == (variant, method)]


def posteriors_table(tests: list[dict[str, Any]]) -> list[str]:
    """Kinds of posterior, single and ensemble."""
    wanted = [(label, "own", method) for method, label in PLAIN.items()]
    wanted += [(f"BACS, {label}", variant, "bacs") for variant, label in DEEP.items()]
    lines = head("single", "ensemble")
    for label, variant, method in wanted:
        if rows := chosen_rows(tests, variant, method):
            lines.append(f"| {label} | {' | '.join([*mean(rows, 'single'), *mean(rows, 'ensemble')])} |")
    return lines


def ensembles_table(tests: list[dict[str, Any]]) -> list[str]:
    """Members of one checkpoint against members that were trained apart."""
    lines = head("BN", "BACS", stub=" members")
    first = [{"one": record["scores"][0]} for record in chosen_rows(tests, "own", "bn")]
    alone = [{"one": record["scores"][0]} for record in chosen_rows(tests, "fisher", "bacs")]
    if first and alone:
        lines.append(f"| the checkpoint alone | {' | '.join([*mean(first, 'one'), *mean(alone, 'one')])} |")
    wanted = [(label, variant, variant) for variant, label in OF_ONE.items()]
    wanted += [("trained apart, Fisher", "own", "fisher"), ("trained apart, SWAG-D", "own", "own")]
    for label, bn, bacs in wanted:
        before, after = chosen_rows(tests, bn, "bn"), chosen_rows(tests, bacs, "bacs")
        if before and after:
            lines.append(f"| {label} | {' | '.join([*mean(before, 'ensemble'), *mean(after, 'ensemble')])} |")
    return lines


def tuning_table(tuning: list[dict[str, Any]], names: dict[str, str] = DEEP) -> list[str]:
    """Every setting that was tried: scores of the ensemble, mean over the validation corruptions."""
    groups: dict[tuple[str, str, float, float], list[dict[str, Any]]] = {}
    for record in tuning:
        row = PLAIN.get(record["method"]) or f"BACS, {names[record['variant']]}"
        setting = (record["method"], row, record["learning_rate"] or 0.0, record["pull"] or 0.0)
        groups.setdefault(setting, []).append(record)
    lines = [f"| | learning rate | pull | posterior_weight | {' | '.join(HEADS[:3])} |", "|---|" + "---:|" * 6]
    order = [*PLAIN, "bacs"]
    for (_, row, rate, pull), found in sorted(groups.items(), key=lambda group: (order.index(group[0][0]), group[0])):
        weight = f"{found[0]['settings']['posterior_weight']:.2g}" if pull else ""
        values = [f"{rate:g}" if rate else "", f"{pull:g}" if pull else "", weight, *mean(found, "ensemble")[:3]]
        lines.append(f"| {row} | {' | '.join(values)} |")
    return lines


def resnets_table(tuning: list[dict[str, Any]]) -> list[str]:
    return tuning_table(tuning, {"own": "Fisher posterior"})


def scales_table(record: dict[str, Any]) -> list[str]:
    """How tightly each kind of posterior holds the weights."""
    lines = ["| posterior | precision | pull |", "|---|---|---|"]
    for variant, values in record.items():
        cells = [" / ".join(f"{value:.2g}" for value in values[name]) for name in ("precision", "pull")]
        lines.append(f"| {DEEP[variant]} | {' | '.join(cells)} |")
    return lines


def labels_table(record: dict[str, Any]) -> list[str]:
    """What labels and images do to the precisions of a Fisher posterior."""
    lines = [
        "| labels | training images: median precision | correlation with exact | test images: median | correlation |",
        "|---|---:|---:|---:|---:|",
    ]
    for name, splits in record["rows"].items():
        cells = [f"{value['median']:.3g} | {value['correlation']:.2f}" for value in splits.values()]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return lines


def tables() -> dict[str, list[str]]:
    """Every table of the page that has its record."""
    known = {
        "labels": ("labels", labels_table),
        "scales": ("scales", scales_table),
        "tuning": ("tuning", tuning_table),
        "resnets-tuning": ("resnets-tuning", resnets_table),
        "posteriors": ("tests", posteriors_table),
        "ensembles": ("tests", ensembles_table),
    }
    files = {title: (RESULTS / f"{record}.json", table) for title, (record, table) in known.items()}
    return {title: table(json.loads(file.read_text())) for title, (file, table) in files.items() if file.exists()}


def keep(out: Path, prefix: str) -> None:
    """Puts the records of the cells in `out` into results/."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    for stage, name in (("tune", "tuning"), ("test", "tests")):
        if found := records(out, stage):
            files.write(RESULTS / f"{prefix}{name}.json", (json.dumps(found, indent=1) + "\n").encode())
    if not prefix and (out / "scales.json").exists():
        files.write(RESULTS / "scales.json", (out / "scales.json").read_bytes())


if __name__ == "__main__":
    if len(sys.argv) > 1:
        keep(Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "")
    for title, lines in tables().items():
        write_table("docs/measurements/posteriors.md", title, lines)
