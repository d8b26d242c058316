"""Puts the records of `python -m benchmarks --record` into docs/performance.md, between their marks.

    python benchmarks/performance_tables.py

Every record in results/performance gives its own table; a part that no record holds says so. Records made with
`--quick` are left out.
"""

import json
import statistics
from collections.abc import Callable
from pathlib import Path

import numpy as np
from pages import ROOT, with_table

from bacs.benchmark import records
from bacs.methods.catalogue import METHODS
from bacs.metrics import SCORES

DOCUMENT = ROOT / "docs" / "performance.md"
RECORDS = ROOT / "results" / "performance"


def spread(found: dict, digits: int = 2) -> str:
    """A ratio with the range of its turns."""
    return "{:.{d}f} ({:.{d}f} to {:.{d}f})".format(found["median"], found["least"], found["greatest"], d=digits)


def grid(heads: list[str], rows: list[list]) -> list[str]:
    lines = ["| " + " | ".join(heads) + " |", "|---|" + "---:|" * (len(heads) - 1)]
    return lines + ["| " + " | ".join(map(str, row)) + " |" for row in rows]


def steps(part: dict) -> list[str]:
    rows = [
        [ratio["name"], row["width"], row["threads"], row["members"], spread(ratio, 3), ratio["asked"]]
        for place in range(len(part["rows"][0]["ratios"]))
        for row in part["rows"]
        for ratio in [row["ratios"][place]]
    ]
    speeds = [
        [name, row["width"], row["threads"], row["members"], f"{speed:.0f}"]
        for name in part["rows"][0]["images_per_second"]
        for row in part["rows"]
        for speed in [row["images_per_second"][name]]
    ]
    sharing = ["width", "threads", "members"]
    return [*grid(["step", *sharing, "ratio", "asked"], rows), "", *grid(["side", *sharing, "images/s"], speeds)]


def mixtures(part: dict) -> list[str]:
    heads = ["work", "width", "threads", "members", "mixture / batch statistics", "asked"]
    sharing = ("name", "width", "threads", "members")
    return grid(heads, [[*(row[key] for key in sharing), spread(row, 3), row["asked"]] for row in part["rows"]])


def ways(part: dict) -> list[str]:
    names = ("one after another", "processes", "compiled", "bfloat16", "stacked")
    rows = [[row["width"], row["members"], row["threads"], *(spread(row[n]) for n in names)] for row in part["rows"]]
    return grid(["width", "members", "threads", *names], rows)


def members(part: dict) -> list[str]:
    heads = ["width", "members", "images", "k members / k times one", "plain runs / members", "asked"]
    rows = []
    for row in part["rows"]:
        ratios = [spread(row[name]) for name in ("against_one", "against_plain")]
        rows.append([row["width"], row["members"], row["images"], *ratios, part["asked"]])
    return grid(heads, rows)


def protocols(part: dict) -> list[str]:
    names = ("offline", "online", "online_of_offline")
    heads = ["width", "images", "plain / ours, offline", "plain / ours, online", "online / offline, both ours"]
    return grid(heads, [[row["width"], row["images"], *(spread(row[name]) for name in names)] for row in part["rows"]])


def gemm(part: dict) -> list[str]:
    heads = ["width", "threads", "members", "GEMM, GFLOP/s", "TENT", "BACS", "asked"]
    rows = []
    for row in part["rows"]:
        shares = [spread(row[method]) for method in ("tent", "bacs")]
        rows.append([row["width"], row["threads"], row["members"], row["gemm_gflops"], *shares, row["asked"]])
    return grid(heads, rows)


def profile(part: dict) -> list[str]:
    columns = [f"{row['method']}, width {row['width']}" for row in part["rows"]]
    cells = [
        [f"{100 * found['share']:.1f} % `{found['operator'].split(': ')[-1]}`" for found in row["operators"]]
        for row in part["rows"]
    ]
    return grid(["", *columns], [[place, *found] for place, found in enumerate(zip(*cells, strict=True), start=1)])


