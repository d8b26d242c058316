"""`auto` in every situation: corruptions of all severities, folders of few classes, and both.

    python benchmarks/situations.py RUN --name four-resnets --data-dir DATA    # goes on where it stopped
    python benchmarks/situations.py --tables                                   # records -> docs/auto.md

`--part 0 2` and `--part 1 2` in two processes share the work, with OMP_NUM_THREADS=1 a core each.

Each situation is a record in results/auto/NAME: scores of vanilla, BN, BACS as the paper has it and auto, and of the
share of batch statistics that is best by the labels. Images are of the first 5,000 of the test set; the rules of `auto`
were settled on the others, with validation corruptions and other sets of classes.
"""

import argparse
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
from pages import ROOT, write_table

import bacs
from bacs.corruptions import TEST, corrupt
from bacs.files import write as write_whole
from bacs.metrics import scores_of
from bacs.predictive import abstain_for
from bacs.report.figure_style import INK, MARKERS, colour, new_figure, plain

RESULTS = ROOT / "results" / "auto"
FIGURES = ROOT / "docs" / "figures"
FIRST = 5000
COUNT = 1000
BATCH = 64
WISHED = 0.95
SEVERITIES = (1, 3, 5)
FEW = {
    "clean": [(1,), (4, 7), (2, 5, 9), (0, 1, 2, 4, 5), (0, 2, 4, 5, 6, 7, 9)],
    "fog/5": [(2,), (5, 9), (1, 4, 8), (2, 3, 6, 7, 9), (0, 1, 2, 3, 4, 5, 9)],
    "gaussian_noise/5": [(4,), (0, 7), (3, 6, 9), (1, 4, 5, 7, 8), (1, 2, 4, 5, 7, 8, 9)],
    "pixelate/3": [(9,), (2, 4), (1, 5, 7), (0, 4, 6, 8, 9), (0, 1, 3, 5, 6, 7, 9)],
}
SHARES = (0.0, 0.1, 0.25, 0.5, 1.0)
NAMES = {"vanilla": "vanilla", "bn": "BN", "bacs": "BACS", "auto": "auto"}
METHODS = tuple(NAMES)


def names() -> list[tuple[str, str, tuple[int, ...]]]:
    """Name, corruption with severity, and classes (none: all) of every situation; what differs most comes first."""
    mixed = [("clean", "clean", ()), *((f"{c}/{s}", f"{c}/{s}", ()) for s in reversed(SEVERITIES) for c in TEST)]
    few = [(f"{shift}, {len(classes)} of 10", shift, classes) for shift, sets in FEW.items() for classes in sets]
    order = [each for pair in zip(mixed, few, strict=False) for each in pair]
    return order + [each for each in mixed + few if each not in order]


