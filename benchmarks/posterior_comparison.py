"""Posteriors after the fact against SWAG-D of the whole trajectory, and ensembles of one checkpoint against a deep one.

    python benchmarks/posterior_comparison.py --run runs/cifar10 --out work              # goes on where it stopped
    python benchmarks/posterior_comparison.py --run runs/cifar10 --out work --workers 2
    python benchmarks/posterior_comparison.py --run runs/resnets-fisher --out work --only tune --variants own

RUN is an ensemble of CIFAR-10 networks with posteriors of their own. Three stages: `prepare` makes other ensembles of
it, `tune` chooses learning rate and posterior_weight for each on the four validation corruptions, with the first
member alone, and `test` scores all members on four others. Every member and every cell is a file in OUT, whole or not
there. `python benchmarks/posterior_tables.py OUT` makes the records in results/ and the tables in
docs/measurements/posteriors.md.
"""

import argparse
import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import bacs
from bacs import engine, files
from bacs.checkpoints import MANIFEST
from bacs.corruptions import VALIDATION
from bacs.posteriors import posterior_weight_for, precision_quantiles, pull_quantiles
from bacs.pretrained import from_samples, short_swag, temperature_for, with_fisher, with_new_head
from bacs.training import PadCropFlip

SHIFTS = ("gaussian_noise", "motion_blur", "fog", "pixelate")
LEARNING_RATES = (1e-3, 1e-2)
PULLS = (0.01, 0.1, 1.0)
BATCH_SIZE = 64
MEMBERS = 4
DEEP = {"own": "SWAG-D of the whole trajectory", "fisher": "Fisher posterior", "short": "short SWAG"}
OF_ONE = {
    "samples-own": "draws from its SWAG-D posterior",
    "samples-fisher": "draws from its Fisher posterior",
    "restarts": "new last layers",
    "seeds": "short SWAG with several seeds",
}
TUNED_AS = {"samples-own": "own", "samples-fisher": "fisher", "restarts": "fisher", "seeds": "short"}
"""Ensembles of one checkpoint take the settings that were chosen for their kind of posterior."""


class Part(NamedTuple):
    """One member to prepare."""

    run: str
    out: str
    variant: str
    index: int
    steps: int
    fisher_images: int
    data_dir: str | None


class Cell(NamedTuple):
    """One evaluation."""

    run: str
    out: str
    stage: str
    variant: str
    members: int
    method: str
    shift: str
    images: int
    batch_size: int
    learning_rate: float | None
    pull: float | None
    data_dir: str | None

    @property
    def file(self) -> Path:
        numbers = [f"{value:g}" for value in (self.learning_rate, self.pull) if value is not None]
        return Path(self.out) / "cells" / ("-".join([*self[2:4], self.method, self.shift, *numbers]) + ".json")


def folder(out: str, variant: str, index: int) -> Path:
    return Path(out) / "members" / f"{variant}-{index}"


def prepare(part: Part) -> None:
    """Makes one member and saves it."""
    place = folder(part.out, part.variant, part.index)
    if (place / MANIFEST).exists():
        return
    source = bacs.data.load("cifar10", split="train", data_dir=part.data_dir)
    whole = bacs.load(part.run).members

    def trained(member: bacs.Member, seed: int) -> bacs.Member:
        return short_swag(member, source.images, source.labels, steps=part.steps, augment=PadCropFlip(), seed=seed)

    def drawn(member: bacs.Member) -> bacs.Member:
        temperature = temperature_for(member, source.images)
        files.write(place.with_suffix(".json"), json.dumps({"temperature": temperature}).encode())
        return from_samples(member, source.images, 1, temperature=temperature, seed=part.index)[0]

    if part.variant == "fisher":
        made = with_fisher(whole[part.index], source.images[: part.fisher_images], source_size=len(source))
    elif part.variant == "short":
        made = trained(whole[part.index], part.index)
    elif part.variant == "seeds":
        made = trained(whole[0], 10 + part.index)
    elif part.variant == "samples-own":
        made = drawn(whole[0])
    else:
        first = bacs.load(folder(part.out, "fisher", 0)).members[0]
        if part.variant == "samples-fisher":
            made = drawn(first)
        else:
            made = with_new_head(
                first, source.images, source.labels, steps=part.steps, augment=PadCropFlip(), seed=part.index
            )
    made = dataclasses.replace(made, posterior_scale=1.0)  # records and tables then have beta itself
    bacs.Ensemble([made]).save(place)


def write_scales(run: str, out: str, variants: list[str]) -> None:
    """Precision and pull at the default settings, of the first member of each kind of posterior."""
    found = {}
    for variant in variants:
        state = bacs.load(run if variant == "own" else folder(out, variant, 0)).members[0].posterior
        found[variant] = {"precision": precision_quantiles(state), "pull": pull_quantiles(state)}
    files.write(Path(out) / "scales.json", (json.dumps(found, indent=1) + "\n").encode())


def opened(cell: Cell) -> bacs.Ensemble:
    """The ensemble of a cell."""
    if cell.variant == "own":
        return bacs.Ensemble(bacs.load(cell.run).members[: cell.members])
    return bacs.Ensemble([bacs.load(folder(cell.out, cell.variant, index)).members[0] for index in range(cell.members)])


