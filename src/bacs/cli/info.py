"""`bacs info`: what a saved folder holds, from its manifests alone; no weight is read."""

import json as json_format
from collections import Counter
from pathlib import Path
from typing import Annotated, Any

import tyro

from bacs.cli.arguments import Flag, takes


def info(run: Annotated[Path, tyro.conf.Positional, takes("RUN")], *, json: Flag = False) -> None:
    """Say what a saved ensemble, stream or run holds.

    Example: bacs info runs/cifar10

    Members, the size of their pictures, classes, posteriors and their scales, temperature, and how it was adapted.

    Args:
        run: A folder that bacs train, bacs posterior, bacs adapt or ensemble.save wrote.
        json: Print it as JSON.
    """
    found = describe_run(run)
    if json:
        print(json_format.dumps(found))
        return
    width = max(map(len, found)) + 2
    for name, value in found.items():
        print(f"{name:<{width}}{spell(value)}")


def describe_run(run: Path) -> dict[str, Any]:
    """What the manifests say, in the order in which people ask."""
    from bacs.drivers.load import member_manifests
    from bacs.drivers.manifest import read_manifest

    manifest = read_manifest(run)
    if manifest["kind"] == "run":
        parts = member_manifests(run)
        of = manifest.get("recipe", {}).get("members")
        whole = parts[0] | {"members": [member for part in parts for member in part["members"]]}
        files = {f"{index}/{name}": entry for index, part in enumerate(parts) for name, entry in part["files"].items()}
        found = _describe_ensemble(whole | {"files": files})
        about = {"kind": "training run", "finished members": f"{len(parts)} of {len(parts) if of is None else of}"}
        return about | found | {"trained on": manifest.get("recipe", {}).get("data")}
    found = {"kind": manifest["kind"]} | _describe_ensemble(manifest)
    if manifest["kind"] == "stream":
        found |= _describe_stream(manifest["stream"])
    return found


def _describe_ensemble(manifest: dict[str, Any]) -> dict[str, Any]:
    members = manifest["members"]
    prepared = [member["preprocessing"] or {} for member in members]
    sizes = [prepared_one.get("size") for prepared_one in prepared]
    names, mask = manifest.get("class_names"), manifest.get("class_mask")
    found: dict[str, Any] = {
        "members": count_each(member["architecture"]["name"] for member in members),
        "posteriors": count_each(member["posterior"]["kind"] for member in members),
        "posterior scales": [float(member.get("posterior_scale", 1.0)) for member in members],
        "picture size": count_each(
            "not stored: give --size" if size is None else f"{size[0]} x {size[1]}" for size in sizes
        ),
        "classes": None if names is None else list(names),
        "possible classes": None if mask is None else sum(mask),
        "statistics": f"{manifest.get('batch_weight', 0.0):g} of the batch, the rest {manifest.get('statistics')}",
        "temperature": manifest.get("temperature", 1.0),
        "source reference": manifest.get("reference"),
        "adapted": _describe_adaptation(manifest.get("adaptation")),
        "made by": f"bacs {manifest['versions']['bacs']}, torch {manifest['versions']['torch']}",
        "megabytes": round(sum(entry["bytes"] for entry in manifest["files"].values()) / 1e6, 1),
    }
    return {name: value for name, value in found.items() if value is not None}


def _describe_adaptation(adaptation: dict[str, Any] | None) -> str:
    if adaptation is None:
        return "no"
    reasons = adaptation.get("reasons")
    return f"by {adaptation['method']}" + (f": {'; '.join(reasons)}" if reasons else "")


def _describe_stream(about: dict[str, Any]) -> dict[str, Any]:
    method = "auto" if "watch" in about else about.get("start", about)["method"]
    return {"stream": f"{method}, after {about['steps']} steps", "decisions": len(about.get("history", []))}


def count_each(values: Any) -> dict[str, int]:
    return dict(Counter(values))


def spell(value: Any) -> str:
    """A value for the screen.

    >>> spell({"resnet26": 5}), spell(["cat", "dog"]), spell([812.0, 634.5, 701.0]), spell([1.0, 1.0]), spell(1.5)
    ('5 x resnet26', '2: cat, dog', '634 to 812', '1', '1.5')
    """
    if isinstance(value, dict):
        if all(isinstance(number, int) for number in value.values()):
            return ", ".join(f"{number} x {name}" for name, number in value.items())
        return ", ".join(f"{name} {number:.4g}" for name, number in value.items())
    if isinstance(value, list) and all(isinstance(number, float) for number in value):
        return " to ".join(dict.fromkeys(f"{number:.3g}" for number in (min(value), max(value))))
    if isinstance(value, list):
        shown = ", ".join(map(str, value[:12])) + (", ..." if len(value) > 12 else "")
        return f"{len(value)}: {shown}"
    return str(value)
