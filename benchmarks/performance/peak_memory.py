"""(g) Peak memory of `bacs.adapt` against members, images and batch size, each point in a process of its own.

What the process holds at most while it adapts, less what it held before (torch, the ensemble with its posteriors, the
images), less the weights of the adapted members that it returns. Beyond these it should grow with the batch alone.

Twice: with the C library's allocator as it comes, which keeps part of what was freed, in pieces that later requests may
not fit; and told to give freed blocks back at once, which shows what adaptation itself holds.

    python -m benchmarks.performance.peak_memory WIDTH MEMBERS IMAGES BATCH_SIZE     # one point, in megabytes
"""

import ctypes
import os
import statistics
import subprocess
import sys
from pathlib import Path

import torch
import torch._dynamo  # torch imports it with the first optimiser: not the adaptation's memory

import bacs
from benchmarks.memory import held
from benchmarks.performance import setting
from benchmarks.performance.line import fit

ROOT = Path(__file__).parents[2]
# Environment variables of glibc. A threshold that is set no longer grows by itself; larger blocks go back when freed.
ALLOCATORS = {"as it comes": {}, "giving back": {"MALLOC_MMAP_THRESHOLD_": "65536"}}


def point(width: int, members: int, images: int, batch_size: int) -> float:
    """Megabytes at most in this process, which must be new."""
    torch.set_num_threads(setting.cores())
    ensemble, inputs = setting.ensemble(width, members), setting.images(images)
    # What building left free goes back first: adaptation would use it, and hide what it needs.
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")  # Linux: the peak begins anew
    before = held("VmRSS")
    adapted = bacs.adapt(ensemble, inputs, "bacs", batch_size=batch_size, learning_rate=setting.LEARNING_RATE)
    tensors = (t for member in adapted.members for t in member.model.state_dict().values())
    weights = sum(t.numel() * t.element_size() for t in tensors) / 2**20
    return held("VmHWM") - before - weights


def measured(numbers: tuple[int, ...], allocator: str) -> float:
    """`point` in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.performance.peak_memory", *map(str, numbers)]
    environment = os.environ | ALLOCATORS[allocator]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=environment)
    return float(done.stdout)


def run(quick: bool) -> dict:
    if not Path("/proc/self/clear_refs").exists():
        print("peak memory is read from /proc, which Linux alone has", flush=True)
        return {"missing": "peak memory is measured on Linux only"}
    # As many members as cores work at a time, so that fewer would hold less. The wide network's weights (22 MB) show
    # in the line if anything keeps a copy a member.
    workers = setting.cores()
    width, wide, batch = (4, 4, 8) if quick else (16, 64, setting.BATCH)
    several = (1, 2) if quick else (1, 2, 3, 5)
    axes = {
        "members": [(wide, workers * n, 2 * 8, 8) for n in several],
        "images": [(width, workers, 2 * batch * n, batch) for n in ((1, 2) if quick else (1, 2, 4, 8))],
        "batch size": [
            (width, workers, 2 * batch * several[-1], batch * n // 4) for n in ((2, 4) if quick else (1, 2, 4, 8))
        ],
    }
    # Whether the peaks of members side by side meet is chance, and many members have more chances than two.
    repeats = {} if quick else {"members": 3}
    record: dict = {"threads": workers, "axes": {}}
    for place, (axis, points) in enumerate(axes.items(), start=1):
        along = [numbers[place] for numbers in points]
        record["axes"][axis] = {"points": points, "along": along, "allocators": {}}
        for allocator in ALLOCATORS:
            found = [[measured(numbers, allocator) for _ in range(repeats.get(axis, 1))] for numbers in points]
            middle = [statistics.median(each) for each in found]
            line = fit(along, middle)
            print(f"{axis} {along}, allocator {allocator}: {', '.join(f'{value:.0f} MB' for value in middle)}")
            print(f"  {line.slope:.4f} MB more for one more, R^2 {line.r_squared:.3f}", flush=True)
            record["axes"][axis]["allocators"][allocator] = {"megabytes": found} | line._asdict()
    return record


if __name__ == "__main__":
    print(point(*map(int, sys.argv[1:])))
