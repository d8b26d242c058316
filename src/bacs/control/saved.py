"""What a saved stream that guards itself says, and whether the tensors beside it are what it speaks of."""

from collections.abc import Sequence
from typing import Annotated, Any, TypedDict

import torch
from torch import Tensor

from bacs.adaptation.loop import Mover
from bacs.adaptation.statistics import reference_of
from bacs.checkpoints import check_like
from bacs.control.candidates import WEIGHTS
from bacs.control.class_runs import MEMORY as BATCHES
from bacs.control.gather import CAPACITY
from bacs.control.signals import MEMORY, NAMES
from bacs.errors import CheckpointError
from bacs.methods import live
from bacs.methods.observed import SavedStream
from bacs.schema import Count, Rule

Classes = Annotated[int, Rule("a whole number from 0 to 10,000,000", lambda value: 0 <= value <= 10_000_000)]
Draws = Annotated[int, Rule("a whole number from 0 to a million million", lambda value: 0 <= value <= 10**12)]


class SavedLooks(TypedDict):
    classes: Classes
    when: list[int]
    shares: list[list[float]]
    confidences: list[dict[str, float]]


class SavedGathered(TypedDict):
    views: Count
    new: Count
    draws: Draws
    asked: Count


class SavedWatch(TypedDict):
    settled: Count
    refused: bool
    halved: bool
    holds: bool
    credit: float
    few: bool
    runs: bool
    mixed: list[float]
    images: Draws
    asked: Draws
    picked: Annotated[float, Rule("a number from 0 to 1", lambda value: 0 <= value <= 1)]
    said: list[list[float]]
    guard: bool
    chooses: bool
    looks: SavedLooks
    gathered: SavedGathered
    aside: bool


class SavedGuardedStream(SavedStream):
    watch: SavedWatch


def check_saved(
    kept: dict[str, Any], tensors: dict[str, dict[str, Tensor]], movers: Sequence[Mover], classes: int | None
) -> None:
    """Raises unless there are the tensors that `kept`, a SavedWatch, speaks of, of their shapes, and no others."""
    looks = kept["looks"]
    if looks["when"] and classes not in (None, looks["classes"]):
        raise CheckpointError(f"the stream's looks must be of {classes} classes, got {looks['classes']}")
    watched = dict(tensors.get("live-watch", {}))
    signals = {name: watched.pop(name) for name in ("usual", "fresh") if name in watched}
    _check_signals(signals)
    _check_counts(watched.pop("counts", None), classes)
    said = {name: watched.pop(name) for name in list(watched) if name.startswith("said/")}
    _check_said(kept["said"], said, looks["classes"])
    _check_looks(looks, watched)
    _check_gathered(kept["gathered"], tensors.get("live-gathered", {}), movers)
    for index, mover in enumerate(movers):
        if (f"live-aside-{index}" in tensors) != kept["aside"]:
            raise CheckpointError(f"the stream's weights that were set aside do not fit: member {index}")
        if kept["aside"]:
            live.check_weights(mover, tensors[f"live-aside-{index}"])


def _check_signals(found: dict[str, Tensor]) -> None:
    for name, tensor in found.items():
        batches, signals = tensor.shape if name == "usual" and tensor.ndim == 2 else (1, len(NAMES))
        if name == "fresh" and tensor.ndim == 2:
            signals = len(tensor)
        if tensor.dtype != torch.float64 or tensor.ndim != 2 or signals != len(NAMES) or not 0 < batches <= MEMORY:
            raise CheckpointError(f"the stream's {name!r} must be {len(NAMES)} float64 signals, got {tensor.shape}")


def _check_counts(counts: Tensor | None, classes: int | None) -> None:
    if counts is None:
        return
    fits = counts.dtype == torch.int64 and counts.ndim == 2 and 0 < len(counts) <= BATCHES
    if not fits or classes not in (None, counts.shape[1]) or int(counts.min()) < 0:
        raise CheckpointError("the stream's 'counts' must be int64 numbers of images, of each class and batch")


