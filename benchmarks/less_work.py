"""How far the cost of BACS can fall before its scores do.

    python benchmarks/less_work.py --run results/cifar10 --out work --workers 2      # goes on where it stopped

Ways to work less: adapt on some of the images, with as much larger steps; adapt the last layers only; predict in the
pass that adapts (online); have fewer members. Cost is counted, not timed: the operations of all products, forward and
backward, in units of one forward pass of one member. The yardstick is the noise of the full procedure: its scores under
other image orders. All under two settings: those of the paper, and those that were best on other corruptions. Each
member on each shift is one file of probabilities in OUT; in the end OUT has less-work.json and less-work.svg. `--keep`
puts them into results/performance and docs/figures.
"""

import argparse
import copy
import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch.utils.flop_counter import FlopCounterMode

import bacs
from bacs import engine, files
from bacs.drivers.evaluate import member_probabilities
from bacs.metrics import SCORES, mean_scores, scores_of
from bacs.objectives import entropy

ROOT = Path(__file__).parents[1]
SHIFTS = ("gaussian_noise", "glass_blur", "fog")
SETTINGS = {
    "paper": {"learning_rate": 1e-3, "posterior_weight": 1e-4},
    "tuned": {"learning_rate": 1e-2, "posterior_weight": 5e-5},  # results/posteriors/tuning.json
}
COUNTED = 64  # images on which operations are counted


@dataclass(frozen=True)
class Way:
    """One way to adapt. `share` of the images adapt, chosen at random or as those that are `uncertain` to member 0."""

    name: str
    method: str = "bacs"
    protocol: str = "offline"
    share: float = 1.0
    uncertain: bool = False
    layers: float = 1.0  # the share of layers that adapt, counted from the last
    rate: float = 1.0  # times the learning rate
    batch_size: int = 128  # of the steps; predictions are made in batches of 128
    seed: int = 0


FULL = "BACS"
WAYS = (
    Way("Vanilla", "vanilla"),
    Way("BN", "bn"),
    Way("TENT", "tent"),
    Way("TENT online", "tent", "online"),
    Way(FULL),
    *(Way(f"BACS, order {seed}", seed=seed) for seed in range(1, 5)),
    Way("BACS online", protocol="online"),
    Way("BACS online, rate x 2", protocol="online", rate=2),
    Way("BACS, 1/2 of the images", share=1 / 2),
    Way("BACS, 1/2, rate x 2", share=1 / 2, rate=2),
    Way("BACS, 1/4, rate x 4", share=1 / 4, rate=4),
    Way("BACS, 1/8, rate x 8", share=1 / 8, rate=8),
    Way("BACS, 1/2, batches of 64", share=1 / 2, batch_size=64),
    Way("BACS, 1/4, batches of 32", share=1 / 4, batch_size=32),
    Way("BACS, uncertain 1/2, rate x 2", share=1 / 2, uncertain=True, rate=2),
    Way("BACS, uncertain 1/2, batches of 64", share=1 / 2, uncertain=True, batch_size=64),
    Way("BACS, uncertain 1/4, batches of 32", share=1 / 4, uncertain=True, batch_size=32),
    Way("BACS, last 1/3 of the layers", layers=1 / 3),
    Way("BACS, last 1/3 of the layers, rate x 2", layers=1 / 3, rate=2),
)


class Job(NamedTuple):
    """One member, one way, one shift, under one setting."""

    run: str
    out: str
    data_dir: str | None
    setting: str
    way: Way
    member: int
    shift: str
    images: int

    @property
    def file(self) -> Path:
        return Path(self.out) / f"{self.setting} {self.way.name.replace('/', '_')} {self.member} {self.shift}.npy"


def with_last_layers(member: bacs.Member, share: float) -> bacs.Member:
    """The member with its first layers frozen: adaptation leaves alone what requires no gradient."""
    model = copy.deepcopy(member.model)
    layers = [layer for layer in model.modules() if list(layer.parameters(recurse=False))]
    for layer in layers[: round((1 - share) * len(layers))]:
        layer.requires_grad_(False)
    return replace(member, model=model)


def chosen(way: Way, first: bacs.Member, images: np.ndarray) -> np.ndarray:
    """The images that adapt."""
    count = round(way.share * len(images))
    if way.uncertain:
        p = bacs.adapt(bacs.Ensemble([first]), images, "bn").predict(images)
        return images[np.sort(entropy(p.clamp_min(1e-30).log()).topk(count).indices.numpy())]
    if way.share < 1:
        return images[np.sort(np.random.default_rng(way.seed).permutation(len(images))[:count])]
    return images


def probabilities(way: Way, setting: str, member: bacs.Member, part: np.ndarray, images: np.ndarray) -> torch.Tensor:
    """[images, classes] of one member that was adapted this way to a part of the images."""
    alone = bacs.Ensemble([with_last_layers(member, way.layers)])
    settings = dict(SETTINGS[setting])
    settings["learning_rate"] *= way.rate
    if way.protocol == "online":
        return next(member_probabilities(alone, images, way.method, protocol="online", **settings))
    adapted = bacs.adapt(alone, part, way.method, seed=way.seed, batch_size=way.batch_size, **settings)
    return adapted.predict_member(0, images, seed=way.seed)


