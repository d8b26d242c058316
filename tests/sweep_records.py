"""Records such as a sweep writes, from scores that follow a simple rule, so that tests can compute them again."""

import json
from pathlib import Path

import numpy as np

from bacs.corruptions import TEST

METHODS = ("vanilla", "bn", "tent", "bacs", "bacs-no-posterior")
GAIN = {"vanilla": 0.0, "bn": 0.18, "tent": 0.2, "bacs": 0.21, "bacs-no-posterior": 0.205}
SETTINGS = {"batch_size": 128, "learning_rate": 1e-3, "momentum": 0.9, "optimizer": "sgd", "posterior_weight": 1e-4}


def scores(accuracy, confidence_gap):
    """Four scores of a classifier of this accuracy that is too sure of itself by `confidence_gap`."""
    error = 1 - accuracy
    return {
        "accuracy": accuracy,
        "nll": 2.2 * error + 3 * confidence_gap,
        "brier": 1.25 * error + confidence_gap**2,
        "ece": confidence_gap,
    }


def make_record(shift="cifar10-c/fog/5", method="bacs", protocol="offline", epochs=1, members=3, images=2000, **extra):
    """The record of one cell. Harder corruptions come later in the list; severity costs accuracy."""
    data, corruption, severity = [*shift.split("/"), None, None][:3] if "-c/" in shift else (shift, None, None)
    severity = int(severity.partition("@")[0]) if severity else None
    place = TEST.index(corruption) if corruption in TEST else 3
    base = 0.72 - 0.012 * place - 0.03 * (severity or 0)
    # Adaptation gains less on the harder ones, so that differences between methods have a spread.
    gain = GAIN.get(method, 0.1) * (0.5 + 0.1 * (severity or 5)) * (1.2 - 0.03 * place)
    accuracy = base + gain + 0.002 * (epochs - 1)
    each = [scores(accuracy + 0.004 * (m - (members - 1) / 2), 0.1 + 0.01 * m) for m in range(members)]
    ensemble = scores(accuracy + 0.03, 0.03 + 0.002 * place)
    confidence = np.linspace(0.3, 1, 20)
    coverage = np.linspace(1 / images, 1, 50)
    return {
        "format": 1,
        "id": f"{shift.replace('/', '.')}--{method}--{protocol}--{epochs}",
        "shift": shift,
        "data": data,
        "corruption": corruption,
        "severity": severity,
        "method": method,
        "protocol": protocol,
        "epochs": epochs if GAIN.get(method, 1) > 0.19 else 0,
        "settings": dict(SETTINGS),
        "seed": 0,
        "images": images,
        "members": each,
        "single": {name: float(np.mean([member[name] for member in each])) for name in ensemble},
        "ensemble": ensemble,
        "class_names": ["cat", "dog"],
        "class_accuracy": [ensemble["accuracy"], None],
        "reliability": {
            "confidence": confidence.tolist(),
            "accuracy": np.clip(confidence - ensemble["ece"], 0, 1).tolist(),
        },
        "risk_coverage": {"coverage": coverage.tolist(), "risk": ((1 - ensemble["accuracy"]) * coverage**2).tolist()},
        "seconds": {"data": 0.1, "passes": 2.0, "scores": 0.1, "total": 2.2},
        "images_per_second": images * members / 2.0,
        "versions": {"bacs": "0.1.0", "torch": "2.13.0", "numpy": "2.4.6", "python": "3.11.2"},
        "run": {"sha256": "ab" * 32, "members": members, "name": "cifar10"},
        "error": None,
        **extra,
    }


def make_stream_record(
    method="bacs", protocol="continual", corruptions=("fog", "snow"), count=500, window=250, **extra
):
    """The record of a stream: `count` images of each shift; a window is worse by a point than the one before it."""
    severities = (5,) if protocol == "continual" else (1, 2, 3, 4, 5, 4, 3, 2, 1)
    sequence = [f"cifar10-c/{name}/{severity}" for name in corruptions for severity in severities]
    ensemble = {"accuracy": 0.5 + GAIN.get(method, 0.1), "nll": 1.5, "brier": 0.7, "ece": 0.1}
    windows = [
        {"shift": shift, "first": count * place + start, "images": window, "single": ensemble, "ensemble": ensemble}
        for place, shift in enumerate(sequence)
        for start in range(0, count, window)
    ]
    for place, each in enumerate(windows):
        each["ensemble"] = ensemble | {"accuracy": ensemble["accuracy"] - 0.01 * place}
    name = "cifar10-c/continual/5" if protocol == "continual" else "cifar10-c/gradual"
    record = make_record(name, method, protocol, images=count * len(sequence), ensemble=ensemble)
    stream = {"data": "cifar10-c", "corruption": None, "severity": 5 if protocol == "continual" else None}
    return record | stream | {"sequence": sequence, "window": window, "windows": windows} | extra


def make_failed(**identity):
    """The record of a cell that failed."""
    record = make_record(**identity)
    kept = ("format", "id", "shift", "data", "corruption", "severity", "method", "protocol", "epochs", "settings")
    return {name: record[name] for name in (*kept, "seed", "run")} | {"error": "DataError: fog.npy is missing"}


def make_records(data="cifar10-c", corruptions=TEST, severities=(5,), methods=METHODS, **options):
    """The records of a whole sweep."""
    return [
        make_record(f"{data}/{corruption}/{severity}", method, **options)
        for corruption in corruptions
        for severity in severities
        for method in methods
    ]


def write_sweep(folder: Path, records, title="CIFAR-10-C in small"):
    """A sweep's folder with these records."""
    (folder / "records").mkdir(parents=True)
    about = {"format": 1, "kind": "sweep", "run": records[0]["run"]}
    about["recipe"] = {"title": title, "seed": 0, "limit": 2000}
    (folder / "sweep.json").write_text(json.dumps(about))
    for number, record in enumerate(records):
        (folder / "records" / f"{number:04}.json").write_text(json.dumps(record))
    return folder


def whole_sweep(folder: Path):
    """All 15 corruptions at severity 5, offline with 1 and 5 epochs and online, and one failed cell."""
    offline = make_records() + make_records(methods=("tent", "bacs"), epochs=5)
    online = make_records(methods=("bn", "tent", "bacs", "bacs-no-posterior"), protocol="online")
    failed = [make_failed(shift="cifar10-c/spatter/5", method="tent")]
    return write_sweep(folder, offline + online + failed)