def _check_said(about: list[list[float]], group: dict[str, Tensor], classes: int) -> None:
    _check_names(group, [f"said/{i}/{j}" for i, numbers in enumerate(about) for j in range(len(numbers))])
    if not all(len(numbers) == len(about[0]) > 1 for numbers in about):
        raise CheckpointError("the stream's short questions must have an answer of the same two or three each")
    for name, labels in group.items():
        first = group[f"{name.rpartition('/')[0]}/0"]
        if labels.dtype != torch.int64 or labels.ndim != 2 or not labels.numel() or labels.shape != first.shape:
            raise CheckpointError(f"the stream's {name!r} must be int64 labels [voters, images]")
        if len(labels) != len(group["said/0/0"]) or int(labels.min()) < 0 or int(labels.max()) >= classes:
            raise CheckpointError(f"the stream's {name!r} must be of as many voters, and of {classes} classes")


def _check_looks(about: SavedLooks, group: dict[str, Tensor]) -> None:
    if not len(about["when"]) == len(about["shares"]) == len(about["confidences"]):
        raise CheckpointError("the stream's looks must have a place, shares and confidences each")
    expected = []
    for i, (shares, confidences) in enumerate(zip(about["shares"], about["confidences"], strict=True)):
        if not (len(shares) > 1 and shares[0] == 0 and set(shares) <= set(WEIGHTS)) or sorted(set(shares)) != shares:
            raise CheckpointError(f"the stream's looks must be at shares among {WEIGHTS}, got {shares}")
        home, drawn = [f"home-{r}" for r in shares], [f"drawn-{r}" for r in shares if r > 0]
        asked = {*home, *(drawn if drawn[0] in confidences else []), *({"away"} & confidences.keys())}
        if confidences.keys() != asked:
            raise CheckpointError(f"the stream's look {i} must have a confidence for each share")
        expected += [f"looks/{i}/{key}" for key in confidences]
    trusts = {f"{name}/trust": name for name in expected if "/home-" in name}
    _check_names(group, [*expected, *trusts])
    for name, of in trusts.items():
        trust = group[name]
        probable = trust.dtype == torch.float64 and bool(((trust >= 0) & (trust < 1 + 1e-6)).all())
        if not probable or trust.shape != group[of].shape[1:]:
            raise CheckpointError(f"the stream's {name!r} must be a float64 number from 0 to 1 per image")
    for name in expected:
        place = name.rpartition("/")[0]
        first = next(
            other for other in expected if other.startswith(f"{place}/{'drawn' if '/drawn-' in name else 'home'}-")
        )
        labels, voters = group[name], group["looks/0/home-0.0"].shape[:1]
        if labels.dtype != torch.int64 or labels.ndim != 2 or not labels.numel() or labels.shape != group[first].shape:
            raise CheckpointError(f"the stream's {name!r} must be int64 labels [voters, images]")
        if "/drawn-" not in name and labels.shape[:1] != voters:
            raise CheckpointError(f"the stream's {name!r} must be of as many voters as the first look")
        if int(labels.min()) < 0 or int(labels.max()) >= about["classes"]:
            raise CheckpointError(f"the stream's {name!r} must have labels of {about['classes']} classes")


def _check_gathered(about: SavedGathered, group: dict[str, Tensor], movers: Sequence[Mover]) -> None:
    if about["views"] not in (0, 1, len(movers)):
        raise CheckpointError(f"the stream's memory must have a view per member or one for all, got {about['views']}")
    views = [f"views/{i}" for i in range(about["views"])]
    mixtures: dict[str, Tensor] = {}
    if any(name.startswith("mixtures/") for name in group):
        for i, mover in enumerate(movers):
            for j, (mean, variance) in enumerate(reference_of(mover.model)):
                mixtures |= {f"mixtures/{i}/{j}/mean": mean, f"mixtures/{i}/{j}/variance": variance}
    _check_names(group, [*views, *(["labels"] if views else []), *mixtures])
    for name, own in mixtures.items():
        check_like(name, group[name], own)
    if not views:
        return
    labels = group["labels"]
    fits = labels.dtype == torch.int64 and labels.ndim == 1 and 0 < len(labels) <= CAPACITY
    if not fits or int(labels.min()) < 0 or int(labels.max()) > 10_000_000:
        raise CheckpointError("the stream's memory must have an int64 label per image")
    for name in views:
        if not group[name].ndim or len(group[name]) != len(labels):
            raise CheckpointError(f"the stream's {name!r} must be as many images as it has labels, {len(labels)}")


def _check_names(group: dict[str, Any], expected: Sequence[str]) -> None:
    if differing := sorted(group.keys() ^ set(expected)):
        raise CheckpointError(f"the stream does not fit what it says of itself: {differing[0]!r} is on one side only")
