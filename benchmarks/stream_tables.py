"""The tables and figures of docs/streams.md, from the records of long streams in results/streams.

    python benchmarks/stream_tables.py

`worlds` is a sweep (`bacs sweep cifar10-c-worlds --run RUN --out results/streams/worlds`), `memory.json` what
benchmarks/stream_memory.py read meanwhile; the others are of benchmarks/stream_recovery.py and stream_cost.py.
"""

import json
import statistics
from pathlib import Path

import numpy as np
from pages import ROOT, write_table

from bacs.report import over_time
from bacs.report.comparison import Comparison, Entry, Shift, comparisons
from bacs.report.figure_style import png_file
from bacs.report.records import read

RESULTS = ROOT / "results" / "streams"
FIGURES = ROOT / "docs" / "figures"
PAGE = "docs/streams.md"
MEMORY_AT = (10_000, 100_000)


def worlds() -> Comparison:
    (comparison,) = comparisons(read(RESULTS / "worlds").records)
    return comparison


def name_of(shift: Shift) -> str:
    """`mixed` or `runs`."""
    return shift.name.rpartition("/")[2]


def windows_of(entry: Entry, shift: Shift) -> np.ndarray:
    """Accuracy of the ensemble in percent, window by window."""
    return 100 * np.array(list(over_time.scores_over_time(entry, shift).values()))


def world_table(comparison: Comparison, shift: Shift) -> list[str]:
    """Markdown: whole streams, and their windows beside those of vanilla."""
    entries = [entry for entry in comparison.combined if shift.name in entry.records]
    vanilla = next(windows_of(entry, shift) for entry in entries if entry.method == "vanilla")
    lines = [
        "| | Acc | NLL | ECE | windows against vanilla: mean | worst | more than 1 below |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for entry in entries:
        scores = entry.records[shift.name]["ensemble"]
        gains = windows_of(entry, shift) - vanilla
        compared = ["", "", ""]
        if entry.method != "vanilla":
            compared = [f"{gains.mean():+.1f}", f"{gains.min():+.1f}", f"{(gains < -1).sum()} of {len(gains)}"]
        cells = [f"{100 * scores['accuracy']:.1f}", f"{scores['nll']:.3f}", f"{scores['ece']:.3f}", *compared]
        lines.append(f"| {entry.label} | {' | '.join(cells)} |")
    return lines


def memory_table(rows: dict[str, list[list[float]]]) -> list[str]:
    """Markdown: what the process of each stream held, at two moments."""
    lines = ["| stream | " + " | ".join(f"{at:,} images" for at in MEMORY_AT) + " |", "|---|---:|---:|"]
    for name, own in sorted(rows.items()):
        near = [min(own, key=lambda row, at=at: abs(row[0] - at)) for at in MEMORY_AT]
        world, method = name.removeprefix("cifar10-c.world.").removesuffix("--world--1").split("--", 1)
        lines.append(f"| {world}, {method} | {' | '.join(f'{megabytes:.0f} MB' for _, megabytes in near)} |")
    return lines


def recovery_table(record: dict) -> list[str]:
    """Markdown: accuracy after each kind of rubbish."""
    after = record["accuracy_after"]
    lines = ["| between | accuracy of the 2,000 images after it |", "|---|---:|"]
    return lines + [f"| {kind} | {100 * value:.2f} |" for kind, value in after.items()]


def cost_table(record: dict) -> list[str]:
    """Markdown: images per second, and the ratio to vanilla and to BACS turn by turn."""
    rates = record["images_per_second"]
    lines = ["| | images per second, median of turns | of vanilla's | of BACS's |", "|---|---:|---:|---:|"]
    for name, own in rates.items():
        ratios = [statistics.median(np.divide(own, rates[other])) for other in ("vanilla", "bacs")]
        lines.append(f"| {name} | {statistics.median(own):.1f} | {ratios[0]:.2f} | {ratios[1]:.2f} |")
    return lines


def load(name: str) -> dict:
    return json.loads((RESULTS / f"{name}.json").read_text())


def tables() -> dict[str, list[str]]:
    """Every table of the page whose records are there, by its title."""
    comparison = worlds()
    found = {f"world {name_of(shift)}": world_table(comparison, shift) for shift in over_time.streams(comparison)}
    makers = {"memory": memory_table, "recovery": recovery_table, "cost": cost_table}
    return found | {name: make(load(name)) for name, make in makers.items()}


def draw(folder: Path) -> None:
    """The figure of each world."""
    comparison = worlds()
    for shift in over_time.streams(comparison):
        figure = over_time.over_time(comparison, shift)
        (folder / f"world-{name_of(shift)}.png").write_bytes(png_file(figure))


def main() -> None:
    for title, lines in tables().items():
        write_table(PAGE, title, lines)
    draw(FIGURES)


if __name__ == "__main__":
    main()
