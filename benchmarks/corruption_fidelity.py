"""How far `bacs.corruptions` is from two other implementations, corruption by corruption, severity by severity.

    python benchmarks/corruption_fidelity.py LARGE.npy SMALL.npy

LARGE: uint8 [n, 224, 224, 3], compared with `imagecorruptions` and with the plain definitions (ImageNet constants).
SMALL: uint8 [n, 32, 32, 3], compared with the plain definitions (CIFAR constants). Writes results/corruptions/
fidelity.json and the tables of docs/measurements/corruptions.md. Randomness differs, so statistics are compared: the
mean and the standard deviation of an image (grey levels), PSNR to the clean image (dB), radial power spectrum (RMS over
eight octave bands, dB). "floor" is the same distance between two runs of the other implementation.
"""

import argparse
import json
from itertools import pairwise
from pathlib import Path

import corruption_peers
import numpy as np
from pages import write_table

from bacs.corruptions import TEST, VALIDATION, corrupt

ROOT = Path(__file__).parent.parent
RECORD = ROOT / "results" / "corruptions" / "fidelity.json"
SEVERITIES = (1, 2, 3, 4, 5)
PARTS = ("imagenet, imagecorruptions", "imagenet, definition", "cifar, definition")


def statistics(images, clean):
    """Per image: mean, deviation, PSNR to clean, log10 power in eight bands."""
    images = images.astype(np.float64)
    error = ((images - clean) ** 2).mean(axis=(1, 2, 3))
    grey = images.mean(axis=3)
    side = grey.shape[1]
    window = np.hanning(side)[:, None] * np.hanning(side)
    power = abs(np.fft.rfft2((grey - grey.mean(axis=(1, 2), keepdims=True)) * window)) ** 2
    radius = np.hypot(np.fft.fftfreq(side)[:, None], np.fft.rfftfreq(side))
    edges = np.geomspace(1.5 / side, 0.5, 9)
    bands = [power[:, (radius >= a) & (radius < b)].mean(axis=1) for a, b in pairwise(edges)]
    return {
        "mean": images.mean(axis=(1, 2, 3)),
        "deviation": images.std(axis=(1, 2, 3)),
        "psnr": 10 * np.log10(255**2 / np.maximum(error, 1e-3)),
        "spectrum": 10 * np.log10(np.stack(bands) + 1e-3).T,
    }


def distance(ours, other):
    """Differences of the averages over the images."""
    gaps = {key: ours[key].mean(axis=0) - other[key].mean(axis=0) for key in ours}
    gaps["spectrum"] = np.sqrt(np.mean(gaps["spectrum"] ** 2))
    return {key: round(float(gap), 3) for key, gap in gaps.items()}


def compare(clean, constants, oracle, count):
    """A row for each corruption and severity; `oracle(image, name, severity, seed)`."""
    rows = []
    for name in TEST + VALIDATION:
        images = clean[: min(count, 8) if name == "glass_blur" and clean.shape[1] > 100 else count]
        for severity in SEVERITIES:
            ours = statistics(corrupt(images, name, severity, constants=constants), images)
            runs = [
                statistics(np.stack([oracle(x, name, severity, 2 * i + run) for i, x in enumerate(images)]), images)
                for run in (0, 1)
            ]
            both = {key: np.concatenate([run[key] for run in runs]) for key in ours}
            row = {
                "corruption": name,
                "severity": severity,
                "images": len(images),
                "psnr": round(float(both["psnr"].mean()), 2),
            }
            row |= {"distance": distance(ours, both), "floor": distance(*runs)}
            rows.append(row)
            print(constants, row, flush=True)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("large", type=Path, nargs="?")
    parser.add_argument("small", type=Path, nargs="?")
    parser.add_argument("--count", type=int, default=64, help="large images to use (small: eight times as many)")
    parser.add_argument("--parts", nargs="*", choices=PARTS, help="default: all three; half an hour on one core")
    parser.add_argument("--tables-only", action="store_true", help="make the tables again from the record")
    arguments = parser.parse_args()
    if arguments.tables_only:
        write_tables(json.loads(RECORD.read_text()))
        return
    peer = corruption_peers.load()
    import corruption_definitions  # after load(), which says what to install

    photographs = corruption_definitions.load_photographs(Path(peer.__file__).parent / "frost")

    def package(image, name, severity, seed):
        np.random.seed(seed)
        return peer.corrupt(image, severity=severity, corruption_name=name)

    def definition(constants):
        return lambda image, name, severity, seed: corruption_definitions.corrupt(
            image, name, severity, np.random.default_rng(seed), constants, photographs
        )

    oracles = {
        "imagenet, imagecorruptions": (arguments.large, "imagenet", package, arguments.count),
        "imagenet, definition": (arguments.large, "imagenet", definition("imagenet"), arguments.count),
        "cifar, definition": (arguments.small, "cifar", definition("cifar"), 8 * arguments.count),
    }
    RECORD.parent.mkdir(parents=True, exist_ok=True)
    for title in arguments.parts or PARTS:
        path, constants, oracle, count = oracles[title]
        rows = compare(np.load(path), constants, oracle, count)
        record = json.loads(RECORD.read_text()) if RECORD.exists() else {}
        RECORD.write_text(json.dumps(record | {title: rows}, indent=1) + "\n")
        write_tables({title: rows})


def write_tables(record):
    for title, rows in record.items():
        lines = ["| corruption | mean | deviation | PSNR | spectrum |", "|---|---|---|---|---|"]
        for name in TEST + VALIDATION:
            cells = [_worst(rows, name, key) for key in ("mean", "deviation", "psnr", "spectrum")]
            lines.append(f"| {name} | " + " | ".join(cells) + " |")
        write_table("docs/measurements/corruptions.md", "fidelity: " + title, lines)


def _worst(rows, name, key):
    row = max((row for row in rows if row["corruption"] == name), key=lambda row: abs(row["distance"][key]))
    return f"{row['distance'][key]:+.2f} ({abs(row['floor'][key]):.2f}) s{row['severity']}"


if __name__ == "__main__":
    main()
