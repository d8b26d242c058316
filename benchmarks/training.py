"""Images per second of the training loop, beside a plain PyTorch loop and other ways to use the cores.

    python benchmarks/training.py             # ours against the plain loop, and bfloat16
    python benchmarks/training.py --sharing   # members on the cores: processes of one thread, or threads

The plain loop is what a tutorial shows: a Dataset whose items pass torchvision-like transforms one image at a time, a
DataLoader with two workers, NCHW, torch.optim.SGD. Turns alternate in one run, so that both meet the same machine;
ratios are medians over the turns. Random images: speed does not depend on what they show.
"""

import argparse
import json
import os
import statistics
import time
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

from bacs import engine
from bacs.models import build
from bacs.preprocessing import Preprocessing
from bacs.training import initialised, loop
from bacs.training.settings import TrainingSettings

MEAN, STD = (0.4914, 0.4822, 0.4465), (0.247, 0.2435, 0.2616)


class PlainDataset(Dataset):
    """One image at a time: to float CHW, pad and crop, flip, normalise."""

    def __init__(self, images, labels):
        self.images, self.labels = images, labels

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        image = torch.from_numpy(self.images[index]).permute(2, 0, 1).float().div(255)
        padded = nn.functional.pad(image, (4, 4, 4, 4))
        top, left = torch.randint(0, 9, (2,)).tolist()
        image = padded[:, top : top + 32, left : left + 32]
        if torch.rand(1).item() < 0.5:
            image = image.flip(2)
        return (image - torch.tensor(MEAN)[:, None, None]) / torch.tensor(STD)[:, None, None], int(self.labels[index])


def plain(model, images, labels, batch_size):
    """Images per second of one epoch of the plain loop."""
    loader = DataLoader(PlainDataset(images, labels), batch_size=batch_size, shuffle=True, num_workers=2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=5e-4)
    model.train()
    begin = time.perf_counter()
    for inputs, targets in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(inputs), targets).backward()
        optimizer.step()
    return len(labels) / (time.perf_counter() - begin)


def ours(model, images, labels, batch_size, precision="float32"):
    """Images per second of one epoch of `bacs.training`."""
    settings = TrainingSettings(epochs=1, batch_size=batch_size, precision=precision)
    state = loop.start(model, settings)
    log = loop.train_epoch(
        state, torch.from_numpy(images), torch.from_numpy(labels), settings, Preprocessing(MEAN, STD)
    )
    return log.images_per_second


def data(count):
    random = np.random.default_rng(0)
    return random.integers(0, 256, (count, 32, 32, 3), dtype=np.uint8), random.integers(0, 10, count)


def network(width):
    return initialised(lambda: build("resnet26", width=width), seed=0)


def compare(options):
    images, labels = data(options.images)
    contestants = {
        "plain loop": lambda: plain(network(options.width), images, labels, 128),
        "bacs": lambda: ours(network(options.width), images, labels, 128),
        "bacs, bfloat16": lambda: ours(network(options.width), images, labels, 128, "bfloat16"),
    }
    torch.set_num_threads(options.threads)
    speeds = {name: [] for name in contestants}
    ours(network(options.width), images[:128], labels[:128], 128)  # what torch loads on first use
    for turn in range(options.turns):
        for name, run in contestants.items():
            speeds[name].append(run())
        print(
            f"turn {turn + 1}: " + ", ".join(f"{name} {speeds[name][-1]:.0f} images/s" for name in contestants),
            flush=True,
        )
    for name in list(contestants)[1:]:
        ratios = [mine / theirs for mine, theirs in zip(speeds[name], speeds["plain loop"], strict=True)]
        spread = f"{min(ratios):.2f} to {max(ratios):.2f}"
        print(f"{name}: {statistics.median(ratios):.2f} times the plain loop (turns {spread})")
    return speeds


def member(job):
    """Images per second of one member in its worker; the first step is not counted."""
    count, width = job
    images, labels = data(count)
    ours(network(width), images[:128], labels[:128], 128)
    return ours(network(width), images, labels, 128)


def sharing(options):
    """Two members at a time with one thread each, against one after another with two threads."""
    speeds = {"2 processes of 1 thread": [], "1 process of 2 threads": []}
    for turn in range(options.turns):
        jobs = [(options.images, options.width)] * 2
        for name, workers, threads in zip(speeds, (2, 1), (1, 2), strict=True):
            each = engine.run(member, jobs, workers=workers, threads=threads)
            speeds[name].append(sum(each) * workers / len(each))
            print(f"turn {turn + 1}: {name}: {speeds[name][-1]:.0f} images/s together", flush=True)
    return speeds


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--images", type=int, default=1280)
    parser.add_argument("--width", type=int, default=16)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--sharing", action="store_true")
    parser.add_argument("--record", type=Path, help="JSON file for the figures, such as results/training/speed.json")
    chosen = parser.parse_args()
    busy = os.getloadavg()[0]
    found = sharing(chosen) if chosen.sharing else compare(chosen)
    if chosen.record:
        options = {name: value for name, value in vars(chosen).items() if name != "record"}
        about = {"torch": torch.__version__, "cores": os.cpu_count(), "load_before": busy, "options": options}
        speeds = {name: [round(speed, 1) for speed in turns] for name, turns in found.items()}
        chosen.record.parent.mkdir(parents=True, exist_ok=True)
        chosen.record.write_text(json.dumps(about | {"images_per_second": speeds}, indent=1) + "\n")
