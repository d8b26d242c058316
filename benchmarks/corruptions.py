"""Speed of `bacs.corruptions` beside `imagecorruptions`, and of a whole CIFAR test set.

    python benchmarks/corruptions.py [--images IMAGES.npy] [--threads N]

Both run in turns on the same 224-pixel images (drawn ones unless an array uint8 [n, 224, 224, 3] is given), at
severity 1, 3 and 5 with ImageNet constants; turns are short and the best of them counts, since other work on the
machine can only slow a turn down. Writes results/corruptions/speed.json and the table of
docs/measurements/corruptions.md.
"""

import argparse
import json
import os
import platform
import time
from functools import partial
from pathlib import Path

import corruption_peers
import numpy as np
from pages import ROOT, write_table
from scipy import ndimage

from bacs.corruptions import TEST, VALIDATION, corrupt

RECORD = ROOT / "results" / "corruptions" / "speed.json"
PAGE = "docs/measurements/corruptions.md"
SEVERITIES = (1, 3, 5)


def drawn_images(count: int, side: int) -> np.ndarray:
    """Smooth colours and sharp patches: JPEG and the filters take about as long on them as on photographs."""
    rng = np.random.default_rng(0)
    images = ndimage.gaussian_filter(rng.standard_normal((count, side, side, 3)), (0, 4, 4, 0), mode="wrap")
    images = 128 + 600 * images + 8 * rng.standard_normal(images.shape)
    for image in images:
        top, left = rng.integers(side, size=2)
        image[top : top + side // 3, left : left + side // 3] += 70
    return np.clip(images, 0, 255).astype(np.uint8)


def seconds(function) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def peer_batch(peer, images, name: str, severity: int) -> None:
    for image in images:
        peer.corrupt(image, severity=severity, corruption_name=name)


def compare(images, peer, threads: int, budget: float) -> list[dict]:
    rows = []
    for name in TEST + VALIDATION:
        peer_count = 2 if name == "glass_blur" else len(images)
        best = {"peer": 0.0, "one": 0.0, "many": 0.0}
        for severity in SEVERITIES:
            ours = partial(corrupt, images, name, severity, constants="imagenet")
            runs = {
                "peer": partial(peer_batch, peer, images[:peer_count], name, severity),
                "one": partial(ours, threads=1),
                "many": partial(ours, threads=threads),
            }
            runs["one"]()  # tables and pictures are made once
            times = {key: [] for key in runs}
            start = time.perf_counter()
            while not times["peer"] or (time.perf_counter() - start < budget and len(times["peer"]) < 50):
                for key, run in runs.items():
                    times[key].append(seconds(run) / (peer_count if key == "peer" else len(images)))
            for key in best:
                best[key] += min(times[key]) / len(SEVERITIES)
        rows.append({"corruption": name} | {f"{key}_per_second": round(1 / value, 1) for key, value in best.items()})
        print(rows[-1], flush=True)
    return rows


def cifar_seconds(threads: int, turns: int = 2) -> dict[str, float]:
    """10,000 CIFAR-size images through each of the 15, severity 5."""
    images = drawn_images(10_000, 32)
    return {
        name: round(min(seconds(lambda name=name: corrupt(images, name, 5, threads=threads)) for _ in range(turns)), 3)
        for name in TEST
    }


def write_tables(record) -> None:
    lines = [
        "| corruption | imagecorruptions, images/s | bacs, 1 thread | ratio "
        f"| bacs, {record['threads']} threads | ratio |",
        "|---|---|---|---|---|---|",
    ]
    for row in record["rows"]:
        peer, one, many = (row[f"{key}_per_second"] for key in ("peer", "one", "many"))
        lines.append(f"| {row['corruption']} | {peer} | {one} | {one / peer:.1f} | {many} | {many / peer:.1f} |")
    means = (record[f"geometric_mean_ratio_{key}"] for key in ("one", "many"))
    lines.append("| **geometric mean** | | | **{:.1f}** | | **{:.1f}** |".format(*means))
    total = sum(record["cifar_seconds"].values())
    lines += [
        "",
        f"10,000 images of 32 x 32 x 3 through all 15 at severity 5: {total:.1f} s on {record['threads']} threads. "
        f"({record['machine']}, {record['cores']} cores.)",
    ]
    write_table(PAGE, "speed", lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=Path)
    parser.add_argument("--count", type=int, default=8)
    parser.add_argument("--budget", type=float, default=2.0, help="seconds for each corruption and severity")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--tables-only", action="store_true", help="make the table again from the record")
    arguments = parser.parse_args()
    if arguments.tables_only:
        write_tables(json.loads(RECORD.read_text()))
        return
    peer = corruption_peers.load()
    images = np.load(arguments.images)[: arguments.count] if arguments.images else drawn_images(arguments.count, 224)
    rows = compare(images, peer, arguments.threads, arguments.budget)
    record = {
        "machine": platform.processor() or platform.machine(),
        "cores": len(os.sched_getaffinity(0)),
        "threads": arguments.threads,
        "images": len(images),
        "severities": SEVERITIES,
        "rows": rows,
        "cifar_seconds": cifar_seconds(arguments.threads),
    }
    for key in ("one", "many"):
        ratios = [row[f"{key}_per_second"] / row["peer_per_second"] for row in rows]
        record[f"geometric_mean_ratio_{key}"] = round(float(np.exp(np.mean(np.log(ratios)))), 2)
    RECORD.parent.mkdir(parents=True, exist_ok=True)
    RECORD.write_text(json.dumps(record, indent=1) + "\n")
    write_tables(record)
    print((ROOT / PAGE).read_text().partition("<!-- table: speed -->")[2])


if __name__ == "__main__":
    main()
