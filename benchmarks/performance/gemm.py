"""(d) The share of the machine's matrix-multiplication rate that a step reaches.

The machine's rate is the best of torch.mm in float32 over some large sizes, each kept up for most of a second, in turns
with the step: a rate that lasts, since a step lasts too, and the shortest of many would be that of a lucky moment.

A step's work is counted by torch on the plain loop: the products of its forward and backward pass, two operations each.
The gradients that nobody needs are not in it (of the images; under TENT, of all weights but scales and shifts), nor are
normalisation, activations or the optimiser: time spent on these lowers the share.
"""

import statistics
import time

import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

import bacs
from benchmarks.performance import plain, setting
from benchmarks.performance.alternating import alternate, medians, summary

SIZES = (1024, 2048, 3072)
ASKED = {16: "at least 0.60", 64: "at least 0.90"}
PLAIN = {"tent": plain.tent, "bacs": plain.all_weights}


def step_operations(model: torch.nn.Module, method: str, images: Tensor) -> int:
    """Floating-point operations of the products in one step on a batch like `images`."""
    step = PLAIN[method](model, learning_rate=0.0)
    counter = FlopCounterMode(display=False)
    with counter:
        step(images[:2])  # all products grow with the batch
    return counter.get_total_flops() * len(images) // 2


def lasting_rate(size: int, seconds: float) -> float:
    """Operations a second of products of two square float32 matrices, one after another for so long."""
    left, right = torch.randn(2, size, size, generator=torch.Generator().manual_seed(0))
    out = torch.mm(left, right)
    began, products = time.perf_counter(), 0
    while (passed := time.perf_counter() - began) < seconds:
        torch.mm(left, right, out=out)
        products += 1
    return products * 2 * size**3 / passed


def run(quick: bool) -> dict:
    batch = setting.images(8 if quick else setting.BATCH)
    rows = []
    for width in (4,) if quick else setting.WIDTHS:
        steps = 2 if width == 16 else 1
        work = {method: step_operations(setting.member(width).model, method, batch) for method in PLAIN}
        for threads, members in setting.sharings(width):
            ensemble = setting.ensemble(width, members)
            rates: list[float] = []

            def measure_rate(rates=rates) -> None:
                sizes, seconds = ((64,), 0.01) if quick else (SIZES, 0.7)
                rates.append(max(lasting_rate(size, seconds) for size in sizes))

            def repeated(method, ensemble=ensemble, steps=steps):
                stream = bacs.stream(ensemble, method, learning_rate=setting.LEARNING_RATE)
                return lambda: [stream.step(batch) for _ in range(steps)]

            with setting.threads(threads):
                ours = {method: repeated(method) for method in PLAIN}
                turns = 2 if quick else 5 if width == 16 else 3
                seconds = alternate({"gemm": measure_rate} | ours, turns=turns)
            del rates[0]  # of the warm-up
            row = {"width": width, "threads": threads, "members": members, "asked": ASKED.get(width, "")}
            row |= {
                "gemm_gflops": round(statistics.median(rates) / 1e9, 1),
                "step_gflop": {m: w / 1e9 for m, w in work.items()},
            }
            for method, operations in work.items():
                reached = [steps * members * operations / value for value in seconds[method]]
                share = summary([mine / rate for mine, rate in zip(reached, rates, strict=True)])
                where = f"width {width}, threads {threads}, members {members}"
                print(f"{where}: {method} {share} of {row['gemm_gflops']} GFLOP/s", flush=True)
                speed = steps * members * len(batch) / medians(seconds)[method]
                row[method] = share._asdict() | {"images_per_second": round(speed, 1)}
            rows.append(row)
    return {"batch": len(batch), "sizes": SIZES, "rows": rows}
