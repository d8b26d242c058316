"""Two commits in alternation: is the newer one as fast, and does it need no more memory?

    python benchmarks/two_commits.py OLD [NEW] --record results/performance/NAME.json

Each commit is checked out into a folder of its own and has a process that stays; both take turns on the same machine.
What is measured: a step of `tent` and of `bacs` at widths 16 and 64, with the memory of the process, and one
`bacs adapt` of five members over pictures in an array.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from pages import ROOT

sys.path.insert(0, str(ROOT))
from benchmarks.performance.alternating import ratio

WORKER = """
import json, resource, sys, time
import torch, bacs
from benchmarks.performance import setting
streams = {}
for line in sys.stdin:
    method, width, members, threads, repeats = json.loads(line)
    torch.set_num_threads(threads)
    key = method, width, members
    batch = setting.images(setting.BATCH)
    if key not in streams:
        streams.clear()
        streams[key] = bacs.stream(setting.ensemble(width, members), method, learning_rate=setting.LEARNING_RATE)
        streams[key].step(batch)
    began = time.perf_counter()
    for _ in range(repeats):
        streams[key].step(batch)
    seconds = time.perf_counter() - began
    print(json.dumps([seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024]), flush=True)
"""
COMMAND = """
import sys
from bacs.cli import main
sys.exit(main())
"""
MAKE_RUN = """
import sys
from dataclasses import replace
import numpy as np
import bacs
from benchmarks.performance import setting
members = [setting.member(16, seed) for seed in range(5)]
preprocessing = bacs.Preprocessing((0.5,) * 3, (0.25,) * 3)
bacs.Ensemble([replace(member, preprocessing=preprocessing) for member in members]).save(sys.argv[1] + "/run")
np.save(sys.argv[1] + "/pictures.npy", np.random.default_rng(0).integers(0, 256, (2048, 32, 32, 3), dtype=np.uint8))
"""


def environment(tree: Path) -> dict[str, str]:
    paths = [str(tree / "src"), str(tree), str(tree / "benchmarks")]
    return os.environ | {"PYTHONPATH": os.pathsep.join(paths)}


def check_out(commit: str, place: Path) -> Path:
    subprocess.run(["git", "clone", "--quiet", "--no-checkout", str(ROOT), str(place)], check=True)
    subprocess.run(["git", "-C", str(place), "checkout", "--quiet", commit], check=True)
    return place


class Worker:
    """A process of one commit that takes steps when told."""

    def __init__(self, tree: Path, **variables: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", WORKER],
            env=environment(tree) | variables,
            cwd=tree,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, *work) -> tuple[float, float]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(json.dumps(work), file=self.process.stdin, flush=True)
        seconds, megabytes = json.loads(self.process.stdout.readline())
        return seconds, megabytes

    def close(self) -> None:
        self.process.communicate()


def peak(tree: Path, *work) -> float:
    """Megabytes of a process that takes three steps, with an allocator that gives back what was freed."""
    worker = Worker(tree, MALLOC_MMAP_THRESHOLD_="65536", MALLOC_TRIM_THRESHOLD_="0")
    _, megabytes = worker.ask(*work, 3)
    worker.close()
    return megabytes


def steps(old: Path, new: Path, turns: int) -> list[dict]:
    """A row for each method, width and sharing of threads."""
    rows = []
    for width, members, threads in ((16, 1, 1), (16, 2, 2), (64, 1, 2), (64, 2, 2)):
        for method in ("tent", "bacs"):
            workers = {"old": Worker(old), "new": Worker(new)}
            seconds: dict[str, list[float]] = {name: [] for name in workers}
            repeats = 3 if width == 16 else 1
            order = list(workers)
            for turn in range(turns + 1):
                for name in order:
                    took, _ = workers[name].ask(method, width, members, threads, repeats)
                    if turn:  # the first warms up
                        seconds[name].append(took)
                order.reverse()
            for worker in workers.values():
                worker.close()
            memory = {name: peak(tree, method, width, members, threads) for name, tree in (("old", old), ("new", new))}
            found = ratio(seconds["new"], seconds["old"])
            row = {"method": method, "width": width, "members": members, "threads": threads, **found._asdict()}
            rows.append(row | {"megabytes": {name: round(value) for name, value in memory.items()}})
            print(
                f"{method}, width {width}, {members} members: new / old {found}, MB {rows[-1]['megabytes']}", flush=True
            )
    return rows


def commands(old: Path, new: Path, turns: int) -> dict:
    """`bacs adapt` offline, five members, 2,048 pictures: seconds of the whole command."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-c", MAKE_RUN, folder], env=environment(old), cwd=old, check=True)
        seconds: dict[str, list[float]] = {"old": [], "new": []}
        order = [("old", old), ("new", new)]
        for _ in range(turns):
            for name, tree in order:
                words = [
                    "adapt",
                    f"{folder}/run",
                    f"{folder}/pictures.npy",
                    "--out",
                    f"{folder}/t.csv",
                    "--overwrite",
                    "--method",
                    "bacs",
                ]
                began = time.perf_counter()
                subprocess.run(
                    [sys.executable, "-c", COMMAND, *words],
                    env=environment(tree),
                    cwd=tree,
                    check=True,
                    capture_output=True,
                )
                seconds[name].append(time.perf_counter() - began)
            order.reverse()
    found = ratio(seconds["old"], seconds["new"])
    print(f"bacs adapt, five members: old / new {found}; seconds {seconds}", flush=True)
    return found._asdict() | {"seconds": seconds}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("old")
    options.add_argument("new", nargs="?", default="HEAD")
    options.add_argument("--turns", type=int, default=11)
    options.add_argument("--record", type=Path)
    chosen = options.parse_args()
    names = {
        side: subprocess.run(
            ["git", "-C", str(ROOT), "rev-parse", "--short", commit], check=True, capture_output=True, text=True
        ).stdout.strip()
        for side, commit in (("old", chosen.old), ("new", chosen.new))
    }
    with tempfile.TemporaryDirectory() as folder:
        trees = {side: check_out(commit, Path(folder) / side) for side, commit in names.items()}
        found = {"commits": names, "steps": steps(trees["old"], trees["new"], chosen.turns)}
        found["adapt"] = commands(trees["old"], trees["new"], max(2, chosen.turns // 2))
    if chosen.record:
        chosen.record.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
