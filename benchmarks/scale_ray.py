"""The sweep of the recipe imagenet-c on Ray with cells that only sleep, on two nodes of which one is lost on the way.

    python benchmarks/scale_ray.py

Plan, order, engine and store are those of `bacs sweep imagenet-c --engine ray --threads 2`; only what a cell computes
is replaced, by its computed time (benchmarks/scale.py) divided by 1,000. A node stands for many machines: sleeping
takes no core of its own. Workers are started before the clock is, since their seconds are not divided.
Needs Ray, 200 MB a machine and a quarter of an hour; nothing leaves this computer. Results go to
results/scale/ray.json.
"""

import argparse
import io
import json
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from unittest.mock import patch
from uuid import uuid4

from rich.console import Console
from scale import THREADS, cells, seconds_of
from scale_schedule import Span, facts

from bacs.benchmark import measure, records
from bacs.engine import Place

RESULT = Path(__file__).parents[1] / "results" / "scale" / "ray.json"
SWEEP = sys.modules["bacs.benchmark.sweep"]  # the package has a function of that name
RUN = {"sha256": "0" * 64, "members": 10, "name": "asleep"}
LOST_AFTER = 0.4  # of the time that all machines would take


def asleep(job, *, seconds: dict[str, float], log: Path):
    """`run_cell` of a cell that sleeps where it would adapt, predict and score."""

    def sleep(job):
        attempt = {"task": job.cell.id, "attempt": uuid4().hex}
        note(log, attempt | {"begin": time.time()})
        time.sleep(seconds[job.cell.id])
        note(log, attempt | {"end": time.time()})
        return job.cell.identity() | {"run": job.about_run, "error": None}

    with patch.object(measure, "measure", sleep):
        return measure.run_cell(job)


def note(log: Path, what: dict) -> None:
    """One line at the end of a file that many processes write."""
    with log.open("ab", buffering=0) as file:
        file.write(json.dumps(what).encode() + b"\n")


def wait_for_all(job: tuple[Path, int]) -> None:
    """A job that ends when so many of its kind are at work: every worker has started, and imported what it needs."""
    folder, count = job
    import_module("bacs.benchmark.measure")
    (folder / uuid4().hex).touch()
    while len(list(folder.iterdir())) < count:
        time.sleep(0.2)


def lose(raylet: int) -> None:
    """Kills a node as a machine that loses its power: Ray's own process and all its workers."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):  # it has ended meanwhile
                parents[int(entry.name)] = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
    for process in (raylet, *(child for child, parent in parents.items() if parent == raylet)):
        os.kill(process, signal.SIGKILL)


@contextmanager
def two_nodes(machines: int, lost: int) -> Iterator[int]:
    """A cluster of `machines` on two nodes; yields the process to kill to lose `lost` of them."""
    os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}  # loopback alone
    import ray
    from ray.cluster_utils import Cluster

    system = {"prestart_worker_first_driver": False}  # it would start one for each core, and a cell has several
    how = {"include_dashboard": False, "object_store_memory": 100_000_000}
    first = how | {"num_cpus": THREADS * (machines - lost), "_system_config": system}
    cluster = Cluster(initialize_head=True, head_node_args=first)
    second = cluster.add_node(num_cpus=THREADS * lost, object_store_memory=100_000_000)
    try:
        ray.init(address=cluster.address, log_to_driver=False)
        yield second.all_processes["raylet"][0].process.pid
    finally:
        ray.shutdown()
        cluster.shutdown()


def simulate(machines: int, lost: int, divisor: float, folder: Path) -> dict:
    """The record of one sweep."""
    plan, place = cells(), Place("ray", threads=THREADS)
    seconds = {cell.id: seconds_of(cell, THREADS) / divisor for cell in plan}
    lost_at = LOST_AFTER * sum(seconds.values()) / machines
    log, met = folder / "log", folder / "met"
    met.mkdir()
    about = {"kind": "sweep", "recipe": {"seed": plan[0].seed, "limit": plan[0].limit}, "run": RUN}
    with two_nodes(machines, lost) as raylet:
        place.run(wait_for_all, [(met, machines)] * machines)
        print(f"{machines} workers are ready; about {sum(seconds.values()) / machines:.0f} s to come", flush=True)
        loss = threading.Timer(lost_at, lose, (raylet,))
        work = partial(asleep, seconds=seconds, log=log)
        with patch.object(SWEEP, "run_cell", work), patch.object(SWEEP, "check_shifts"):
            began = time.time()
            loss.start()
            how = {"place": place, "console": Console(file=io.StringIO())}
            summary = SWEEP.run_cells(plan, about, folder, folder / "out", **how)
    assert summary == (len(plan), 0, len(plan), {}), summary
    stored = [record["id"] for record in records(folder / "out")]
    assert sorted(stored) == sorted(seconds), "a cell has no record, or two"
    record = {"machines": machines, "lost": lost, "lost_at": lost_at, "divisor": divisor, "records": len(stored)}
    return record | {"spans": spans_of(log, began, began + lost_at)}


def spans_of(log: Path, began: float, lost_at: float) -> list[Span]:
    """The attempts of a log; one that has no end was lost."""
    attempts: dict[str, dict] = {}
    for line in log.read_text().splitlines():
        noted = json.loads(line)
        attempts[noted["attempt"]] = attempts.get(noted["attempt"], {}) | noted
    found = [
        Span(a["task"], round(a["begin"] - began, 3), round(a.get("end", lost_at) - began, 3), "end" in a)
        for a in attempts.values()
    ]
    return sorted(found, key=lambda span: span.begin)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--machines", type=int, default=32)
    parser.add_argument("--lost", type=int, default=8)
    parser.add_argument("--divisor", type=float, default=1000)
    parser.add_argument("--out", type=Path, default=RESULT)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        record = simulate(options.machines, options.lost, options.divisor, Path(folder))
    found = facts(record["spans"], options.machines, lost=options.lost, lost_at=record["lost_at"])
    print(found, f"ratio {found.ratio:.3f}")
    spans = ",\n  ".join(json.dumps(span) for span in record.pop("spans"))
    text = json.dumps(record, indent=1).removesuffix("\n}") + f',\n "spans": [\n  {spans}\n ]\n}}\n'
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(text)


if __name__ == "__main__":
    main()
