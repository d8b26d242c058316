"""`bacs.load`: whatever `save` wrote."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from bacs import checkpoints, posteriors
from bacs.adaptation.statistics import Statistics
from bacs.agreement import Reference
from bacs.architecture import Architecture, ModelSource
from bacs.control import GuardedStream
from bacs.drivers.manifest import read_manifest
from bacs.drivers.rebuild import rebuild
from bacs.engine import Place
from bacs.ensemble import Ensemble, Member
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
    folder = Path(path)
    manifest = read_manifest(folder)
    if manifest["kind"] == "run":
        return _move_to(_load_run(folder, manifest, model), device)
    tensors = checkpoints.read_tensors(folder, manifest)
    _check_names(folder, manifest, tensors)
    ensemble = _ensemble(manifest, tensors, model)
    if manifest["kind"] == "ensemble":
        return _move_to(ensemble, device)
    return _stream(ensemble, manifest["stream"], tensors, device)


def _check_names(folder: Path, manifest: dict[str, Any], tensors: dict[str, Any]) -> None:
    """Raises unless there is a group of tensors for each member, and none that nobody would read."""
    count = len(manifest["members"])
    needed = [f"member-{index}" for index in range(count)]
    allowed = []
    if manifest["kind"] == "stream":
        needed += [f"live-{index}" for index in range(count)]
        aside = [f"live-aside-{index}" for index in range(count)]
        allowed = ["live-recent", "live-watch", "live-gathered", *aside]
    for name in needed:
        if name not in tensors:
            raise CheckpointError(f"{folder} is not complete: its manifest names no file {name!r}")
    for name in tensors:
        if name not in (*needed, *allowed):
            raise CheckpointError(f"{folder} has a file {name!r} that no {manifest['kind']} has")


def _stream(
    ensemble: Ensemble,
    about: dict[str, Any],
    tensors: dict[str, dict[str, Tensor]],
    device: torch.device | str | None,
) -> Stream:
    """A stream that goes on where it was saved."""
    start = about.get("start", about)  # of version 0.1: nothing could be changed on the way
    with _blaming_file("stream"):
        place = about.get("device") if device is None else device
        if place is not None:
            Place(device=str(place)).check()
        how = {"compiled": about.get("compile", False), "seed": about.get("seed", 0)}
        kind: type[Stream] = Stream
        if "watch" in about:
            kind, how = GuardedStream, how | {name: about["watch"][name] for name in ("guard", "chooses")}
        stream = kind(ensemble, start["method"], Settings(**start["settings"]), place, **how)
        stream.resume(about, tensors)
    return stream


@contextmanager
def _blaming_file(what: str) -> Iterator[None]:
    """Turns what a value of the file did wrong into an error of the file."""
    try:
        yield
    except (ValueError, TypeError) as error:
        raise CheckpointError(f"the checkpoint's {what} cannot be used: {error}") from error


def _move_to(ensemble: Ensemble, device: torch.device | str | None) -> Ensemble:
    if device is not None:
        for member in ensemble.members:
            member.model.to(device)
    return ensemble


def _load_run(run: Path, manifest: dict[str, Any], source: ModelSource | None) -> Ensemble:
    """The ensemble of a training run's finished members, each a saved ensemble in a folder of its own."""
    folders = member_folders(run)
    planned = [f"member-{index}" for index in range(manifest["recipe"].get("members", 0))]
    if missing := sorted(set(planned) - {folder.name for folder in folders}):
        logger.warning("%s has %d of its %d members: no %s", run, len(folders), len(planned), ", ".join(missing))
    member_manifests(run)
    parts = [load(folder, model=source) for folder in folders]
    with _blaming_file("members"):
        return Ensemble([member for part in parts for member in part.members], class_names=parts[0].class_names)


def member_folders(run: Path) -> list[Path]:
    """The folders of a training run's finished members, in their order."""
    folders = [folder for folder in run.glob("member-*") if (folder / checkpoints.MANIFEST).exists()]
    if not folders:
        raise CheckpointError(f"{run} is a training run without a finished member yet; go on with bacs train")
    return sorted(folders, key=lambda folder: (len(folder.name), folder.name))  # member-10 after member-9


def member_manifests(run: Path) -> list[dict[str, Any]]:
    """The manifests of the same; a run in a run would have no end."""
    manifests = {folder: read_manifest(folder) for folder in member_folders(run)}
    for folder, manifest in manifests.items():
        if manifest["kind"] != "ensemble":
            raise CheckpointError(f"{folder} must be a saved ensemble to be a member, it is a {manifest['kind']}")
    return list(manifests.values())


def _ensemble(manifest: dict[str, Any], tensors: dict[str, dict[str, Tensor]], source: ModelSource | None) -> Ensemble:
    size = manifest.get("image_size")  # of runs whose members were stored before preprocessing had a size
    members = [
        _member(entry, tensors[f"member-{index}"], source, size) for index, entry in enumerate(manifest["members"])
    ]
    mask = manifest["class_mask"]
    with _blaming_file("manifest"):
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
    groups: dict[str, dict[str, Tensor]] = {"model": {}, "posterior": {}}
    for key, tensor in tensors.items():
        group, _, name = key.partition("/")
        if group not in groups:
            raise CheckpointError(f"a member has a tensor {key!r} that is neither of its model nor of its posterior")
        groups[group][name] = tensor
    architecture = Architecture(**entry["architecture"])
    model = rebuild(architecture, source, groups["model"])
    with _blaming_file("preprocessing"):  # what an older version did not write means what it did then
        given = entry["preprocessing"]
        preprocessing = None if given is None else Preprocessing.from_json({"size": size} | given)
    posterior = posteriors.unpack(entry["posterior"], groups["posterior"], dict(model.named_parameters()))
    return Member(model, posterior, preprocessing, architecture, entry.get("posterior_scale", 1.0))
