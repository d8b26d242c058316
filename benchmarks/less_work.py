"""How far the cost of BACS can fall before its scores do.

    python benchmarks/less_work.py --run results/cifar10 --out work --workers 2      # goes on where it stopped

Ways to work less: adapt on some of the images, with as much larger steps; adapt the last layers only; predict in the
pass that adapts (online); have fewer members. Cost is counted, not timed: the operations of all products, forward and
backward, in units of one forward pass of one member. The yardstick is the noise of the full procedure: its scores under
other image orders. Each member on each shift is one file of probabilities in OUT; in the end OUT has less-work.json and
less-work.svg. `--keep` puts them into results/performance and docs/figures.
"""

import argparse
import copy
import json
import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch.utils.flop_counter import FlopCounterMode

import bacs
from bacs import checkpoints, engine
from bacs.methods.evaluate import SCORES, member_probabilities
from bacs.objectives import entropy

ROOT = Path(__file__).parents[1]
SHIFTS = ("gaussian_noise", "glass_blur", "fog")
LEARNING_RATE = 1e-3
COUNTED = 64  # images on which operations are counted


@dataclass(frozen=True)
class Way:
    """One way to adapt. `share` of the images adapt, chosen at random or as the most `uncertain` ones."""

    name: str
    method: str = "bacs"
    protocol: str = "offline"
    share: float = 1.0
    uncertain: bool = False
    layers: float = 1.0  # the share of layers that adapt, counted from the last
    rate: float = 1.0  # times the learning rate
    seed: int = 0


FULL = "BACS"
WAYS = (
    Way("Vanilla", "vanilla"),
    Way("BN", "bn"),
    Way("TENT", "tent"),
    Way("TENT online", "tent", "online"),
    Way(FULL),
    Way("BACS, order 1", seed=1),
    Way("BACS, order 2", seed=2),
    Way("BACS online", protocol="online"),
    Way("BACS online, rate x 2", protocol="online", rate=2),
    Way("BACS, 1/2 of the images", share=1 / 2),
    Way("BACS, 1/2, rate x 2", share=1 / 2, rate=2),
    Way("BACS, uncertain 1/2, rate x 2", share=1 / 2, uncertain=True, rate=2),
    Way("BACS, 1/4, rate x 4", share=1 / 4, rate=4),
    Way("BACS, 1/8, rate x 8", share=1 / 8, rate=8),
    Way("BACS, last 1/3 of the layers", layers=1 / 3),
    Way("BACS, last 1/3 of the layers, rate x 2", layers=1 / 3, rate=2),
)


class Job(NamedTuple):
    """One member, one way, one shift."""

    run: str
    out: str
    data_dir: str | None
    way: Way
    member: int
    shift: str
    images: int

    @property
    def file(self) -> Path:
        return Path(self.out) / f"{self.way.name.replace('/', '_')} {self.member} {self.shift}.npy"


def with_last_layers(member: bacs.Member, share: float) -> bacs.Member:
    """The member with its first layers frozen: adaptation leaves alone what requires no gradient."""
    model = copy.deepcopy(member.model)
    layers = [layer for layer in model.modules() if list(layer.parameters(recurse=False))]
    for layer in layers[: round((1 - share) * len(layers))]:
        layer.requires_grad_(False)
    return replace(member, model=model)


def chosen(way: Way, ensemble: bacs.Ensemble, images: np.ndarray) -> np.ndarray:
    """Positions of the images that adapt."""
    count = round(way.share * len(images))
    if way.uncertain:
        p = bacs.adapt(ensemble, images, "bn").predict(images)
        return np.sort(entropy(p.clamp_min(1e-30).log()).topk(count).indices.numpy())
    return np.sort(np.random.default_rng(way.seed).permutation(len(images))[:count])


def probabilities(way: Way, member: bacs.Member, images: np.ndarray) -> torch.Tensor:
    """[images, classes] of one member that was adapted this way."""
    alone = bacs.Ensemble([with_last_layers(member, way.layers)])
    settings = {} if way.method in ("vanilla", "bn") else {"learning_rate": way.rate * LEARNING_RATE}
    if way.protocol == "online":
        return next(member_probabilities(alone, images, way.method, protocol="online", **settings))
    part = images if way.share == 1 else images[chosen(way, alone, images)]
    adapted = bacs.adapt(alone, part, way.method, seed=way.seed, **settings)
    return adapted.predict_member(0, images, seed=way.seed)


def operations(way: Way, member: bacs.Member, images: np.ndarray) -> float:
    """Floating-point operations an image, counted while this way runs."""
    counter = FlopCounterMode(display=False)
    with counter:
        probabilities(way, member, images)
    return counter.get_total_flops() / len(images)


