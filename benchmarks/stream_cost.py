"""What guarding a stream costs: images per second of vanilla, BACS, BACS with its guard, and auto, in alternation.

    python benchmarks/stream_cost.py RUN --data-dir DATA --members 3         # -> results/streams/cost.json

Every turn steps each stream on the same batches of CIFAR-10 images in fog; the first turn warms up and does not count.
On a machine that does nothing else.
"""

import argparse
import json
import os
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

import bacs
from bacs.corruptions import corrupt
from bacs.files import write as write_whole

RECORD = Path(__file__).parents[1] / "results" / "streams" / "cost.json"
SHIFT, SEVERITY = "fog", 5
BATCH = 64


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--members", type=int)
    parser.add_argument("--turns", type=int, default=8)
    parser.add_argument("--batches", type=int, default=10, help="of each turn")
    options = parser.parse_args()
    ensemble = bacs.load(options.run)
    ensemble = replace(ensemble, members=ensemble.members[: options.members])
    test = bacs.data.load("cifar10", data_dir=options.data_dir)
    streams = {
        "vanilla": bacs.stream(ensemble, "vanilla"),
        "bacs": bacs.stream(ensemble, "bacs"),
        "bacs with its guard": bacs.stream(ensemble, "bacs", guard=True),
        "auto": bacs.stream(ensemble, "auto"),
    }
    part = options.batches * BATCH
    images = corrupt(np.asarray(test.images[: part * (options.turns + 1)]), SHIFT, SEVERITY)
    rates: dict[str, list[float]] = {name: [] for name in streams}
    for turn in range(options.turns + 1):
        own = images[turn * part : (turn + 1) * part]
        for name, stream in streams.items():
            began = time.perf_counter()
            for start in range(0, len(own), BATCH):
                stream.step(own[start : start + BATCH])
            if turn:
                rates[name].append(len(own) / (time.perf_counter() - began))
        print(turn, {name: round(found[-1], 1) for name, found in rates.items() if found}, flush=True)
    about = {"shift": f"{SHIFT}/{SEVERITY}", "members": len(ensemble), "batch_size": BATCH, "cores": os.cpu_count()}
    write_whole(RECORD, (json.dumps(about | {"images_per_second": rates}, indent=1) + "\n").encode())


if __name__ == "__main__":
    main()
