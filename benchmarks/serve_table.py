"""The table of docs/serve.md, from what `benchmarks/serve_load.py --record` kept: of BACS, and of auto.

python benchmarks/serve_table.py
"""

import json
import statistics

from pages import ROOT, write_table

LATENCIES = ("half_load_latency_seconds", "full_load_latency_seconds")


RECORDS = {"BACS": "load.json", "auto": "load-auto.json"}


def read_records():
    """By the name of a column."""
    return {name: json.loads((ROOT / "results" / "serve" / file).read_text()) for name, file in RECORDS.items()}


def markdown(records):
    """One line for each figure, one column for each record."""
    columns = [dict(figures_of(record)) for record in records.values()]
    head = [f"| | {' | '.join(records)} |", "|---|" + "---|" * len(records)]
    return head + [f"| {name} | {' | '.join(each[name] for each in columns)} |" for name in columns[0]]


def figures_of(record):
    service, loop = record["service_images_per_second"], record["loop_images_per_second"]
    memory, half, full = (record[name] for name in ("memory_megabytes", *LATENCIES))
    return [
        ("requests, of them failed", f"{record['requests']:,}, {record['failed']}"),
        ("images per second, service, by round", ", ".join(f"{value:.1f}" for value in service)),
        ("images per second, the stream in a loop, by round", ", ".join(f"{value:.1f}" for value in loop)),
        ("ratio, by round", ", ".join(f"{own / other:.2f}" for own, other in zip(service, loop, strict=True))),
        ("ratio of the medians", f"{statistics.median(service) / statistics.median(loop):.2f}"),
        ("latency at full load, median and 99 %", f"{full['p50']:.2f} s, {full['p99']:.2f} s"),
        ("latency at half of that load, median and 99 %", f"{half['p50']:.2f} s, {half['p99']:.2f} s"),
        ("memory, before and after each round", ", ".join(f"{value:.0f}" for value in memory) + " MB"),
    ]


def main():
    write_table("docs/serve.md", "serve load", markdown(read_records()))


if __name__ == "__main__":
    main()
