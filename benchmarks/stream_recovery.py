"""Rubbish in the middle of a stream: is it as good afterwards as one that never saw it?

    python benchmarks/stream_recovery.py RUN --data-dir DATA --members 3     # -> results/streams/recovery.json

A stream under `auto` meets 2,000 CIFAR-10 images in fog, 20 batches of rubbish, and 2,000 more images; another meets
the same without the rubbish. Rubbish is noise, black frames, one picture again and again, and pictures of clothes.
"""

import argparse
import json
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from PIL import Image

import bacs
from bacs.corruptions import corrupt
from bacs.files import write as write_whole

RECORD = Path(__file__).parents[1] / "results" / "streams" / "recovery.json"
SHIFT, SEVERITY = "fog", 5
BATCH, BATCHES, PART = 64, 20, 2000


def rubbish() -> dict[str, np.ndarray]:
    """uint8 [images, 32, 32, 3] of each kind."""
    count = BATCH * BATCHES
    rng = np.random.default_rng(0)
    clothes = bacs.data.shift("fashion-mnist-part/clean").images
    grown = [np.asarray(Image.fromarray(np.asarray(clothes[i]).squeeze()).resize((32, 32))) for i in range(count)]
    return {
        "noise": rng.integers(0, 256, (count, 32, 32, 3), dtype=np.uint8),
        "black frames": np.zeros((count, 32, 32, 3), dtype=np.uint8),
        "one picture": np.repeat(rng.integers(0, 256, (1, 32, 32, 3), dtype=np.uint8), count, axis=0),
        "clothes": np.repeat(np.stack(grown)[..., None], 3, axis=3),
    }


def follow(stream: bacs.Stream, images: np.ndarray, labels: np.ndarray | None = None) -> float:
    """Accuracy over the images, batch by batch."""
    rows = torch.cat([stream.step(images[start : start + BATCH]) for start in range(0, len(images), BATCH)])
    return float("nan") if labels is None else bacs.metrics.accuracy(rows, torch.as_tensor(labels).long())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--members", type=int)
    options = parser.parse_args()
    ensemble = bacs.load(options.run)
    ensemble = replace(ensemble, members=ensemble.members[: options.members])
    test = bacs.data.load("cifar10", data_dir=options.data_dir)
    images, labels = corrupt(np.asarray(test.images[: 2 * PART]), SHIFT, SEVERITY), test.labels[: 2 * PART]
    stream = bacs.stream(ensemble, "auto")
    before = follow(stream, images[:PART], labels[:PART])
    after = {}
    with tempfile.TemporaryDirectory() as folder:
        stream.save(Path(folder) / "stream")
        for kind, bad in {"nothing": np.empty((0, 32, 32, 3), np.uint8), **rubbish()}.items():
            again = bacs.load(Path(folder) / "stream")
            if len(bad):
                follow(again, bad)
            after[kind] = follow(again, images[PART:], labels[PART:])
            print(f"{kind}: {100 * after[kind]:.2f} %", [event[:2] for event in again.history][-6:], flush=True)
    about = {"shift": f"{SHIFT}/{SEVERITY}", "members": len(ensemble), "batches": BATCHES, "batch_size": BATCH}
    vanilla = bacs.metrics.accuracy(ensemble.predict(images[PART:]), torch.as_tensor(labels[PART:]).long())
    record = about | {"images_after": PART, "accuracy_before": before, "accuracy_after": after, "vanilla": vanilla}
    write_whole(RECORD, (json.dumps(record, indent=1) + "\n").encode())


if __name__ == "__main__":
    main()
