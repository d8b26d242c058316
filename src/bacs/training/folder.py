"""The folder of a training run, and what is where in it.

bacs.json               the recipe; `bacs.load` gathers the finished members below
member-0/               a finished member, a saved ensemble of its own: copy it anywhere
training/member-0/      state of an unfinished member after its last epoch
training/member-0.jsonl one line an epoch
training/member-0.now   where it is at this moment, for the progress display
"""

import json
import os
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from bacs import checkpoints, locks
from bacs.errors import RunError
from bacs.training.recipe import Recipe, parse


def member_folder(out: Path, index: int) -> Path:
    return out / f"member-{index}"


def state_folder(out: Path, index: int) -> Path:
    return out / "training" / f"member-{index}"


def log_file(out: Path, index: int) -> Path:
    return out / "training" / f"member-{index}.jsonl"


def now_file(out: Path, index: int) -> Path:
    return out / "training" / f"member-{index}.now"


def is_finished(out: Path, index: int) -> bool:
    """Whether this member is trained; the manifest is the last file to be written."""
    return (member_folder(out, index) / checkpoints.MANIFEST).exists()


def about(out: Path, index: int) -> dict[str, Any]:
    """What a finished member's manifest says of its training: recipe, scores, log."""
    return checkpoints.read_manifest(member_folder(out, index)).get("training", {})


def open_run(out: Path, recipe: Recipe) -> None:
    """Makes `out` the folder of this recipe's run, or checks that it is. The number of members may grow."""
    if (out / checkpoints.MANIFEST).exists():
        manifest = checkpoints.read_manifest(out)
        if manifest["kind"] != "run":
            raise RunError(f"{out} holds a saved {manifest['kind']}, not a training run; choose another folder")
        theirs, ours = parse(manifest["recipe"]).as_json(), recipe.as_json()
        differing = [key for key in ours if theirs[key] != ours[key]]
        for key in differing:
            if key != "members":
                raise RunError(
                    f"{out} holds the run of another recipe: {key} is {theirs[key]!r} there and {ours[key]!r} here; "
                    "choose another folder"
                )
        if not differing:
            return
    checkpoints.write(out, {"kind": "run", "recipe": recipe.as_json()}, {})


def write_file(file: Path, text: str, *, durable: bool = True) -> None:
    """Writes a small text file whole or not at all; without `durable`, a power cut may lose it."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        if durable:
            checkpoints.replace(file, text.encode())
            return
        temporary = file.with_name(f".{file.name}.{os.getpid()}.tmp")
        temporary.write_text(text)
        temporary.replace(file)
    except OSError as error:
        raise RunError(f"could not write {file}: {error.strerror or error}; the last checkpoint is intact") from error


def read_log(out: Path, index: int) -> list[dict[str, Any]]:
    """The epochs of a member so far, as its log has them."""
    file = log_file(out, index)
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def locked(out: Path, index: int) -> AbstractContextManager[None]:
    """Sole right to train this member."""
    file = out / "training" / f"member-{index}.lock"
    return locks.locked(file, f"member {index} in {out} is being trained")
