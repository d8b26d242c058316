"""Thousands of damaged files of every kind that bacs reads: what comes of them?

    python benchmarks/mutate_files.py --mutations 10000 --seed 0

Good files, small ones, are made first; then each is damaged in a seeded way and read. It may be refused, by one of
bacs's own errors and no other; it may mean the same as before; where no format could tell (a pixel, a word of a
recipe), it may mean something else. What must not be:

escaped  any other exception
silent   a manifest or a record, which have checksums, that says something else
killed   the process ended, or took more than two minutes over one file
memory   more than 512 MB beyond what good files take

Every group of kinds is read in a process of its own, with a limit on its memory. Exit code 1 if anything was that
must not be.
"""

import argparse
import faulthandler
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import traceback
from collections import Counter
from pathlib import Path

SLOW = 120  # seconds
FAULTS = ("escaped", "silent", "killed", "memory")
ROOM = 512 << 20
"""Bytes beyond what good files take; address space may grow by eight times as much, for what is reserved only."""


def outcome(kind, number, seed, good):
    """What came of one mutation of a kind: a word, and what there is to say of it."""
    from file_kinds import OWN

    files = kind.damage(random.Random(f"{seed}/{kind.name}/{number}"))
    before = {file: file.read_bytes() for file in files}
    try:
        for file, content in files.items():
            file.write_bytes(content)
        try:
            found = kind.read()
        except OWN as error:
            return "refused", str(error)
        except Exception as error:
            place = traceback.extract_tb(error.__traceback__)[-1]
            return "escaped", f"{type(error).__name__}: {str(error)[:200]} ({Path(place.filename).name}:{place.lineno})"
    finally:
        for file, content in before.items():
            file.write_bytes(content)
    if found == good:
        return "same", ""
    return ("silent", "") if kind.is_sealed else ("changed", "")


def peak_bytes():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def work(group, first, last, seed):
    """The kinds of one group in this process; a line of JSON for each mutation, written before the next begins."""
    import torch
    from file_kinds import kinds

    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        chosen = kinds(folder, group)
        good = [kind.read() for kind in chosen]
        used = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGESIZE")
        resource.setrlimit(resource.RLIMIT_AS, (used + 8 * ROOM, resource.RLIM_INFINITY))
        peak = peak_bytes()
        for turn in range(first, last * len(chosen)):
            place, number = divmod(turn, last)
            faulthandler.dump_traceback_later(SLOW, exit=True)
            word, text = outcome(chosen[place], number, seed, good[place])
            faulthandler.cancel_dump_traceback_later()
            if word not in FAULTS and peak_bytes() > peak + ROOM:
                word, text = "memory", f"{(peak_bytes() - peak) >> 20} MB more"
                peak = peak_bytes()
            print(json.dumps([turn, chosen[place].name, number, word, text]), flush=True)


def run(group, each, seed):
    """The outcomes of one group; a process that ends is counted, and another goes on behind the file that ended it."""
    first = 0
    while True:
        command = [sys.executable, "-W", "ignore", __file__, "--group", str(group), "--first", str(first)]
        command += ["--each", str(each), "--seed", str(seed)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[")]
        yield from (line[1:] for line in lines)
        if done.returncode == 0:
            return
        if not lines:
            raise SystemExit(f"group {group} could not begin: {done.stderr[-2000:]}")
        first = lines[-1][0] + 2
        yield [lines[-1][1], lines[-1][2] + 1, "killed", done.stderr.strip()[-1000:]]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mutations", type=int, default=10_000, help="in all, spread evenly over the kinds")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--record", type=Path, help="a JSON file for the counts of each kind")
    parser.add_argument("--group", type=int, help="only this one, in this process: how the script calls itself")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--each", type=int, default=0)
    options = parser.parse_args()
    if options.group is not None:
        work(options.group, options.first, options.each, options.seed)
        return 0
    from file_kinds import GROUPS, kinds

    with tempfile.TemporaryDirectory() as folder:
        names = [kind.name for kind in kinds(folder)]
    each = -(-options.mutations // len(names))
    table, faults = {name: Counter() for name in names}, []
    for group in range(len(GROUPS)):
        for name, number, word, text in run(group, each, options.seed):
            table[name][word] += 1
            if word in FAULTS:
                faults.append((name, number, word, text))
                print("FAULT", *faults[-1], flush=True)
        print(f"group {group + 1} of {len(GROUPS)} is done", flush=True)
    for name, counts in table.items():
        print(f"{name:<42} {'  '.join(f'{word} {count}' for word, count in sorted(counts.items()))}")
    totals = sum(table.values(), Counter())
    print(f"{totals.total()} mutations of {len(names)} kinds: " + ", ".join(f"{n} {w}" for w, n in totals.items()))
    print(f"{len(faults)} faults")
    if options.record is not None:
        about = {"seed": options.seed, "mutations": totals.total(), "totals": totals, "kinds": table}
        options.record.write_text(json.dumps(about, indent=1) + "\n")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
