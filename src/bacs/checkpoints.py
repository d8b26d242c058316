"""The files of a saved ensemble or stream: safetensors and one JSON manifest, never pickle.

A folder holds `bacs.json`, which names the other files with their SHA-256 sums, and tensor files named by content.
The manifest is replaced last and in one step, so a kill at any moment leaves the old state or the new one. Opening
a stranger's checkpoint runs none of its code.
"""

import hashlib
import json
import os
import re
from importlib.metadata import version
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from torch import Tensor

import bacs
from bacs.errors import CheckpointError

MANIFEST = "bacs.json"
FORMAT = 2  # since statistics are a weight and a reference
READABLE = (1, FORMAT)

Entries = dict[str, dict[str, Any]]  # of a manifest: what tensors are called -> file, checksum, size


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
    files: Entries = dict(kept or {})
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, group in tensors.items():
            data = save_tensors({key: tensor.detach().cpu().contiguous() for key, tensor in group.items()})
            digest = hashlib.sha256(data).hexdigest()
            files[name] = {"file": f"{name}-{digest[:12]}.safetensors", "sha256": digest, "bytes": len(data)}
            replace(folder / files[name]["file"], data)
        about = {"format": FORMAT, "versions": {"bacs": bacs.__version__, "torch": version("torch")}}
        replace(folder / MANIFEST, (json.dumps(about | manifest | {"files": files}, indent=1) + "\n").encode())
    except OSError as error:
        raise CheckpointError(
            f"could not save to {folder}: {error.strerror or error}; what was there is intact"
        ) from error
    kept_files = {entry["file"] for entry in files.values()}
    for stale in folder.iterdir():
        if _is_ours(stale) and stale.name not in kept_files:
            stale.unlink(missing_ok=True)
    return files


def still_there(path: str | Path, entries: Entries) -> Entries:
    """The entries of an earlier write, if this folder has all of their files in full; else none."""
    sizes = {entry["file"]: entry["bytes"] for entry in entries.values()}
    files = {file: Path(path) / file for file in sizes}
    whole = all(file.is_file() and file.stat().st_size == sizes[name] for name, file in files.items())
    return entries if whole else {}


def read(path: str | Path) -> tuple[dict[str, Any], dict[str, dict[str, Tensor]]]:
    """The manifest and all tensors of a saved folder, every byte checked against its sum."""
    folder = Path(path)
    manifest = read_manifest(folder)
    tensors = {}
    for name, entry in manifest["files"].items():
        file = folder / Path(entry["file"]).name  # a manifest may not point outside of its folder
        try:
            data = file.read_bytes()
        except OSError as error:
            raise CheckpointError(f"{file} cannot be read: {error.strerror or error}") from error
        if len(data) != entry["bytes"] or hashlib.sha256(data).hexdigest() != entry["sha256"]:
            raise CheckpointError(f"{file} is damaged: it holds {len(data)} bytes that do not match their checksum")
        try:
            tensors[name] = load_tensors(data)
        except SafetensorError as error:
            raise CheckpointError(f"{file} is not a safetensors file: {error}") from error
    return manifest, tensors


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of a saved folder, checked for what every reader relies on."""
    if folder.is_file():
        check_no_part(folder)
        raise CheckpointError(f"{folder} is a file; what bacs saves is a folder with {MANIFEST} in it")
    file = folder / MANIFEST
    try:
        manifest = json.loads(file.read_text())
    except FileNotFoundError:
        what = "there is no such folder" if not folder.exists() else f"it has no {MANIFEST}"
        raise CheckpointError(f"{folder} is not a saved ensemble: {what}") from None
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise CheckpointError(f"{file} is damaged: {error}") from error
    if not isinstance(manifest, dict) or not {"format", "kind", "files"} <= manifest.keys():
        raise CheckpointError(f"{file} is not a bacs manifest: it lacks format, kind or files")
    members = manifest.get("members", [])
    if not isinstance(manifest["files"], dict) or not isinstance(members, list) or not all(map(_is_table, members)):
        raise CheckpointError(f"{file} is damaged: files and members are not what bacs writes")
    if manifest["format"] not in READABLE:
        known = " and ".join(map(str, READABLE))
        raise CheckpointError(f"{file} has format {manifest['format']!r}, this version reads {known}; update bacs")
    return manifest


def check_no_part(file: Path) -> None:
    """Raises for a file out of a saved folder, which is no checkpoint by itself."""
    if (file.parent / MANIFEST).exists():
        raise CheckpointError(f"{file} is a part of a saved folder; name the folder: {file.parent}")


def _is_table(value: Any) -> bool:
    return isinstance(value, dict)


def _is_ours(file: Path) -> bool:
    """Whether a write made this file: tensors named by content, or what a kill in the middle of it left behind."""
    return re.fullmatch(r".+-[0-9a-f]{12}\.safetensors|\..+\.\d+\.tmp", file.name) is not None


def replace(file: Path, data: bytes) -> None:
    """Writes a file whole or not at all: a temporary neighbour, flushed to disk, then renamed."""
    temporary = file.with_name(f".{file.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as handle:
            handle.write(data)
            handle.flush()
            os.fsync(handle.fileno())
        temporary.replace(file)
    finally:
        temporary.unlink(missing_ok=True)
