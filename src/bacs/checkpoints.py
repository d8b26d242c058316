"""The files of a saved ensemble or stream: safetensors and one JSON manifest, never pickle.

A folder holds `bacs.json`, which names the other files with their SHA-256 sums, and tensor files named by content.
The manifest is replaced last and in one step, so a kill at any moment leaves the old state or the new one. It has a
sum of its own, and every field of it is checked against a schema before anything is looked up by its words: a damaged
one is refused, and opening a stranger's runs none of its code.
"""

import hashlib
import json
import re
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, TypedDict

from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from torch import Tensor

import bacs
from bacs import files
from bacs.errors import CheckpointError
from bacs.files import SEAL, is_sealed, read_json, seal
from bacs.schema import Count, Rule, check, known_part
from bacs.types import FLOATS

MANIFEST = "bacs.json"
FORMAT = 3  # since a manifest has a checksum of its own; 2 since statistics are a weight and a reference
READABLE = (1, 2, FORMAT)

Entries = dict[str, dict[str, Any]]  # of a manifest: what tensors are called -> file, checksum, size


def _matches(words: str, pattern: str) -> Rule:
    return Rule(words, lambda text: re.fullmatch(pattern, text) is not None)


class TensorFile(TypedDict):
    """A tensor file; a manifest may not point outside of its folder."""

    file: Annotated[str, _matches("the name of a .safetensors file in the same folder", r"[^/\\\x00]+\.safetensors")]
    sha256: Annotated[str, _matches("64 hexadecimal digits", r"[0-9a-f]{64}")]
    bytes: Count


class Versions(TypedDict):
    bacs: str
    torch: str


class Head(TypedDict):
    """What every manifest begins and ends with."""

    format: int
    versions: Versions
    kind: str
    files: dict[str, TensorFile]


def write(
    path: str | Path, manifest: dict[str, Any], tensors: dict[str, dict[str, Tensor]], *, kept: Entries | None = None
) -> Entries:
    """Writes `tensors` (name -> tensors) and the manifest into the folder `path`, replacing what was there.

    Returns the manifest's entries. Those of an earlier write may be `kept`: their files stay and are not written again.
    """
    folder = Path(path)
    if folder.exists() and not folder.is_dir():
        raise CheckpointError(f"{folder} is a file; a run is saved as a folder")
    if folder.is_dir() and not (folder / MANIFEST).exists() and not all(map(_is_ours, folder.iterdir())):
        raise CheckpointError(f"{folder} holds something else (no {MANIFEST} in it); choose an empty or new folder")
    entries: Entries = dict(kept or {})
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, group in tensors.items():
            data = save_tensors({key: tensor.detach().cpu().contiguous() for key, tensor in group.items()})
            digest = hashlib.sha256(data).hexdigest()
            entries[name] = {"file": f"{name}-{digest[:12]}.safetensors", "sha256": digest, "bytes": len(data)}
            files.write(folder / entries[name]["file"], data)
        about = {"format": FORMAT, "versions": {"bacs": bacs.__version__, "torch": version("torch")}}
        text = json.dumps(seal(about | manifest | {"files": entries}), indent=1)
        files.write(folder / MANIFEST, f"{text}\n".encode())
    except OSError as error:
        raise CheckpointError(
            f"could not save to {folder}: {error.strerror or error}; what was there is intact"
        ) from error
    current = {entry["file"] for entry in entries.values()}
    for stale in folder.iterdir():
        if _is_ours(stale) and stale.name not in current:
            stale.unlink(missing_ok=True)
    return entries


def reusable_entries(path: str | Path, entries: Entries) -> Entries:
    """The entries of an earlier write, if this folder has all of their files in full; else none."""
    sizes = {entry["file"]: entry["bytes"] for entry in entries.values()}
    files = {file: Path(path) / file for file in sizes}
    whole = all(file.is_file() and file.stat().st_size == sizes[name] for name, file in files.items())
    return entries if whole else {}


