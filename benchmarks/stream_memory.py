"""Memory of long streams while a sweep over worlds is under way, by how many images have passed.

    bacs sweep cifar10-c-worlds --run RUN --out results/worlds &
    python benchmarks/stream_memory.py results/worlds --record results/streams/memory.json

Every stream has a process of its own, which holds the lock of its state. What that process holds is read whenever the
state was saved anew, until the sweep has no more streams; what an earlier call has recorded is added to.
"""

import argparse
import json
import os
import re
import time
from pathlib import Path

from bacs import checkpoints
from bacs.files import write as write_whole

PATIENCE = 120.0
"""Seconds without any stream after which the sweep is taken to be over."""


def owners(streams: Path) -> dict[str, int]:
    """The process that holds the lock of each stream, by the stream's name."""
    found = {}
    for link in Path("/proc").glob("[0-9]*/fd/*"):
        try:
            target = Path(os.readlink(link))
        except OSError:  # a process that has ended meanwhile, or somebody else's
            continue
        if target.parent == streams and target.suffix == ".lock":
            found[target.stem.removeprefix(".")] = int(link.parts[2])
    return found


def resident_megabytes(process: int) -> float:
    status = Path(f"/proc/{process}/status").read_text()
    return round(int(re.findall(r"VmRSS:\s+(\d+) kB", status)[0]) / 1024, 1)


def images_passed(folder: Path) -> int:
    """Of the state that was saved last."""
    return checkpoints.read_manifest(folder)["stream"]["beside"]["tally"]["images"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sweep", type=Path)
    parser.add_argument("--record", type=Path, required=True)
    parser.add_argument("--every", type=float, default=5.0, help="seconds from one reading to the next")
    options = parser.parse_args()
    streams = options.sweep.resolve() / "streams"
    rows = json.loads(options.record.read_text()) if options.record.exists() else {}
    last_seen = time.monotonic()
    while time.monotonic() - last_seen < PATIENCE:
        for name, process in owners(streams).items():
            last_seen = time.monotonic()
            try:
                row = [images_passed(streams / name), resident_megabytes(process)]
            except (OSError, KeyError, checkpoints.CheckpointError):  # about to begin, or just over
                continue
            own = rows.setdefault(name, [])
            if row[0] and (not own or row[0] > own[-1][0]):
                own.append(row)
                write_whole(options.record, (json.dumps(rows, indent=None) + "\n").encode())
        time.sleep(options.every)


if __name__ == "__main__":
    main()
