"""`bacs train`: an ensemble by a recipe."""

import os
import sys
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from bacs.cli.arguments import Flag, takes
from bacs.cli.place import HERE, Where
from bacs.errors import BacsError
from bacs.progress import say

if TYPE_CHECKING:
    from rich.console import Console


def train(
    recipe: Annotated[Path, tyro.conf.Positional, takes("RECIPE")],
    *,
    out: Annotated[Path, takes("DIR")],
    members: Annotated[tuple[int, ...], takes("N ...")] = (),
    where: tyro.conf.OmitArgPrefixes[Where] = HERE,
    data_dir: Annotated[Path | None, takes("DIR")] = None,
    download: Flag = False,
    checkpoint_every: int = 1,
    tensorboard: Flag = False,
    json: Flag = False,
) -> int:
    """Train the members of an ensemble by a recipe. The same command goes on with what was interrupted.

    Example: bacs train cifar10-small --out runs/cifar10

    Args:
        recipe: How to train: the name of one that bacs recipes lists, or a TOML file.
        out: Folder of the run. bacs.load(out) opens the members that are finished, at any time.
        members: Which members to train here, such as 0 1 2; all by default. Copy finished folders together.
        data_dir: Folder of the data sets; by default the environment variable BACS_DATA.
        download: Fetch the data set if it is missing.
        checkpoint_every: Epochs between checkpoints.
        tensorboard: Also write event files for TensorBoard into the run's folder.
        json: Print the scores of the finished members as JSON to standard output.
    """
    from rich.console import Console

    from bacs.files import check_folder
    from bacs.training import recipe as recipes
    from bacs.training import train as training

    console = Console(stderr=True)
    plan = recipes.read(recipe)
    chosen = list(members) or None
    check_folder("out", out)
    try:
        if training.is_distributed():
            how = {"data_dir": data_dir, "device": where.device, "console": console}
            training.train_distributed(plan, out, members=chosen, **how)
        else:
            training.train(
                plan,
                out,
                members=chosen,
                place=where.place(),
                data_dir=data_dir,
                download=download,
                checkpoint_every=checkpoint_every,
                use_tensorboard=tensorboard,
                console=console,
            )
    except KeyboardInterrupt:
        say(
            f"\nStopped. The same command goes on from the last checkpoint; finished members are in {out}:\n"
            f"  {' '.join(['bacs', *sys.argv[1:]])}",
            console,
        )
        return 130
    if os.environ.get("RANK", "0") == "0":
        print_scores(out, plan.members, console)
        if json:
            print(dumps(read_scores(out, plan.members)))
    return 0


def read_scores(out: Path, members: int) -> list[dict[str, Any]]:
    """Number and scores of the finished members."""
    from bacs.training import run_folder

    done = [index for index in range(members) if run_folder.is_finished(out, index)]
    return [{"member": index, "scores": run_folder.read_about(out, index).get("scores", {})} for index in done]


def print_scores(out: Path, members: int, console: "Console") -> None:
    """Prints the scores of the finished members and draws their curves."""
    from bacs.training import run_folder
    from bacs.training.curves import draw_curves

    done = read_scores(out, members)
    logs = {member["member"]: run_folder.read_about(out, member["member"]).get("log", []) for member in done}
    for member in done:
        for where, values in member["scores"].items():
            text = "  ".join(f"{name} {value:.4f}" for name, value in values.items())
            console.print(f"member {member['member']}  {where:<12}  {text}", markup=False, highlight=False)
    console.print(
        f"{len(done)} of {members} members are finished: bacs.load({str(out)!r})", markup=False, highlight=False
    )
    try:
        draw_curves(logs, out / "curves.png")
    except BacsError as error:
        console.print(str(error), markup=False, highlight=False)
    else:
        console.print(f"training curves: {out / 'curves.png'}", markup=False, highlight=False)
