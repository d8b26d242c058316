"""Published CIFAR-10 ResNets with posteriors: each is trained on for a few hundred steps, and SWAG-D follows.

    python benchmarks/short_swag_resnets.py resnet20.npz resnet32.npz --data-dir DATA --out runs/short-swag

Each .npz holds the plain arrays of one published checkpoint, as for benchmarks/pretrained_resnets.py. The members are
the means of the trajectories; the run is a saved ensemble, for `bacs sweep --run`.
"""

import argparse
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from pretrained_resnets import open_member

import bacs
from bacs.pretrained import short_swag
from bacs.training.augment import Identity, PadCropFlip


def train_on(file: Path, train: Any, **recipe: Any) -> bacs.Member:
    """A published checkpoint, trained on by these settings of short SWAG; as it is if there are none."""
    known = open_member(file)
    sized = replace(known, preprocessing=replace(known.preprocessing, size=(32, 32)))
    if not recipe:
        return sized
    count, augment = recipe.pop("images"), PadCropFlip() if recipe.pop("augment") else Identity()
    made = short_swag(sized, np.asarray(train.images[:count]), train.labels[:count], augment=augment, **recipe)
    return replace(made, posterior_scale=1.0)  # posterior_weight is beta itself in records of these networks


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoints", type=Path, nargs="+")
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--images", type=int, default=25000, help="training images, the first of the set")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--learning-rate", type=float, default=0.01)
    parser.add_argument("--seed", type=int, default=0, help="order of the images")
    parser.add_argument("--augment", action="store_true", help="shift and mirror the images, as in training")
    options = parser.parse_args()
    train = bacs.data.load("cifar10", split="train", data_dir=options.data_dir)
    recipe = {name: getattr(options, name) for name in ("images", "augment", "steps", "learning_rate", "seed")}
    members = []
    for file in options.checkpoints:
        began = time.monotonic()
        members.append(train_on(file, train, **recipe))
        print(f"{file.name}: {time.monotonic() - began:.0f} seconds", flush=True)
    bacs.Ensemble(members, class_names=train.classes).save(options.out)
    test = bacs.data.load("cifar10", data_dir=options.data_dir)
    ensemble = bacs.load(options.out)
    found = bacs.evaluate(ensemble, np.asarray(test.images[:1000]), test.labels[:1000], "vanilla")
    print(f"{options.out}, clean, first 1,000 test images: {found.ensemble}", flush=True)


if __name__ == "__main__":
    main()
