"""`train`: a whole ensemble by a recipe, member by member, on this machine or a cluster."""

from pathlib import Path
from typing import Any

from rich.console import Console

from bacs.data.locate import data_root
from bacs.engine import HERE, Place
from bacs.errors import RecipeError
from bacs.training import folder, tensorboard, watch
from bacs.training.loop import check_collection
from bacs.training.member import MemberJob, build, datasets, train_member
from bacs.training.recipe import Recipe


def train(
    recipe: Recipe,
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
        tensorboard.check()
    root = data_root(data_dir)
    check(recipe, root, download=download)
    folder.open_run(run, recipe)
    todo = [index for index in chosen if not folder.is_finished(run, index)]
    jobs = [
        MemberJob(
            recipe,
            index,
            run.absolute(),
            root.absolute(),
            place.device_of(turn),
            checkpoint_every,
            use_tensorboard,
        )
        for turn, index in enumerate(todo)
    ]
    with watch.watching(run, todo, recipe.epochs, console or Console(stderr=True)):
        place.run(train_member, jobs)
    return [folder.about(run, index) for index in chosen]


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
