"""Several processes for one member, on GPUs or CPU cores: `torchrun --nproc-per-node 4 --no-python bacs train ...`."""

import gc
import os
from contextlib import nullcontext
from datetime import timedelta
from pathlib import Path

import torch
from rich.console import Console
from torch import distributed

from bacs.data.locate import data_root
from bacs.training import folder, watch
from bacs.training.member import MemberJob, train_member
from bacs.training.recipe import Recipe
from bacs.training.run import check


def launched() -> bool:
    """Whether torchrun started this process as one of several."""
    return int(os.environ.get("WORLD_SIZE", "1")) > 1 and "MASTER_ADDR" in os.environ


def train(
    recipe: Recipe,
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
    check(recipe, root)
    ours = not distributed.is_initialized()
    if ours:
        # The first process alone refreshes statistics and scores a member; the others wait for it that long.
        distributed.init_process_group("nccl" if on_gpu else "gloo", timeout=timedelta(hours=12))
    try:
        leads = distributed.get_rank() == 0
        if leads:
            folder.open_run(out, recipe)
        distributed.barrier()
        chosen = list(range(recipe.members)) if members is None else members
        todo = [index for index in chosen if not folder.is_finished(out, index)]
        distributed.barrier()
        jobs = [MemberJob(recipe, index, out, root, device) for index in todo]
        with watch.watching(out, todo, recipe.epochs, console) if leads else nullcontext():
            for job in jobs:
                train_member(job)
        distributed.barrier()
    finally:
        if ours:
            gc.collect()  # DistributedDataParallel lives in a cycle, and what holds the group aborts at exit
            distributed.destroy_process_group()
