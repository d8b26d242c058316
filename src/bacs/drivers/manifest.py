"""What the manifest of a saved ensemble, stream or run may say: the schema that each is checked against."""

from pathlib import Path
from typing import Annotated, Any, NotRequired, TypedDict

from bacs import checkpoints
from bacs.agreement import Reference
from bacs.architecture import Architecture
from bacs.control import GuardedStream
from bacs.errors import CheckpointError
from bacs.methods.online import Stream
from bacs.posteriors.scale import Scale
from bacs.preprocessing import Preprocessing
from bacs.schema import Positive, Rule, Share, check


class MemberEntry(TypedDict):
    architecture: Architecture
    preprocessing: Preprocessing | None
    posterior: dict[str, Any]  # as its kind says; `posteriors.unpack` checks it
    posterior_scale: NotRequired[Scale]  # 1 if missing


class EnsembleManifest(TypedDict):
    """As `Ensemble.describe` writes it; what may be missing, older versions did not have."""

    class_names: list[str] | None
    class_mask: list[bool] | None
    statistics: str
    batch_weight: NotRequired[Share]
    temperature: NotRequired[Positive]
    reference: NotRequired[Reference | None]
    adaptation: dict[str, Any] | None
    members: list[MemberEntry]
    image_size: NotRequired[tuple[int, int]]
    training: NotRequired[dict[str, Any]]  # how `bacs train` made it
    posterior: NotRequired[dict[str, Any]]  # how `bacs posterior` made it


class StreamManifest(EnsembleManifest):
    stream: dict[str, Any]  # as the stream's own class says


class RunManifest(TypedDict):
    recipe: dict[str, Any]


Members = Annotated[int, Rule("a whole number from 0 to 100,000", lambda count: 0 <= count <= 100_000)]

KINDS: dict[str, type] = {"ensemble": EnsembleManifest, "stream": StreamManifest, "run": RunManifest}


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of a saved ensemble, stream or run, every field checked; raises CheckpointError for any other."""
    manifest = checkpoints.read_manifest(folder)
    if manifest["kind"] not in KINDS:
        known = "ensemble, stream and run"
        raise CheckpointError(f"{folder} holds a {manifest['kind']!r}; this version knows {known}")
    checkpoints.check_fields(folder, manifest, KINDS[manifest["kind"]])
    for part in _parts(manifest):
        check(*part, error=CheckpointError, saying=checkpoints.unusable(folder))
    return manifest


def _parts(manifest: dict[str, Any]) -> list[tuple[Any, Any, str]]:
    """What lies in open tables and is relied on: (value, kind, where)."""
    if manifest["kind"] == "run":
        return [(manifest["recipe"].get("members", 0), Members, "recipe.members")]
    found: list[tuple[Any, Any, str]] = []
    if (adaptation := manifest["adaptation"]) is not None:
        found.append((adaptation.get("method"), str, "adaptation.method"))
        found.append((adaptation.get("reasons", []), list[str], "adaptation.reasons"))
    found += [(member["posterior"].get("kind"), str, "posterior.kind") for member in manifest["members"]]
    if manifest["kind"] == "stream":
        about = manifest["stream"]
        found.append((about, GuardedStream.SAVED if "watch" in about else Stream.SAVED, "stream"))
    return found
