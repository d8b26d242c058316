"""The folder of a training run, and what is where in it.

bacs.json               the recipe; `bacs.load` gathers the finished members below
member-0/               a finished member, a saved ensemble of its own: copy it anywhere
training/member-0/      state of an unfinished member after its last epoch
training/member-0.jsonl one line per epoch
training/member-0.now   where it is at this moment, for the progress display

The order of images and all other randomness follow from seed and epoch, so no generator has a state to keep.
"""

import json
import shutil
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, TypedDict

import torch

from bacs import checkpoints, files, posteriors
from bacs.ensemble import untied
from bacs.errors import CheckpointError, RunError
from bacs.schema import Count, check, mismatch
from bacs.training.loop import EpochLog, TrainState
from bacs.training.recipe import TrainingRecipe, parse
from bacs.types import Params

Log = list[dict[str, Any]]


class About(TypedDict):
    """What a finished member's manifest says of its training."""

    member: int
    recipe: dict[str, Any]
    scores: dict[str, dict[str, float]]
    log: list[EpochLog]


class TrainingManifest(TypedDict):
    """What the manifest of an unfinished member's state says."""

    epoch: Count
    posterior: dict[str, Any]  # as its kind says; `posteriors.unpack` checks it
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


def read_about(out: Path, index: int) -> dict[str, Any]:
    """What a finished member's manifest says of its training: recipe, scores, log; nothing if it came otherwise."""
    place = member_folder(out, index)
    found = checkpoints.read_manifest(place).get("training", {})
    if found:
        check(found, About, "training", error=RunError, saying=checkpoints.unusable(place))
    return found


def open_run(out: Path, recipe: TrainingRecipe) -> None:
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


def write_log(out: Path, index: int, log: Log) -> None:
    """Replaces the log of a member, whole or not at all."""
    file = log_file(out, index)
    with files.explain_failure(file, "; the last checkpoint is intact"):
        files.write(file, "".join(json.dumps(line) + "\n" for line in log).encode())


def read_log(out: Path, index: int) -> Log:
    """The epochs of a member so far, as its log has them; of a damaged log none, for it is only looked at."""
    try:
        lines = [json.loads(line) for line in log_file(out, index).read_text().splitlines()]
    except (FileNotFoundError, ValueError, RecursionError):
        return []
    return lines if mismatch(lines, list[EpochLog], "log") is None else []


def lock_member(out: Path, index: int) -> AbstractContextManager[None]:
    """Sole right to train this member."""
    file = out / "training" / f"member-{index}.lock"
    return files.lock(file, f"member {index} in {out} is being trained")


def save_state(folder: Path, state: TrainState, log: Log) -> None:
    """Replaces the checkpoint by the present state, in one step: a kill leaves the old one or the new one."""
    values, tensors = posteriors.pack(state.posterior)
    group = {f"model/{name}": t for name, t in untied(state.model).items()}
    group |= {f"posterior/{name}": t for name, t in tensors.items()}
    for name, p in state.model.named_parameters():
        momentum = state.optimizer.state.get(p, {}).get("momentum_buffer")
        if momentum is not None:
            group[f"momentum/{name}"] = momentum
    manifest = {"kind": "training", "epoch": state.epoch, "posterior": values, "log": log}
    checkpoints.write(folder, manifest, {"state": group})


@torch.no_grad()
def load_state(folder: Path, state: TrainState) -> Log:
    """Takes a freshly started state to where the checkpoint was written; returns the log until then.

    Raises before any change if it was written for another model or posterior.
    """
    manifest, groups = checkpoints.read(folder, TrainingManifest)
    own = {f"model/{name}": t for name, t in untied(state.model).items()}
    params: Params = dict(state.model.named_parameters())
    momenta = {f"momentum/{name}": p for name, p in params.items()}
    tensors = groups.get("state", {})
    packed = {key.removeprefix("posterior/"): t for key, t in tensors.items() if key.startswith("posterior/")}
    try:
        for name in own.keys() | {key for key in tensors if not key.startswith("posterior/")}:
            if name not in tensors or name not in own | momenta:
                raise CheckpointError(f"{name!r} is on one side only")
            checkpoints.check_like(name, tensors[name], (own | momenta)[name])
        posterior = posteriors.unpack(manifest["posterior"], packed, params)
        if type(posterior) is not type(state.posterior):
            raise CheckpointError(f"its posterior is a {posteriors.kind_of(posterior)}")
    except CheckpointError as error:
        raise CheckpointError(f"{folder} does not fit this recipe's model: {error}; delete it to start over") from error
    for name, tensor in own.items():
        tensor.copy_(tensors[name])
    for name, p in momenta.items():
        if name in tensors:
            momentum = torch.empty_like(p, requires_grad=False).copy_(tensors[name])
            state.optimizer.state[p]["momentum_buffer"] = momentum
    state.posterior, state.epoch = posterior, manifest["epoch"]
    return manifest["log"]


def remove_state(folder: Path) -> None:
    """Deletes the checkpoint of a member that is finished."""
    shutil.rmtree(folder, ignore_errors=True)