def scaling(part: dict) -> list[str]:
    rows = []
    for axis, found in part["axes"].items():
        points = ", ".join(f"{x}: {y:.2f} s" for x, y in zip(found["points"], found["seconds"], strict=True))
        slope = f"{1000 * found['slope']:.2f} ms each"
        rows.append([axis, points, slope, f"{1000 * found['intercept']:.0f} ms", f"{found['r_squared']:.4f}"])
    return grid(["against", "seconds", "slope", "at zero", "R²"], rows)


def memory(part: dict) -> list[str]:
    rows = []
    for axis, measured in part["axes"].items():
        for allocator, found in measured["allocators"].items():
            middle = [statistics.median(each) for each in found["megabytes"]]
            points = ", ".join(f"{x}: {y:.0f} MB" for x, y in zip(measured["along"], middle, strict=True))
            rows.append([axis, allocator, points, f"{found['slope']:.4f} MB each", f"{found['r_squared']:.3f}"])
    return grid(["against", "allocator", "peak", "slope", "R²"], rows)


def training(part: dict) -> list[str]:
    rows = []
    for name, speeds in part["images_per_second"].items():
        turns = ", ".join(f"{speed:.0f}" for speed in speeds)
        rows.append([name, turns, spread(part["ratios"][name]) if name in part["ratios"] else ""])
    return grid(["loop", "images/s in each turn", "ratio to the plain loop"], rows)


def corruptions(part: dict) -> list[str]:
    rows = [
        [row["corruption"], row["peer_per_second"]]
        + [f"{row[f'{key}_per_second'] / row['peer_per_second']:.1f}" for key in ("one", "many")]
        for row in part["rows"]
    ]
    means = [part[f"geometric_mean_ratio_{key}"] for key in ("one", "many")]
    threads = f"{part['threads']} threads"
    heads = ["corruption", "imagecorruptions, images/s", "bacs, 1 thread, times that", f"{threads}, times that"]
    return grid(heads, [*rows, ["geometric mean", "", *means]])


TABLES: dict[str, Callable[[dict], list[str]]] = {
    "steps": steps,
    "mixtures": mixtures,
    "ways": ways,
    "members": members,
    "protocols": protocols,
    "gemm": gemm,
    "profile": profile,
    "scaling": scaling,
    "memory": memory,
    "training": training,
    "corruptions": corruptions,
}


def less_work(record: dict) -> list[str]:
    """Every way to adapt, the cheapest first, and whether it is as good as the whole procedure but for noise."""
    lines: list[str] = []
    labels = [score.label for score in SCORES.values()]
    for setting, found in record["settings"].items():
        rate, weight, noise = found["learning_rate"], found["posterior_weight"], found["noise"]
        lines += [
            f"*{setting}*: learning rate {rate:g}, posterior weight {weight:g}; a standard deviation of the noise is "
            f"{100 * noise['accuracy']:.2f} points of accuracy, {noise['nll']:.4f} of NLL.",
            "",
            *grid(["way", "members", "cost", *labels, "within noise"], less_work_rows(found)),
            "",
        ]
    return lines[:-1]


def less_work_rows(found: dict) -> list[list]:
    rows = {row["name"]: row for row in found["rows"]}
    whole = rows["BACS"]
    lines = []
    for row in sorted(rows.values(), key=lambda row: row["cost"]):
        better = {"accuracy": row["accuracy"] - whole["accuracy"], "nll": whole["nll"] - row["nll"]}
        within = all(gain >= -2 * found["noise"][name] for name, gain in better.items())
        scores = [score.text(row[name]) for name, score in SCORES.items()]
        lines.append([row["name"], row["members"], f"{row['cost']:.1f}", *scores, "yes" if within else ""])
    return lines


def overhead(record: dict) -> list[str]:
    rows = [
        [place, f"{pair['bare']:.1f} s", f"{pair['sweep']:.1f} s", f"{pair['ratio']:.3f}"]
        for place, pair in enumerate(record["pairs"], start=1)
    ]
    spent = [
        [about["name"], about["cells"], f"{about['total'] / 60:.0f} min"]
        + [f"{100 * about[name] / about['total']:.2f} %" for name in ("load", "data", "passes", "scores")]
        for about in map(seconds_of, sweeps())
    ]
    heads = ["sweep", "cells", "in all", "opening the run", "images", "passes", "scores"]
    costs = [
        [folder.name, *(f"{cost[name]:.2f}" if name in cost else "" for name in METHODS)]
        for folder, cost in ((folder, milliseconds_of(folder)) for folder in sweeps())
    ]
    return [
        *grid(["turn", "bare passes", "whole sweep", "ratio"], rows),
        "",
        *grid(heads, spent),
        "",
        *grid(["sweep", *METHODS], costs),
    ]


