"""A whole ensemble by a recipe, member by member: each a job of its own, or each on several processes at once.

The second is `torchrun --nproc-per-node 4 --no-python bacs train ...`, on GPUs or CPU cores.
"""

import gc
import os
from contextlib import nullcontext
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from torch import distributed

from bacs.data.locate import data_root
from bacs.engine import HERE, Place
from bacs.errors import RecipeError
from bacs.training import progress, run_folder
from bacs.training.curves import check_tensorboard
from bacs.training.loop import check_collection
from bacs.training.member import MemberJob, build, datasets, train_member
from bacs.training.recipe import TrainingRecipe


def train(
    recipe: TrainingRecipe,
    out: str | Path,
    *,
    members: list[int] | None = None,
    place: Place = HERE,
    data_dir: str | Path | None = None,
    download: bool = False,
    checkpoint_every: int = 1,
    use_tensorboard: bool = False,
    console: Console | None = None,
) -> list[dict[str, Any]]:
    """What is known of each trained member; `bacs.load(out)` has the members themselves, at any time.

    Members that are finished are left alone, an unfinished one goes on after its last checkpoint: calling again with
    the same arguments is how a run is resumed.

    Args:
        members: which of the recipe's members to train here; all if None.
        place: where members train, each as a job of its own.
        download: fetch the data set if it is missing.
        checkpoint_every: epochs between checkpoints.
    """
    run = Path(out)
    chosen = list(range(recipe.members)) if members is None else members
    for index in chosen:
        if not 0 <= index < recipe.members:
            raise ValueError(f"members must be 0..{recipe.members - 1}, got {index}")
    if checkpoint_every < 1:
        raise ValueError(f"checkpoint_every must be at least 1, got {checkpoint_every}")
    place.check()
    if use_tensorboard:
        check_tensorboard()
    root = data_root(data_dir)
    check_recipe(recipe, root, download=download)
    run_folder.open_run(run, recipe)
    todo = [index for index in chosen if not run_folder.is_finished(run, index)]
    jobs = [
        MemberJob(
            recipe, index, run.absolute(), root.absolute(), place.device_of(turn), checkpoint_every, use_tensorboard
        )
        for turn, index in enumerate(todo)
    ]
    with progress.show_progress(run, todo, recipe.epochs, console or Console(stderr=True)):
        place.run(train_member, jobs)
    return [run_folder.read_about(run, index) for index in chosen]


def check_recipe(recipe: TrainingRecipe, data_dir: Path, *, download: bool = False) -> None:
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


def is_distributed() -> bool:
    """Whether torchrun started this process as one of several."""
    return int(os.environ.get("WORLD_SIZE", "1")) > 1 and "MASTER_ADDR" in os.environ


def train_distributed(
    recipe: TrainingRecipe,
    out: Path,
    *,
    members: list[int] | None,
    data_dir: Path | None,
    device: str,
    console: Console,
) -> None:
    """Trains one member after another, each on all processes; the first process writes and reports."""
    on_gpu = device.startswith("cuda")
    if on_gpu:
        device = f"cuda:{os.environ['LOCAL_RANK']}"
        torch.cuda.set_device(device)
    root = data_root(data_dir)
    check_recipe(recipe, root)
    ours = not distributed.is_initialized()
    if ours:
        # The first process alone refreshes statistics and scores a member; the others wait for it that long.
        distributed.init_process_group("nccl" if on_gpu else "gloo", timeout=timedelta(hours=12))
    try:
        leads = distributed.get_rank() == 0
        if leads:
            run_folder.open_run(out, recipe)
        distributed.barrier()
        chosen = list(range(recipe.members)) if members is None else members
        todo = [index for index in chosen if not run_folder.is_finished(out, index)]
        distributed.barrier()
        jobs = [MemberJob(recipe, index, out, root, device) for index in todo]
        with progress.show_progress(out, todo, recipe.epochs, console) if leads else nullcontext():
            for job in jobs:
                train_member(job)
        distributed.barrier()
    finally:
        if ours:
            gc.collect()  # DistributedDataParallel lives in a cycle, and what holds the group aborts at exit
            distributed.destroy_process_group()
