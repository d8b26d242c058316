"""What a sweep knows of the run that it evaluates: a checksum of all that predictions depend on."""

import hashlib
import json
from functools import lru_cache
from pathlib import Path
from typing import Any

from bacs.drivers.load import load, member_manifests
from bacs.drivers.manifest import read_manifest
from bacs.ensemble import Ensemble
from bacs.errors import RunError


def identify_run(run: Path) -> dict[str, Any]:
    """Checksum, number of members and name of a training run or a saved ensemble; reads manifests only.

    The checksum covers tensors (by their own sums), architectures, preprocessing, posteriors and class names, but
    neither logs nor versions.
    """
    manifest = read_manifest(run)
    if manifest["kind"] not in ("run", "ensemble"):
        raise RunError(f"{run} holds a {manifest['kind']}; a sweep begins with a training run or a saved ensemble")
    manifests = [manifest]
    if manifest["kind"] == "run":
        manifests = member_manifests(run)
    matter = ("members", "class_names", "class_mask", "statistics")
    since = ("batch_weight", "temperature")  # not in the manifests of version 0.1, whose checksums stay as they were
    content = [
        {key: each.get(key) for key in matter}
        | {key: each[key] for key in since if key in each}
        | {"files": {n: f["sha256"] for n, f in each["files"].items()}}
        for each in manifests
    ]
    digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
    members = sum(len(each.get("members", [])) for each in manifests)
    return {"sha256": digest, "members": members, "name": run.resolve().name}


@lru_cache(maxsize=1)
def open_unchanged(run: Path, sha256: str) -> Ensemble:
    """The ensemble of a run, read once by each process; raises if it is no longer the one that the sweep began with."""
    ensemble = load(run)
    if identify_run(run)["sha256"] != sha256:
        raise RunError(f"{run} has changed since the sweep began")
    return ensemble