def pictures(test, shift: str, classes: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    images, labels = np.asarray(test.images[:FIRST]), test.labels[:FIRST]
    chosen = np.flatnonzero(np.isin(labels, classes)) if classes else np.arange(FIRST)
    chosen = chosen[:COUNT]
    if shift == "clean":
        return images[chosen], labels[chosen]
    name, severity = shift.split("/")
    return corrupt(images[chosen], name, int(severity)), labels[chosen]


def record(ensemble, images, labels) -> dict:
    """Scores by method and by share of batch statistics, what auto chose, and what it said of itself."""
    shares, before = {}, None
    for share in SHARES:
        under = replace(ensemble, statistics=bacs.Statistics(share))
        predictive = under.predictive(images, batch_size=BATCH)
        before = predictive if share == 0 else before
        shares[str(share)] = scores_of(predictive.probabilities, labels)
    paper = bacs.adapt(ensemble, images, "bacs", batch_size=BATCH).predict(images, batch_size=BATCH)
    adapted = bacs.adapt(ensemble, images, "auto", batch_size=BATCH)
    after = adapted.predictive(images, batch_size=BATCH)
    scores = {"vanilla": shares["0.0"], "bn": shares["1.0"], "bacs": scores_of(paper, labels)}
    scores["auto"] = scores_of(after.probabilities, labels)
    told = adapted.adaptation or {}
    about = {name: told.get(name) for name in ("reasons", "estimate", "batch_weight", "temperature", "candidates")}
    about["estimate_before"] = bacs.agreement.estimate_others(before, after)._asdict()
    return {
        "images": len(labels),
        "scores": scores,
        "shares": shares,
        "auto": about | {"abstaining": abstaining(after.probabilities.numpy(), labels)},
    }


def abstaining(probabilities: np.ndarray, labels: np.ndarray) -> dict:
    """What is answered for and how often that is right, if WISHED is to be reached by estimate."""
    kept = ~abstain_for(probabilities.max(axis=1), WISHED)
    right = probabilities.argmax(axis=1) == labels
    return {
        "wished": WISHED,
        "answered": float(kept.mean()),
        "accuracy": float(right[kept].mean()) if kept.any() else None,
    }


def mean_table(records: dict[str, dict]) -> list[str]:
    """Markdown: means over situations, of all and by kind."""
    kinds = {
        "all": list(records),
        "all classes": [name for name in records if " of 10" not in name],
        "few classes": [name for name in records if " of 10" in name],
    }
    lines = [
        "| situations | | vanilla | BN | BACS | auto | best r by labels |",
        "|---|---|---:|---:|---:|---:|---:|",
    ]
    for kind, chosen in kinds.items():
        for score in ("accuracy", "nll", "ece"):
            cells = []
            for method in METHODS:
                cells.append(np.mean([records[name]["scores"][method][score] for name in chosen]))
            pick = max if score == "accuracy" else min
            best = [pick(each[score] for each in records[name]["shares"].values()) for name in chosen]
            texts = [bacs.metrics.SCORES[score].text(value) for value in (*cells, np.mean(best))]
            label = bacs.metrics.SCORES[score].label
            lines.append(f"| {kind}: {len(chosen)} | {label} | {' | '.join(texts)} |")
    return lines


def situation_table(records: dict[str, dict]) -> list[str]:
    """Markdown: accuracy of every situation, and the estimate beside auto's."""
    lines = [
        "| situation | vanilla | BN | BACS | auto | estimated | best r by labels |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for name, found in records.items():
        cells = [f"{100 * found['scores'][method]['accuracy']:.1f}" for method in METHODS]
        guess = found["auto"]["estimate"]
        cells.append("" if guess is None else f"{100 * guess['ensemble']:.1f}")
        cells.append(f"{100 * max(each['accuracy'] for each in found['shares'].values()):.1f}")
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return lines


def claims(records: dict[str, dict]) -> list[str]:
    """What was asked for, and what came out."""
    accuracy = {m: np.array([r["scores"][m]["accuracy"] for r in records.values()]) for m in METHODS}
    below = 100 * (accuracy["auto"] - accuracy["vanilla"])
    best_fixed = np.max([accuracy[m] for m in ("vanilla", "bn", "bacs")], axis=0)
    off = [
        abs(r["auto"]["estimate"]["ensemble"] - r["scores"]["auto"]["accuracy"])
        for r in records.values()
        if r["auto"]["estimate"]
    ]
    mean = {s: {m: np.mean([r["scores"][m][s] for r in records.values()]) for m in METHODS} for s in ("nll", "ece")}
    nll, ece = mean["nll"], mean["ece"]
    return [
        f"- worst against vanilla {below.min():+.1f} points ({(below < -1).sum()} situations below by more than 1), "
        f"mean {below.mean():+.1f}",
        "- against the best of vanilla, BN and BACS in each situation: "
        f"{100 * (accuracy['auto'] - best_fixed).mean():+.1f} points in the mean",
        f"- NLL {nll['auto']:.3f}: {nll['auto'] / nll['vanilla']:.2f} of vanilla's, BN's is {nll['bn']:.3f}",
        f"- ECE {ece['auto']:.3f}, vanilla's {ece['vanilla']:.3f}, BN's {ece['bn']:.3f}",
        f"- estimated accuracy is off by {100 * np.mean(off):.1f} points in the mean, by more than 4 in "
        f"{np.mean(np.array(off) > 0.04) * 100:.0f} % of the situations",
    ]


def draw(name: str, records: dict[str, dict]) -> None:
    """Accuracy of every method in every situation, the hardest for vanilla on top."""
    figure = new_figure(figsize=(7.2, 1.4 + 0.165 * len(records)))
    axes = figure.add_subplot()
    order = sorted(records, key=lambda situation: -records[situation]["scores"]["vanilla"]["accuracy"])
    places = np.arange(len(order))
    best = [max(each["accuracy"] for each in records[situation]["shares"].values()) for situation in order]
    axes.scatter(100 * np.array(best), places, marker="|", s=60, color=INK, label="best r by labels", linewidths=1.2)
    for method in METHODS:
        values = [100 * records[situation]["scores"][method]["accuracy"] for situation in order]
        size = 34 if method == "auto" else 14
        looks = {"s": size, "marker": MARKERS[method], "color": colour(method)}
        axes.scatter(values, places, **looks, label=NAMES[method])
    axes.set_yticks(places, [situation.replace("_", " ").replace("/", " ") for situation in order])
    axes.set(xlabel="accuracy of the ensemble in percent", xlim=(0, 100), ylim=(-0.8, len(order) - 0.2))
    plain(axes)
    axes.tick_params(axis="y", labelsize=7, length=0)
    figure.legend(loc="outside upper center", ncols=5, frameon=False, fontsize=8.5, labelcolor=INK)
    figure.savefig(FIGURES / f"auto-{name}.png", dpi=110, facecolor="white", metadata={"Software": None})


def stored(name: str) -> dict[str, dict]:
    """The records of an ensemble, in the order of the situations."""
    files = {situation: RESULTS / name / f"{slug(situation)}.json" for situation, _, _ in names()}
    return {situation: json.loads(file.read_text()) for situation, file in files.items() if file.exists()}


def slug(situation: str) -> str:
    return "".join(letter if letter.isalnum() else "-" for letter in situation)


def tables() -> dict[str, list[str]]:
    found = {}
    for folder in sorted(path for path in RESULTS.glob("*") if path.is_dir()):
        records = stored(folder.name)
        so_far = f"{len(records)} of {len(names())} situations were run."
        found[f"{folder.name} means"] = [so_far, "", *mean_table(records), "", *claims(records)]
        found[f"{folder.name} situations"] = situation_table(records)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, nargs="?")
    parser.add_argument("--name")
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--part", type=int, nargs=2, default=(0, 1), metavar=("NUMBER", "OF"))
    parser.add_argument("--tables", action="store_true")
    options = parser.parse_args()
    if options.tables:
        for title, lines in tables().items():
            write_table("docs/auto.md", title, lines)
        for folder in sorted(path for path in RESULTS.glob("*") if path.is_dir()):
            draw(folder.name, stored(folder.name))
        return
    ensemble = bacs.load(options.run)
    test = bacs.data.load("cifar10", data_dir=options.data_dir)
    folder = RESULTS / options.name
    folder.mkdir(parents=True, exist_ok=True)
    for situation, shift, classes in names()[options.part[0] :: options.part[1]]:
        file = folder / f"{slug(situation)}.json"
        if file.exists():
            continue
        found = record(ensemble, *pictures(test, shift, classes))
        write_whole(file, (json.dumps(found, indent=1) + "\n").encode())
        shown = {m: round(100 * s["accuracy"], 1) for m, s in found["scores"].items()}
        print(situation, shown, found["auto"]["reasons"], flush=True)


if __name__ == "__main__":
    main()