def operations(way: Way, members: Sequence[bacs.Member], images: np.ndarray) -> tuple[float, float]:
    """Floating-point operations an image, counted while this way runs: of choosing images, and of one member."""
    choosing, adapting = FlopCounterMode(display=False), FlopCounterMode(display=False)
    with choosing:
        part = chosen(way, members[0], images)
    with adapting:
        probabilities(way, "paper", members[0], part, images)
    return choosing.get_total_flops() / len(images), adapting.get_total_flops() / len(images)


def run(job: Job) -> None:
    """Writes the probabilities of one job."""
    if job.file.exists():
        return
    shift = bacs.data.shift(f"cifar10-c/{job.shift}/5", data_dir=job.data_dir, limit=job.images)
    images, members = np.asarray(shift.images[:]), bacs.load(job.run).members
    part = chosen(job.way, members[0], images)
    found = probabilities(job.way, job.setting, members[job.member], part, images).numpy()
    partial = job.file.with_suffix(".partial")
    with partial.open("wb") as file:
        np.save(file, found)
    partial.replace(job.file)


def scores(jobs: list[Job], labels: dict[str, torch.Tensor]) -> dict[str, float]:
    """Mean over shifts of the scores of the averaged probabilities of these jobs' members."""
    found = []
    for shift in SHIFTS:
        p = torch.from_numpy(np.mean([np.load(job.file) for job in jobs if job.shift == shift], axis=0))
        found.append(scores_of(p, labels[shift]))
    return mean_scores(found)


def plot(settings: dict[str, dict], path: Path) -> None:
    """Cost against NLL and accuracy, a point for every way that is not far off; a row for each setting."""
    from bacs.report.figure_style import colour, new_figure, plain

    figure = new_figure(figsize=(9, 8))
    panels = figure.subplots(len(settings), 2)
    for line, (setting, found) in zip(panels, settings.items(), strict=True):
        full = next(row for row in found["rows"] if row["name"] == FULL)
        # Vanilla and one or two members are so much worse that nothing else could be told apart.
        close = (row for row in found["rows"] if row["method"] != "vanilla" and row["members"] > 2)
        shown = sorted((row for row in close if ", order" not in row["name"]), key=lambda row: row["cost"])
        for axes, name in zip(line, ("nll", "accuracy"), strict=True):
            score = SCORES[name]
            level, width = score.shown(full[name]), 2 * score.shown(found["noise"][name])
            axes.axhspan(level - width, level + width, color=colour("bacs"), alpha=0.15, linewidth=0)
            for number, row in enumerate(shown, start=1):
                place = (row["cost"], score.shown(row[name]))
                axes.scatter(*place, color=colour(row["method"]), s=22, zorder=3)
                beside = (3, 4) if number % 2 else (3, -9)
                axes.annotate(str(number), place, textcoords="offset points", xytext=beside, fontsize=7)
                if axes is panels[0, 0]:
                    axes.scatter([], [], color=colour(row["method"]), s=22, label=f"{number}  {row['name']}")
            axes.set_title(f"settings: {setting}", fontsize=9)
            axes.set_xlabel("cost (forward passes)")
            axes.set_ylabel(score.axis)
            plain(axes)
    figure.legend(loc="outside lower center", ncols=3, frameon=False, fontsize=8)
    figure.savefig(path, metadata={"Date": None})


def summary(
    jobs: list[Job], costs: dict[str, tuple[float, float]], labels: dict[str, torch.Tensor], members: int
) -> dict:
    """Every way's cost and scores under one setting, and the noise of the whole procedure."""
    rows = []
    for way in WAYS:
        choosing, adapting = costs[way.name]
        for k in range(1, members + 1) if way.name in (FULL, "BN") else (members,):
            name = way.name if k == members else f"{way.name}, {k} of {members} members"
            row = {"name": name, "method": way.method, "members": k, "cost": choosing + k * adapting}
            rows.append(row | scores([job for job in jobs if job.way == way and job.member < k], labels))
    orders = [row for row in rows if row["name"] == FULL or row["name"].startswith(f"{FULL}, order")]
    noise = {name: float(np.std([row[name] for row in orders], ddof=1)) for name in SCORES}
    return {"noise": noise, "rows": rows}


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
        Job(*base, setting, way, member, shift, options.images)
        for setting in SETTINGS
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
    _, forward = operations(WAYS[0], members, few)
    costs = {}
    for way in WAYS:
        choosing, adapting = operations(way, members, few)
        costs[way.name] = (choosing / forward, adapting / forward)
    found = {
        setting: SETTINGS[setting]
        | summary([job for job in jobs if job.setting == setting], costs, labels, len(members))
        for setting in SETTINGS
    }
    record = {"shifts": SHIFTS, "severity": 5, "images": options.images, "settings": found}
    files.write(options.out / "less-work.json", (json.dumps(record, indent=1) + "\n").encode())
    plot(found, options.out / "less-work.svg")
    if options.keep:
        shutil.copy(options.out / "less-work.json", ROOT / "results" / "performance")
        shutil.copy(options.out / "less-work.svg", ROOT / "docs" / "figures")
    for setting, each in found.items():
        print(setting, "noise", {name: round(value, 5) for name, value in each["noise"].items()})
        for row in each["rows"]:
            print(f"{row['cost']:6.1f}  {100 * row['accuracy']:6.2f}  {row['nll']:.4f}  {row['name']}")


if __name__ == "__main__":
    main()
