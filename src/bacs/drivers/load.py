"""`bacs.load`: whatever `save` wrote."""

import logging
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from bacs import checkpoints, posteriors
from bacs.adaptation.statistics import Statistics
from bacs.agreement import Reference
from bacs.architecture import Architecture, ModelSource, build
from bacs.control import GuardedStream
from bacs.engine import Place
from bacs.ensemble import Ensemble, Member, untied
from bacs.errors import CheckpointError
from bacs.methods.online import Stream
from bacs.methods.settings import Settings
from bacs.preprocessing import Preprocessing

logger = logging.getLogger(__name__)


def load(path: str | Path, *, model: ModelSource | None = None, device: torch.device | str | None = None) -> Any:
    """The `Ensemble` or `Stream` saved in a folder.

    `model` names the class of models that bacs does not know: an import path, the class, or a function. It is
    called with the arguments that the checkpoint holds, once per member. An ensemble is on the processor and a stream
    goes on where it ran, unless `device` names another place.
    """
    if device is not None:
        Place(device=str(device)).check()
    manifest, tensors = checkpoints.read(path)
    if manifest["kind"] == "run":
        return _placed(_gathered(Path(path), manifest, model), device)
    try:
        ensemble = _ensemble(manifest, tensors, model)
        if manifest["kind"] == "ensemble":
            return _placed(ensemble, device)
        if manifest["kind"] == "stream":
            about = manifest["stream"]
            start = about.get("start", about)  # of version 0.1: nothing could be changed on the way
            place = about.get("device") if device is None else device
            if place is not None:
                Place(device=str(place)).check()
            how = {"compiled": about.get("compile", False), "seed": about.get("seed", 0)}
            kind = Stream
            if "watch" in about:
                kind, how = GuardedStream, how | {name: about["watch"][name] for name in ("guard", "chooses")}
            stream = kind(ensemble, start["method"], Settings(**start["settings"]), place, **how)
            stream.resume(about, tensors)
            return stream
    except KeyError as error:
        raise CheckpointError(f"{path} is not complete: its manifest lacks {error}") from error
    raise CheckpointError(f"{path} holds a {manifest['kind']!r}; this version knows ensemble, stream and run")


def _placed(ensemble: Ensemble, device: torch.device | str | None) -> Ensemble:
    if device is not None:
        for member in ensemble.members:
            member.model.to(device)
    return ensemble


def _gathered(run: Path, manifest: dict[str, Any], source: ModelSource | None) -> Ensemble:
    """The ensemble of a training run's finished members, each a saved ensemble in a folder of its own."""
    folders = member_folders(run)
    planned = [f"member-{index}" for index in range(manifest.get("recipe", {}).get("members", 0))]
    if missing := sorted(set(planned) - {folder.name for folder in folders}):
        logger.warning("%s has %d of its %d members: no %s", run, len(folders), len(planned), ", ".join(missing))
    parts = [load(folder, model=source) for folder in folders]
    return Ensemble([member for part in parts for member in part.members], class_names=parts[0].class_names)


def member_folders(run: Path) -> list[Path]:
    """The folders of a training run's finished members, in their order."""
    folders = [folder for folder in run.glob("member-*") if (folder / checkpoints.MANIFEST).exists()]
    if not folders:
        raise CheckpointError(f"{run} is a training run without a finished member yet; go on with bacs train")
    return sorted(folders, key=lambda folder: (len(folder.name), folder.name))  # member-10 after member-9


def _ensemble(manifest: dict[str, Any], tensors: dict[str, dict[str, Tensor]], source: ModelSource | None) -> Ensemble:
    size = manifest.get("image_size")  # of runs whose members were stored before preprocessing had a size
    members = [
        _member(entry, tensors[f"member-{index}"], source, size) for index, entry in enumerate(manifest["members"])
    ]
    mask = manifest["class_mask"]
    return Ensemble(
        members,
        class_names=manifest["class_names"],
        class_mask=None if mask is None else torch.tensor(mask),
        statistics=Statistics.from_json(manifest),
        temperature=manifest.get("temperature", 1.0),
        reference=None if manifest.get("reference") is None else Reference(**manifest["reference"]),
        adaptation=manifest["adaptation"],
    )


def _member(
    entry: dict[str, Any], tensors: dict[str, Tensor], source: ModelSource | None, size: list[int] | None
) -> Member:
    architecture = Architecture(**entry["architecture"])
    model = build(architecture, source)
    weights = {key.removeprefix("model/"): t for key, t in tensors.items() if key.startswith("model/")}
    _fill(model, weights, architecture.name)
    state = {key.removeprefix("posterior/"): t for key, t in tensors.items() if key.startswith("posterior/")}
    preprocessing = None if entry["preprocessing"] is None else _preprocessing({"size": size} | entry["preprocessing"])
    posterior = posteriors.unpack(entry["posterior"], state, dict(model.named_parameters()))
    return Member(model, posterior, preprocessing, architecture)


def _preprocessing(values: dict[str, Any]) -> Preprocessing:
    """As it was saved; what an older version did not write means what it did then."""
    try:
        return Preprocessing.from_json(values)
    except (ValueError, TypeError) as error:
        raise CheckpointError(f"the checkpoint's preprocessing cannot be used: {error}") from error


@torch.no_grad()
def _fill(model: torch.nn.Module, weights: dict[str, Tensor], name: str) -> None:
    """Copies saved weights into a new model, in the type they were saved in."""
    own = untied(model)
    if own.keys() != weights.keys():
        differing = sorted(own.keys() ^ weights.keys())
        raise CheckpointError(f"the checkpoint does not fit {name}: {differing[0]!r} is on one side only")
    for key, tensor in weights.items():
        if own[key].shape != tensor.shape:
            raise CheckpointError(
                f"the checkpoint does not fit {name}: {key!r} is {tuple(tensor.shape)}, "
                f"the model's is {tuple(own[key].shape)}"
            )
    for key, tensor in own.items():
        tensor.data = weights[key].clone()  # and not a copy into it: types may differ from layer to layer
    model.eval()
