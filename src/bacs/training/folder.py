"""The folder of a training run, and what is where in it.

bacs.json               the recipe; `bacs.load` gathers the finished members below
member-0/               a finished member, a saved ensemble of its own: copy it anywhere
training/member-0/      state of an unfinished member after its last epoch
training/member-0.jsonl one line an epoch
training/member-0.now   where it is at this moment, for the progress display
"""

import json
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, TypedDict

from bacs import checkpoints, files
from bacs.errors import RunError
from bacs.schema import mismatch
from bacs.training.loop import EpochLog
from bacs.training.recipe import Recipe, parse


class About(TypedDict):
    """What a finished member's manifest says of its training."""

    member: int
    recipe: dict[str, Any]
    scores: dict[str, dict[str, float]]
    log: list[EpochLog]


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
    """What a finished member's manifest says of its training: recipe, scores, log; nothing if it came otherwise."""
    place = member_folder(out, index)
    found = checkpoints.read_manifest(place).get("training", {})
    if found and (wrong := mismatch(found, About, "training")) is not None:
        raise RunError(f"{place / checkpoints.MANIFEST} is no manifest that can be used: {wrong}")
    return found


def open_run(out: Path, recipe: Recipe) -> None:
    """Makes `out` the folder of this recipe's run, or checks that it is. The number of members may grow."""
    if (out / checkpoints.MANIFEST).exists():
        manifest = checkpoints.read_manifest(out)
        if manifest["kind"] != "run":
            raise RunError(f"{out} holds a saved {manifest['kind']}, not a training run; choose another folder")
        if not isinstance(manifest.get("recipe"), dict):
            raise RunError(f"{out} is damaged: its manifest has no recipe; choose another folder")
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
        files.write(file, text.encode(), durable=durable)
    except OSError as error:
        raise RunError(f"could not write {file}: {error.strerror or error}; the last checkpoint is intact") from error


def read_log(out: Path, index: int) -> list[dict[str, Any]]:
    """The epochs of a member so far, as its log has them; of a damaged log none, for it is only looked at."""
    try:
        lines = [json.loads(line) for line in log_file(out, index).read_text().splitlines()]
    except (FileNotFoundError, ValueError, RecursionError):
        return []
    return lines if mismatch(lines, list[EpochLog], "log") is None else []


def locked(out: Path, index: int) -> AbstractContextManager[None]:
    """Sole right to train this member."""
    file = out / "training" / f"member-{index}.lock"
    return files.lock(file, f"member {index} in {out} is being trained")