def evaluate(cell: Cell) -> None:
    """Scores one cell and writes its record."""
    if cell.file.exists():
        return
    ensemble = opened(cell)
    shift = bacs.data.shift(f"cifar10-c/{cell.shift}/5", data_dir=cell.data_dir, limit=cell.images)
    settings: dict[str, Any] = {"batch_size": cell.batch_size}
    if cell.learning_rate is not None:
        settings["learning_rate"] = cell.learning_rate
    if cell.pull is not None:
        weights = [
            posterior_weight_for(member, cell.pull, learning_rate=cell.learning_rate) for member in ensemble.members
        ]
        settings["posterior_weight"] = float(np.exp(np.mean(np.log(weights))))
    result = bacs.evaluate(ensemble, np.asarray(shift.images[:]), shift.labels, cell.method, **settings)
    record = {key: value for key, value in cell._asdict().items() if key not in ("run", "out", "data_dir")}
    record |= {"settings": settings, "single": result.single, "ensemble": result.ensemble, "scores": result.members}
    files.write(cell.file, (json.dumps(record, indent=1) + "\n").encode())


def tuning_cells(base: Cell, variants: list[str], members: int, images: int) -> Iterator[Cell]:
    """Every setting of every row on the validation corruptions."""
    base = base._replace(stage="tune", members=members, images=images)
    for shift in VALIDATION:
        yield base._replace(shift=shift, method="bn")
        for rate in LEARNING_RATES:
            for method in ("tent", "bacs-no-posterior"):
                yield base._replace(shift=shift, method=method, learning_rate=rate)
            for variant in variants:
                for pull in PULLS:
                    yield base._replace(shift=shift, method="bacs", variant=variant, learning_rate=rate, pull=pull)


def chosen(out: Path, variant: str, method: str) -> tuple[float, float | None]:
    """Learning rate and pull of the lowest mean Brier score of the ensemble over the validation corruptions."""
    scores: dict[tuple[float, float | None], list[float]] = {}
    for record in records(out, "tune"):
        if (record["variant"], record["method"]) == (variant, method):
            scores.setdefault((record["learning_rate"], record["pull"]), []).append(record["ensemble"]["brier"])
    return min(scores, key=lambda setting: float(np.mean(scores[setting])))


def records(out: Path, stage: str) -> list[dict[str, Any]]:
    """All finished cells of a stage."""
    return [json.loads(file.read_text()) for file in sorted((out / "cells").glob(f"{stage}-*.json"))]


def test_cells(base: Cell, variants: list[str], members: int, images: int) -> Iterator[Cell]:
    """Every row on the test corruptions, with the settings that were chosen."""
    base = base._replace(stage="test", members=members, images=images)
    out = Path(base.out)
    for shift in SHIFTS:
        here = base._replace(shift=shift)
        yield here._replace(method="vanilla")
        yield here._replace(method="bn")
        for method in ("tent", "bacs-no-posterior"):
            yield here._replace(method=method, learning_rate=chosen(out, "own", method)[0])
        for variant in variants:
            rate, pull = chosen(out, TUNED_AS.get(variant, variant), "bacs")
            yield here._replace(method="bacs", variant=variant, learning_rate=rate, pull=pull)
            if variant not in ("own", "fisher"):  # these have the weights of the run, and so its BN row
                yield here._replace(method="bn", variant=variant)


def check_same(out: Path, options: dict[str, Any]) -> None:
    """Ends the program if OUT was begun with other numbers: its cells would not belong together."""
    names = ("run", "members", "images", "tune_images", "tune_members", "steps", "fisher_images")
    ours = {name: str(options[name]) for name in names}
    file = out / "settings.json"
    theirs = json.loads(file.read_text()) if file.exists() else ours
    for name in names:
        if theirs[name] != ours[name]:
            raise SystemExit(f"{out} was begun with {name} {theirs[name]}, now {ours[name]}: choose another folder")
    files.write(file, (json.dumps(ours, indent=1) + "\n").encode())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--only", choices=("prepare", "tune", "test"))
    parser.add_argument("--variants", nargs="+", default=[*DEEP, *OF_ONE], choices=[*DEEP, *OF_ONE])
    parser.add_argument("--images", type=int, default=1000)
    parser.add_argument("--tune-images", type=int, default=1000)
    parser.add_argument("--tune-members", type=int, default=1)
    parser.add_argument("--steps", type=int, default=200, help="of short SWAG and new last layers")
    parser.add_argument("--fisher-images", type=int, default=1000)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--data-dir")
    options = parser.parse_args()
    (options.out / "cells").mkdir(parents=True, exist_ok=True)
    (options.out / "members").mkdir(exist_ok=True)
    run, out, data_dir = str(options.run), str(options.out), options.data_dir
    members = min(MEMBERS, len(bacs.load(options.run)))
    check_same(options.out, vars(options) | {"members": members})
    base = Cell(run, out, "", "own", members, "", "", 0, BATCH_SIZE, None, None, data_dir)

    def work(function: Any, jobs: list[Any], stage: str) -> None:
        if options.only in (None, stage):
            print(f"{stage}: {len(jobs)} jobs", flush=True)
            engine.run(
                function, jobs, workers=options.workers, on_result=lambda outcome: print(".", end="", flush=True)
            )
            print(flush=True)

    for stage in (["fisher"], ["short", *OF_ONE]):  # some begin with the first member of fisher
        made = [
            Part(run, out, name, index, options.steps, options.fisher_images, data_dir)
            for name in stage
            if name in options.variants
            for index in range(members)
        ]
        work(prepare, made, "prepare")
    deep = [name for name in options.variants if name in DEEP]
    write_scales(run, out, deep)
    work(evaluate, list(tuning_cells(base, deep, min(options.tune_members, members), options.tune_images)), "tune")
    if options.only in (None, "test"):
        work(evaluate, list(test_cells(base, options.variants, members, options.images)), "test")


if __name__ == "__main__":
    main()
