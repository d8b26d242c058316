"""(e) Corruptions against the package `imagecorruptions`, by benchmarks/corruptions.py."""

import corruption_peers
import numpy as np

import corruptions
from benchmarks.performance import setting


def run(quick: bool) -> dict:
    try:
        peer = corruption_peers.load()
    except SystemExit as missing:  # the peer needs packages of its own; the other parts do not
        print(missing, flush=True)
        return {"missing": "imagecorruptions is not installed"}
    images = corruptions.drawn_images(2 if quick else 8, 32 if quick else 224)
    rows = corruptions.compare(images, peer, setting.cores(), budget=0.0 if quick else 2.0)
    record: dict = {"images": len(images), "threads": setting.cores(), "rows": rows}
    for key in ("one", "many"):
        logarithms = [np.log(row[f"{key}_per_second"] / row["peer_per_second"]) for row in rows]
        record[f"geometric_mean_ratio_{key}"] = round(float(np.exp(np.mean(logarithms))), 2)
        print(f"threads, {key}: {record[f'geometric_mean_ratio_{key}']} times the peer, geometric mean", flush=True)
    return record
