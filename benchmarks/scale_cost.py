"""What one image costs one ResNet-50 at 224 pixels: predicting, and a step of each method that adapts.

    python -m benchmarks.scale_cost

Processor seconds of one thread, not the clock's: those of other work on the machine do not count. The sides take turns,
and medians of the turns are kept, beside the rate of a matrix product in the same turns, by which another machine's
cost can be estimated. A step is `bacs.stream(...).step`, all included. Results go to results/scale/cost.json, from
which benchmarks/scale.py computes.
"""

import argparse
import json
import os
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import torch
from torch.utils.flop_counter import FlopCounterMode

import bacs
from bacs.parameters import read
from bacs.posteriors import swag_diag

# The scripts beside this file import each other by bare names.
sys.path.append(str(Path(__file__).parent))

from benchmarks.performance import machine, setting
from benchmarks.performance.alternating import alternate, medians, summary

RESULT = Path(__file__).parents[1] / "results" / "scale" / "cost.json"
MODEL, PIXELS = "resnet50v2", 224
METHODS = ("vanilla", "bn", "tent", "bacs")  # of the recipe imagenet-c
PRODUCT, PRODUCTS = 2048, 10  # a side of the matrices, products in a turn


def ensemble() -> bacs.Ensemble:
    """One untrained member with a posterior: speed does not depend on what it learnt."""
    model = bacs.models.build(MODEL).eval()
    generator = torch.Generator().manual_seed(0)
    state = swag_diag.init(read(model))
    for _ in range(2):
        state = swag_diag.update(
            state, {name: p + 1e-3 * torch.randn(p.shape, generator=generator) for name, p in read(model).items()}
        )
    how = bacs.Preprocessing((0.485, 0.456, 0.406), (0.229, 0.224, 0.225), (PIXELS, PIXELS))
    return bacs.Ensemble([bacs.Member(model, state, how)])


def forward_operations(model: torch.nn.Module) -> int:
    """Floating-point operations of the products of one forward pass of one image."""
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        model(torch.zeros(2, 3, PIXELS, PIXELS))
    return counter.get_total_flops() // 2


def measure(batch_size: int, turns: int) -> dict:
    """Seconds of every turn by side, and what follows from them."""
    source = ensemble()
    pixels = np.random.default_rng(0).integers(0, 256, (batch_size, PIXELS, PIXELS, 3), dtype=np.uint8)
    left, right = torch.randn(2, PRODUCT, PRODUCT, generator=torch.Generator().manual_seed(0))

    def step_of(method: str):
        # So small a rate that weights stay where they are: subnormal numbers would be slow.
        stream = bacs.stream(source, method, learning_rate=setting.LEARNING_RATE)
        return lambda: stream.step(pixels)

    sides = {method: step_of(method) for method in METHODS}
    sides["product"] = lambda: [torch.mm(left, right) for _ in range(PRODUCTS)]
    seconds = alternate(sides, turns=turns, clock=time.process_time)
    rate = PRODUCTS * 2 * PRODUCT**3 / medians(seconds)["product"]
    return {
        "seconds_per_image": {name: summary([s / batch_size for s in seconds[name]])._asdict() for name in METHODS},
        "product_gflops": rate / 1e9,
        "forward_gflop": forward_operations(source.members[0].model) / 1e9,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--out", type=Path, default=RESULT)
    options = parser.parse_args()
    load = os.getloadavg()[0]
    with setting.threads(1):
        found = measure(options.batch_size, options.turns)
    about = {"model": MODEL, "pixels": PIXELS, "batch_size": options.batch_size, "turns": options.turns, "threads": 1}
    about |= {"clock": "processor", "date": datetime.now(UTC).date().isoformat(), "load_before": round(load, 2)}
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps({"machine": machine.description()} | about | found, indent=1) + "\n")
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
