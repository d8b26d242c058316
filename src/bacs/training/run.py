"""`train`: a whole ensemble by a recipe, member by member, on this machine or a cluster."""

import os
from pathlib import Path
from typing import Any

import torch
from rich.console import Console

from bacs import engine as engines
from bacs.data.locate import data_root
from bacs.errors import RecipeError, RunError
from bacs.training import folder, tensorboard, watch
from bacs.training.loop import check_collection
from bacs.training.member import MemberJob, build, datasets, train_member
from bacs.training.recipe import Recipe


def train(
    recipe: Recipe,
    out: str | Path,
    *,
    members: list[int] | None = None,
    engine: str = "local",
    workers: int | None = None,
    threads: int = 1,
    address: str | None = None,
    data_dir: str | Path | None = None,
    download: bool = False,
    device: str = "cpu",
    checkpoint_every: int = 1,
    use_tensorboard: bool = False,
    console: Console | None = None,
) -> list[dict[str, Any]]:
    """What is known of each trained member; `bacs.load(out)` has the members themselves, at any time.

    Members that are finished are left alone, an unfinished one goes on after its last checkpoint: calling again with
    the same arguments is how a run is resumed.

    Args:
        members: which of the recipe's members to train here; all if None.
        engine: `local` or `ray`; see `bacs.engine.run`.
        workers: members that train at the same time; None: one for every core, or every GPU.
        threads: of torch in each of them. With 1, runs agree bit for bit and a busy machine does no harm.
        download: fetch the data set if it is missing.
        device: `cpu` or `cuda`; members are spread over the GPUs of this machine.
        checkpoint_every: epochs between checkpoints.
    """
    place = Path(out)
    chosen = list(range(recipe.members)) if members is None else members
    for index in chosen:
        if not 0 <= index < recipe.members:
            raise ValueError(f"members must be 0..{recipe.members - 1}, got {index}")
    for name, value in (("checkpoint_every", checkpoint_every), ("workers", workers), ("threads", threads)):
        if value is not None and value < 1:
            raise ValueError(f"{name} must be at least 1, got {value}")
    if use_tensorboard:
        tensorboard.check()
    gpus = check_device(device, engine)
    root = data_root(data_dir)
    check(recipe, root, download=download)
    folder.open_run(place, recipe)
    todo = [index for index in chosen if not folder.is_finished(place, index)]
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    workers = max(1, min(workers or gpus or cores, len(todo)))
    jobs = [
        MemberJob(
            recipe,
            index,
            place.absolute(),
            root.absolute(),
            f"cuda:{turn % gpus}" if gpus else device,
            checkpoint_every,
            use_tensorboard,
        )
        for turn, index in enumerate(todo)
    ]
    with watch.watching(place, todo, recipe.epochs, console or Console(stderr=True)):
        engines.run(
            train_member,
            jobs,
            engine=engine,
            workers=workers,
            threads=threads,
            gpus=1 if device.startswith("cuda") else 0,
            address=address,
        )
    return [folder.about(place, index) for index in chosen]


def check_device(device: str, engine: str) -> int:
    """How many GPUs of this machine members are spread over; raises for a device that there is not."""
    try:
        kind = torch.device(device)
    except RuntimeError:
        raise ValueError(f"device must be cpu or cuda, got {device!r}") from None
    if kind.type != "cuda" or engine != "local":  # Ray gives each job a GPU of its own
        return 0
    if not torch.cuda.is_available():
        raise RunError(f"device {device!r} is not available: it needs a GPU and a torch built for CUDA")
    return torch.cuda.device_count() if kind.index is None else 0


def check(recipe: Recipe, data_dir: Path, *, download: bool = False) -> None:
    """Raises before any work is done if the data are missing, or would not give a model and its posterior."""
    train_set, _ = datasets(recipe, data_dir, download=download)
    try:
        build(recipe, 0, train_set)
    except (TypeError, ValueError) as error:
        raise RecipeError(f"the model cannot be built: {error}") from error
    try:
        check_collection(recipe.settings(seed=0), len(train_set))
    except ValueError as error:
        raise RecipeError(str(error)) from error
