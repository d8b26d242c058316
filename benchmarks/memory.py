"""Peak memory of adapting a ResNet-50 by bacs, posterior included, beside plain training with SGD at the same batch.

    python benchmarks/memory.py

Each row runs in a process of its own: what the process held at most, less what it held once torch and bacs were
imported. Training has weights, gradients, momentum and activations; adapting has the same, and the weights it started
from, and the posterior's mean and variance. Results go to results/performance/memory.json.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch

import bacs
from bacs.parameters import read
from bacs.posteriors import swag_diag

ROOT = Path(__file__).parents[1]
PREPROCESSING = bacs.Preprocessing((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
STEPS = 3


def pixels(batch_size: int) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (STEPS * batch_size, 224, 224, 3), dtype=np.uint8)


def save_run(folder: Path) -> None:
    """A member with a SWAG-D posterior, as `bacs train` leaves it."""
    model = bacs.models.build("resnet50v2")
    state = swag_diag.init(read(model))
    generator = torch.Generator().manual_seed(0)
    for _ in range(2):
        noise = {name: 1e-3 * torch.randn(p.shape, generator=generator) for name, p in read(model).items()}
        state = swag_diag.update(state, {name: p + noise[name] for name, p in read(model).items()})
    images = pixels(4)[:4]
    member = bacs.training.at_mean(model, state, images, PREPROCESSING)
    bacs.Ensemble([member]).save(folder)


def train(folder: Path, batch_size: int) -> None:
    """Three plain steps: torch's own SGD with momentum on cross-entropy."""
    model = bacs.models.build("resnet50v2").to(memory_format=torch.channels_last).train()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4, momentum=0.9)
    images = torch.from_numpy(pixels(batch_size))
    for batch in images.split(batch_size):
        loss = torch.nn.functional.cross_entropy(model(PREPROCESSING(batch)), torch.arange(batch_size))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def adapt(folder: Path, batch_size: int, method: str) -> None:
    """What a user does: open, adapt for three steps, predict."""
    images = pixels(batch_size)
    bacs.adapt(bacs.load(folder), images, method, batch_size=batch_size).predict(images, batch_size=batch_size)


def held(field: str) -> float:
    """Megabytes of this process by Linux: VmRSS now, VmHWM at most.

    Not `ru_maxrss`: a new process inherits that of the one that started it.
    """
    status = Path("/proc/self/status").read_text()
    return int(re.findall(rf"{field}:\s+(\d+) kB", status)[0]) / 1024


def worker(row: str, folder: Path, batch_size: int) -> None:
    """Runs one row and prints how many megabytes it added at most."""
    torch.set_num_threads(1)
    start = held("VmRSS")
    if row == "save":
        save_run(folder)
    elif row == "training":
        train(folder, batch_size)
    else:
        adapt(folder, batch_size, row)
    print(held("VmHWM") - start)


def measured(row: str, folder: Path, batch_size: int) -> int:
    """What `worker` prints in a process of its own."""
    command = [sys.executable, __file__, "--worker", row, str(folder), str(batch_size)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return round(float(done.stdout.split()[-1]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batch-sizes", type=int, nargs="+", default=[8, 16])
    parser.add_argument("--rows", nargs="+", default=["training", "bacs", "bacs-no-posterior", "tent"])
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "performance" / "memory.json")
    parser.add_argument("--worker", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        row, folder, batch_size = options.worker
        worker(row, Path(folder), int(batch_size))
        return
    record: dict = {"model": "resnet50v2, 224 px", "torch": torch.__version__, "steps": STEPS, "megabytes": {}}
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        measured("save", run, 0)
        for batch_size in options.batch_sizes:
            found = {}
            for row in options.rows:
                found[row] = measured(row, run, batch_size)
                ratio = found[row] / found.get("training", found[row])
                print(f"batch {batch_size}: {row} {found[row]} MB, {ratio:.2f} times training", flush=True)
            record["megabytes"][str(batch_size)] = found
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