def sweeps() -> list[Path]:
    return sorted(file.parent for file in (ROOT / "results").glob("*/sweep.json"))


def milliseconds_of(folder: Path) -> dict[str, float]:
    """What each method takes of one core per image and member, with one epoch where it has any."""
    found: dict[str, list[float]] = {}
    for record in records(folder):
        if record["epochs"] <= 1:
            passes = 1000 * record["seconds"]["passes"] / (record["images"] * len(record["members"]))
            found.setdefault(record["method"], []).append(passes)
    return {name: float(np.mean(values)) for name, values in found.items()}


def seconds_of(folder: Path) -> dict:
    """What the cells of a sweep took, by its own records."""
    found = [json.loads(file.read_text())["seconds"] for file in (folder / "records").glob("*.json")]
    return {"name": folder.name, "cells": len(found)} | {name: sum(each[name] for each in found) for name in found[0]}


def two_commits(record: dict) -> list[str]:
    """New over old for a step, with the memory of each process, and the speed of `bacs adapt`."""
    rows = [
        [row["method"], row["width"], row["members"], row["threads"], spread(row, 3), *row["megabytes"].values()]
        for row in record["steps"]
    ]
    heads = ["step", "width", "members", "threads", "time, new / old", "MB, old", "MB, new"]
    adapt = f"`bacs adapt`, five members, offline: {spread(record['adapt'])} times as fast."
    commits = f"`{record['commits']['old']}` and `{record['commits']['new']}`:"
    remarks = [record["note"], ""] if "note" in record else []
    return [commits, "", *remarks, *grid(heads, rows), "", adapt]


# Records that are not of the suite: file, table, and the command that makes it.
OTHERS: dict[str, tuple[Path, Callable[[dict], list[str]], str]] = {
    "less-work": (RECORDS / "less-work.json", less_work, "less_work.py --run results/cifar10 --out work --keep"),
    "two-commits": (RECORDS / "two-commits.json", two_commits, "two_commits.py OLD NEW --record RECORD"),
    "overhead": (
        ROOT / "results" / "benchmark" / "overhead.json",
        overhead,
        "sweep_overhead.py RECIPE --run RUN --out results/benchmark/overhead.json",
    ),
}


def machine_line(record: dict) -> str:
    """One line of the machine that a record is of."""
    about = record["machine"]
    return f"{about['processor']}, {about['cores']} cores ({', '.join(about['flags'])}), torch {about['torch']}"


def text_of(name: str, records: dict[str, dict]) -> list[str]:
    """The tables of one part, each under its record's name, the machine and the day."""
    lines: list[str] = []
    for title, record in records.items():
        part = record["parts"].get(name)
        if part is None or part["quick"] or "missing" in part:
            continue
        lines += [f"`{title}`: {machine_line(record)}; {part['date']}, load before {part['load_before']}.", ""]
        lines += [*TABLES[name](part), ""]
    return lines[:-1] or [f"No record yet: `python -m benchmarks {name} --record results/performance/NAME.json`."]


def filled(document: str, records: dict[str, dict]) -> str:
    """The document with all its tables made anew."""
    for name in TABLES:
        document = with_table(document, name, text_of(name, records))
    for name, (file, table, command) in OTHERS.items():
        lines = table(json.loads(file.read_text())) if file.exists() else [f"No record yet: `benchmarks/{command}`."]
        document = with_table(document, name, lines)
    return document


def suite_records() -> dict[str, dict]:
    """The suite's records by name; other files of the folder have no parts."""
    found = {file.name: json.loads(file.read_text()) for file in sorted(RECORDS.glob("*.json"))}
    return {name: record for name, record in found.items() if "parts" in record}


if __name__ == "__main__":
    DOCUMENT.write_text(filled(DOCUMENT.read_text(), suite_records()))