def read(path: str | Path, schema: type) -> tuple[dict[str, Any], dict[str, dict[str, Tensor]]]:
    """The manifest, checked against its schema, and all tensors of a saved folder."""
    folder = Path(path)
    manifest = read_manifest(folder)
    check_fields(folder, manifest, schema)
    return manifest, read_tensors(folder, manifest)


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of a saved folder, checked for what every reader relies on; `check_fields` checks the rest."""
    if folder.is_file():
        check_no_part(folder)
        raise CheckpointError(f"{folder} is a file; what bacs saves is a folder with {MANIFEST} in it")
    file = folder / MANIFEST
    try:
        manifest = read_json(file)
    except (FileNotFoundError, NotADirectoryError):
        what = "there is no such folder" if not folder.exists() else f"it has no {MANIFEST}"
        raise CheckpointError(f"{folder} is not a saved ensemble: {what}") from None
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{file} is damaged: {error}") from error
    if not isinstance(manifest, dict) or not {"format", "kind", "files"} <= manifest.keys():
        raise CheckpointError(f"{file} is not a bacs manifest: it lacks format, kind or files")
    if isinstance(manifest["format"], bool) or manifest["format"] not in READABLE:
        known = " and ".join(map(str, READABLE))
        raise CheckpointError(f"{file} has format {manifest['format']!r}, this version reads {known}; update bacs")
    if manifest["format"] >= 3 and not is_sealed(manifest):
        raise CheckpointError(f"{file} is damaged: what it says does not match its checksum; was it edited?")
    check(known_part(manifest, Head), Head, error=CheckpointError, saying=unusable(folder))
    return manifest


def unusable(folder: Path) -> str:
    """What an error says before what is wrong with a folder's manifest."""
    return f"{folder / MANIFEST} is no manifest that can be used: "


def check_no_part(file: Path) -> None:
    """Raises for a file out of a saved folder, which is no checkpoint by itself."""
    if (file.parent / MANIFEST).exists():
        raise CheckpointError(f"{file} is a part of a saved folder; name the folder: {file.parent}")


def check_fields(folder: Path, manifest: dict[str, Any], schema: type) -> None:
    """Raises unless what a manifest has beside its head, and the kind's own checksum, is as the schema says."""
    sum_of_all = {SEAL} if manifest["format"] >= 3 else set()
    rest = {key: value for key, value in manifest.items() if key not in Head.__annotations__.keys() | sum_of_all}
    check(rest, schema, error=CheckpointError, saying=unusable(folder))


def read_tensors(folder: Path, manifest: dict[str, Any]) -> dict[str, dict[str, Tensor]]:
    """All tensors that a manifest names, every byte checked against its sum."""
    tensors = {}
    for name, entry in manifest["files"].items():
        file = folder / entry["file"]
        try:
            size = file.stat().st_size
            data = file.read_bytes() if size == entry["bytes"] else b""
        except OSError as error:
            raise CheckpointError(f"{file} cannot be read: {error.strerror or error}") from error
        if len(data) != entry["bytes"] or hashlib.sha256(data).hexdigest() != entry["sha256"]:
            raise CheckpointError(f"{file} is damaged: it holds {size} bytes that do not match their checksum")
        try:
            tensors[name] = load_tensors(data)
        except Exception as error:  # its reader raises SafetensorError, and many others for what torch has not
            raise CheckpointError(f"{file} is not a safetensors file: {error}") from error
    return tensors


def check_like(key: str, given: Tensor, own: Tensor) -> None:
    """Raises unless a saved tensor has the shape of the one it stands for, and floats where that has floats."""
    fitting = given.dtype in FLOATS.values() if own.is_floating_point() else given.dtype == own.dtype
    if given.shape != own.shape or not fitting:
        kinds = [str(tensor.dtype).removeprefix("torch.") for tensor in (given, own)]
        raise CheckpointError(
            f"{key!r} is {tuple(given.shape)} of {kinds[0]}, the model's is {tuple(own.shape)} of {kinds[1]}"
        )


def _is_ours(file: Path) -> bool:
    """Whether a write made this file: tensors named by content, or what a kill in the middle of it left behind."""
    return files.is_stray(file) or re.fullmatch(r".+-[0-9a-f]{12}\.safetensors", file.name) is not None