def run(job: Job) -> None:
    """Writes the probabilities of one job."""
    if job.file.exists():
        return
    shift = bacs.data.shift(f"cifar10-c/{job.shift}/5", data_dir=job.data_dir, limit=job.images)
    member = bacs.load(job.run).members[job.member]
    found = probabilities(job.way, member, np.asarray(shift.images[:])).numpy()
    partial = job.file.with_suffix(".partial")
    with partial.open("wb") as file:
        np.save(file, found)
    partial.replace(job.file)


def scores(jobs: list[Job], labels: dict[str, torch.Tensor]) -> dict[str, float]:
    """Mean over shifts of the scores of the averaged probabilities of these jobs' members."""
    found = []
    for shift in SHIFTS:
        p = torch.from_numpy(np.mean([np.load(job.file) for job in jobs if job.shift == shift], axis=0))
        found.append({name: score(p, labels[shift]) for name, score in SCORES.items()})
    return {name: float(np.mean([each[name] for each in found])) for name in SCORES}


def plot(rows: list[dict], noise: dict[str, float], path: Path) -> None:
    """Cost against NLL and accuracy, every way as a point."""
    from bacs.report.figures import colour, new_figure, plain

    figure = new_figure(figsize=(9, 5))
    panels = figure.subplots(1, 2)
    full = next(row for row in rows if row["name"] == FULL)
    for axes, score, factor in zip(panels, ("nll", "accuracy"), (1, 100), strict=True):
        level, width = factor * full[score], 2 * factor * noise[score]
        axes.axhspan(level - width, level + width, color=colour("bacs"), alpha=0.15, linewidth=0)
        shown = [row for row in rows if row["method"] != "vanilla"]
        for number, row in enumerate(shown, start=1):
            axes.scatter(row["cost"], factor * row[score], color=colour(row["method"]), s=22, zorder=3)
            axes.annotate(
                str(number), (row["cost"], factor * row[score]), textcoords="offset points", xytext=(4, 3), fontsize=7
            )
            if axes is panels[0]:
                axes.scatter([], [], color=colour(row["method"]), s=22, label=f"{number}  {row['name']}")
        axes.set_xlabel("cost (forward passes)")
        axes.set_ylabel("NLL" if score == "nll" else "accuracy (%)")
        plain(axes)
    figure.legend(loc="outside lower center", ncols=3, frameon=False, fontsize=8)
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--images", type=int, default=2000)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--data-dir")
    parser.add_argument("--keep", action="store_true", help="put the record into results/, the figure into docs/")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    members = bacs.load(options.run).members
    base = (str(options.run), str(options.out), options.data_dir)
    jobs = [
        Job(*base, way, member, shift, options.images)
        for shift in SHIFTS
        for way in WAYS
        for member in range(len(members))
    ]
    print(f"{len(jobs)} jobs, {sum(job.file.exists() for job in jobs)} done before", flush=True)
    engine.Place(workers=options.workers).run(run, jobs)
    shifts = {
        name: bacs.data.shift(f"cifar10-c/{name}/5", data_dir=options.data_dir, limit=options.images) for name in SHIFTS
    }
    labels = {name: torch.as_tensor(shift.labels) for name, shift in shifts.items()}
    few = np.asarray(shifts[SHIFTS[0]].images[:COUNTED])
    forward = operations(WAYS[0], members[0], few)
    rows = []
    for way in WAYS:
        mine = [job for job in jobs if job.way == way]
        cost = operations(way, members[0], few) / forward
        rows.append({"name": way.name, "method": way.method, "members": len(members), "cost": cost * len(members)})
        rows[-1] |= scores(mine, labels)
        if way.name in (FULL, "BN"):
            for k in range(1, len(members)):
                some = {"name": f"{way.name}, {k} of {len(members)} members", "method": way.method, "members": k}
                rows.append(some | {"cost": cost * k} | scores([job for job in mine if job.member < k], labels))
    orders = [row for row in rows if row["name"] in (FULL, "BACS, order 1", "BACS, order 2")]
    noise = {name: float(np.std([row[name] for row in orders], ddof=1)) for name in SCORES}
    record = {"shifts": SHIFTS, "severity": 5, "images": options.images, "noise": noise, "rows": rows}
    checkpoints.replace(options.out / "less-work.json", (json.dumps(record, indent=1) + "\n").encode())
    plot(rows, noise, options.out / "less-work.svg")
    if options.keep:
        shutil.copy(options.out / "less-work.json", ROOT / "results" / "performance")
        shutil.copy(options.out / "less-work.svg", ROOT / "docs" / "figures")
    for row in rows:
        print(f"{row['cost']:6.1f}  {100 * row['accuracy']:6.2f}  {row['nll']:.4f}  {row['name']}")
    print("noise", {name: round(value, 5) for name, value in noise.items()})


if __name__ == "__main__":
    main()
