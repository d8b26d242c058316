"""The picture of the README: what the demo's ensemble calls images in snow before and after it adapts.

    bacs demo && python benchmarks/readme_figure.py bacs-demo     # keeps results/demo/snow.json, draws the picture
    python benchmarks/readme_figure.py                            # draws it again from the record

Snow is the shift of the demo that costs most. Shown are the first test image of each class, whatever becomes of it, the
classes that all images are called, and the accuracy under every shift of the demo's table.
"""

import hashlib
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from pages import ROOT

import bacs
from bacs.report.figure_style import INK, colour, new_figure, plain

DEMO = ROOT / "results" / "demo" / "records.json"
RECORD = ROOT / "results" / "demo" / "snow.json"
PICTURE = ROOT / "docs" / "figures" / "before-after.png"
METHODS = {"vanilla": "as trained", "auto": "adapted"}
RIGHT, WRONG = "#00704f", "#b3261e"


def snowy_images() -> bacs.data.ImageSet:
    return bacs.data.shift("fashion-mnist-part-c/snow/5")


def first_of_each_class(labels: np.ndarray) -> list[int]:
    """The places of the first image of each class."""
    return [int(np.flatnonzero(labels == number)[0]) for number in range(labels.max() + 1)]


def demo_records() -> dict[str, dict[str, dict[str, Any]]]:
    """Shift -> method -> the demo's record, for the shifts of its table."""
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for record in json.loads(DEMO.read_text()):
        if record["shift"] != "clean" and record["method"] in METHODS:
            found.setdefault(record["shift"], {})[record["method"]] = record
    return found


def keep(run: Path) -> None:
    """What the ensemble of a demo calls the images in snow, if its scores are those of the demo's record."""
    ensemble, snow, predicted = bacs.load(run / "ensemble"), snowy_images(), {}
    for method, record in demo_records()["snow"].items():
        found = bacs.evaluate(ensemble, snow.images, snow.labels, method, **record["settings"])
        if found.ensemble != record["ensemble"]:
            raise SystemExit(f"{method} is not that of {DEMO.name}: {found.ensemble}")
        predicted[method] = found.probabilities.argmax(dim=1).tolist()
    RECORD.write_text(json.dumps(predicted) + "\n")


def draw(predicted: dict[str, list[int]]) -> Figure:
    """Images with what they are called above; below how often each class is called what, and every shift's accuracy."""
    snow = snowy_images()
    labels, classes = np.asarray(snow.labels), snow.classes
    figure = new_figure(figsize=(8.8, 5.3))
    above, below = figure.subfigures(2, 1, height_ratios=(0.8, 2))
    places = first_of_each_class(labels)
    for axes, place in zip(above.subplots(1, len(places)), places, strict=True):
        axes.imshow(snow.images[place].squeeze(), cmap="gray", vmin=0, vmax=255, interpolation="nearest")
        axes.set(xticks=[], yticks=[])
        axes.spines[:].set_visible(False)
        for line, numbers in enumerate(predicted.values()):
            right = numbers[place] == labels[place]
            text = f"{'✓' if right else '✗'} {classes[numbers[place]]}"
            where = {"xycoords": "axes fraction", "ha": "center", "va": "top"}
            axes.annotate(text, (0.5, -0.06 - 0.18 * line), fontsize=7.5, color=RIGHT if right else WRONG, **where)
    above.suptitle("In snow: what the ensemble calls the first image of each class, as trained and adapted", color=INK)
    first, second, third = below.subplots(1, 3, width_ratios=(1.1, 1.1, 1))
    for axes, (method, name) in zip((first, second), METHODS.items(), strict=True):
        draw_confusion(axes, labels, np.array(predicted[method]), classes, f"all images in snow, {name}")
    first.set_ylabel("what it is", color=INK, fontsize=9)
    second.set_yticklabels([])
    draw_accuracies(third)
    return figure


def draw_confusion(axes: Axes, labels: np.ndarray, called: np.ndarray, classes: tuple[str, ...], title: str) -> None:
    """A row for each true class, a column for each that it is called."""
    counts = np.zeros((len(classes), len(classes)))
    np.add.at(counts, (labels, called), 1)
    axes.imshow(counts / counts.sum(axis=1, keepdims=True), cmap="Greens", vmin=0, vmax=1)
    axes.set_xticks(range(len(classes)), classes, rotation=90, fontsize=7.5, color=INK)
    axes.set_yticks(range(len(classes)), classes, fontsize=7.5, color=INK)
    axes.set_title(title, fontsize=9.5, color=INK)
    axes.set_xlabel("what it is called", color=INK, fontsize=9)


def draw_accuracies(axes: Axes) -> None:
    """Two bars for each shift."""
    records = demo_records()
    for offset, (method, name) in zip((-0.2, 0.2), METHODS.items(), strict=True):
        values = [100 * found[method]["ensemble"]["accuracy"] for found in records.values()]
        bars = axes.barh(np.arange(len(records)) + offset, values, 0.38, color=colour(method), label=name)
        axes.bar_label(bars, fmt="%.0f", fontsize=8, padding=2, color=INK)
    axes.set_yticks(range(len(records)), [shift.replace("_", "\n") for shift in records])
    axes.set(xlim=(0, 100), title="percent right, every shift")
    axes.invert_yaxis()
    plain(axes)
    axes.grid(visible=False)
    axes.legend(frameon=False, fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.1), ncols=2, labelcolor=INK)
    axes.title.set_fontsize(9.5)


def checksum() -> str:
    """Of the record that the picture is drawn from: it goes into the file, so that a test can compare."""
    return hashlib.sha256(RECORD.read_bytes()).hexdigest()


if __name__ == "__main__":
    if len(sys.argv) > 1:
        keep(Path(sys.argv[1]))
    about = {"Software": None, "Record": checksum()}
    draw(json.loads(RECORD.read_text())).savefig(PICTURE, dpi=130, facecolor="white", metadata=about)
