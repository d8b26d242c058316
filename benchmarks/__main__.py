"""Speed and memory, as ratios of sides that take turns in one process.

    python -m benchmarks                                        # all parts, about fifty minutes on two cores
    python -m benchmarks steps gemm                             # some of them
    python -m benchmarks --record results/performance/NAME.json # keeps the figures
    python -m benchmarks --quick                                # does it run? Its figures mean nothing

Run it from the root of the repository, on a machine that does nothing else. A record is written after every part; parts
of another run on the same machine stay in it. `python benchmarks/performance_tables.py` puts records into
docs/performance.md.
"""

import argparse
import json
import os
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

# The scripts beside this file import each other by bare names.
sys.path.append(str(Path(__file__).parent))

from benchmarks.performance import (
    corruption_speed,
    gemm,
    machine,
    members,
    mixtures,
    other_ways,
    peak_memory,
    protocols,
    scaling,
    step_profile,
    steps,
    training_speed,
)
from benchmarks.performance_tables import machine_line

PARTS = {
    "steps": steps.run,
    "mixtures": mixtures.run,
    "ways": other_ways.run,
    "members": members.run,
    "protocols": protocols.run,
    "gemm": gemm.run,
    "profile": step_profile.run,
    "scaling": scaling.run,
    "memory": peak_memory.run,
    "training": training_speed.run,
    "corruptions": corruption_speed.run,
}


def opened(path: Path, described: dict) -> dict:
    """The record that is there, or an empty one; a record of another machine ends the program."""
    if not path.exists():
        return {"machine": described, "parts": {}}
    record = json.loads(path.read_text())
    if record.get("machine") != described:
        sys.exit(f"{path} holds figures of another machine or of other versions: choose another name")
    return record


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}; all by default")
    parser.add_argument("--quick", action="store_true", help="tiny sizes: only shows that everything runs")
    parser.add_argument("--record", type=Path, help="JSON file for the figures")
    options = parser.parse_args()
    for name in options.parts:
        if name not in PARTS:
            parser.error(f"unknown part {name!r}: one of {', '.join(PARTS)}")
    described = machine.description()
    record = opened(options.record, described) if options.record else {"machine": described, "parts": {}}
    if options.quick and not all(part["quick"] for part in record["parts"].values()):
        sys.exit(f"{options.record} holds measurements, which --quick would replace: choose another name")
    load = os.getloadavg()[0]  # once, before any work: later it is our own
    print(f"{machine_line(record)}; load {load:.2f}{', so ratios will be off' if load > 0.5 else ''}", flush=True)
    for name in options.parts or PARTS:
        began = time.perf_counter()
        print(f"\n== {name}", flush=True)
        found = PARTS[name](options.quick)
        about = {"date": datetime.now(UTC).date().isoformat(), "load_before": round(load, 2), "quick": options.quick}
        record["parts"][name] = about | {"seconds_in_all": round(time.perf_counter() - began, 1)} | found
        if options.record:
            options.record.parent.mkdir(parents=True, exist_ok=True)
            partial = options.record.with_suffix(".partial")
            partial.write_text(json.dumps(record, indent=1) + "\n")
            partial.replace(options.record)


if __name__ == "__main__":
    main()
