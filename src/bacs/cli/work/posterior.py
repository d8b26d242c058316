"""The work of `bacs posterior`: check what is asked for, make the members, and describe each."""

import math
import warnings
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from bacs import checkpoints as files
from bacs.data.folder import CENTRAL_CROP
from bacs.data.image_set import ImageSet
from bacs.ensemble import Ensemble, Member
from bacs.errors import RunError
from bacs.files import check_writable
from bacs.metrics import accuracy
from bacs.models import classes_of
from bacs.posteriors import kind_of, precision_quantiles
from bacs.posteriors.fisher_diag import FisherDiag, prior_share
from bacs.pretrained import source_images
from bacs.pretrained.fisher import prior_warning
from bacs.pretrained.make import Plan, count_images, kind_for, make

SCORED = 1000  # source images on which the accuracy of each new member is measured


def size_arguments(size: int | None) -> dict[str, Any]:
    """Arguments of `Preprocessing` that bring later pictures to this size as those of a folder are brought to it."""
    return {"size": (size, size), "crop": CENTRAL_CROP, "interpolation": "bicubic"} if size is not None else {}


def check_used(members: list[Member], plan: Plan) -> None:
    """Raises for wishes that nothing would come of, since a posterior that is there is kept, or nothing is trained."""
    kinds = {kind_for(member, plan) for member in members}
    if kinds == {"own"} and plan.members_from != "heads" and plan.images is not None:
        raise ValueError(
            "images must be left out: the checkpoint has a posterior, which is kept; --kind fisher or swag makes a new "
            "one of them"
        )
    trained = {"steps": "swag" in kinds or plan.members_from == "heads", "learning_rate": "swag" in kinds}
    for name, is_used in trained.items():
        if getattr(plan, name) is not None and not is_used:
            hint = "" if name == "learning_rate" else ", --members-from heads too"
            raise ValueError(f"{name} must be left out: nothing is trained with it; --kind swag trains{hint}")


def check_new_folder(out: Path) -> None:
    """Raises before any work is done if the ensemble could not go there."""
    if (out / files.MANIFEST).exists():
        raise RunError(f"{out} holds a saved {files.read_manifest(out)['kind']} already; choose a new folder")
    if out.is_file() or (out.is_dir() and any(out.iterdir())):
        raise RunError(f"{out} holds something else; choose a new folder")
    check_writable("out", out)


def check_data(members: list[Member], source_set: ImageSet) -> None:
    """Raises for images and labels that do not fit a member, before any other member is made."""
    few = source_images.sample_images(source_set.images, 2, 0)
    for member in members:
        Ensemble([member]).check_inputs(few, 2)
        classes = classes_of(member.model)
        if source_set.labels is not None and classes is not None and source_set.labels.max() >= classes:
            raise ValueError(
                f"data must be of the {classes} classes of the model, {source_set.name} has labels up to "
                f"{source_set.labels.max()}"
            )


def make_all(
    members: list[Member], source_set: ImageSet, plan: Plan, console: Console
) -> tuple[list[Member], list[dict[str, Any]]]:
    """The new members, and a description of each."""
    columns = TextColumn("source images"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    done, about = [], []
    scored = source_images.sample_images(source_set.images, SCORED, plan.seed)
    labels = source_set.labels
    if labels is not None:
        labels = labels[source_images.sample_positions(len(source_set), SCORED, plan.seed).numpy()]
    with Progress(*columns, console=console) as progress, warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # printed below, once per member
        task = progress.add_task("", total=sum(count_images(member, source_set, plan) for member in members))
        for number, member in enumerate(members):
            made, notes = make(member, source_set, plan, number, lambda count: progress.advance(task, count))
            for each in made:
                right, guess = None, None
                if labels is not None:
                    rows = Ensemble([each]).predict(scored)
                    right = accuracy(rows, labels)
                    guess = guessing_warning(right, *rows.shape)
                scores = {"member": len(about), "source_accuracy": right, "guessing": guess}
                about.append(scores | notes | describe_posterior(each))
            done += made
    for entry in about:
        for said in filter(None, (entry["guessing"], entry.get("warning"))):
            console.print(f"member {entry['member']}: {said}", highlight=False, markup=False)
    return done, about


def guessing_warning(right: float, images: int, classes: int) -> str | None:
    """What to say of a member that is right no more often than chance, give or take two deviations of it."""
    chance = 1 / classes
    if right > chance + 2 * math.sqrt(chance * (1 - chance) / images):
        return None
    return (
        f"source accuracy {right:.2f} is that of guessing among {classes} classes: mean, std (both on the scale 0..1), "
        "size, channel order, model or labels are not those of training"
    )


def describe_posterior(member: Member) -> dict[str, Any]:
    """How wide a member's posterior is, and what posterior_weight is relative to."""
    state = member.posterior
    values: dict[str, Any] = {
        "kind": kind_of(state),
        "precision": precision_quantiles(state)._asdict(),
        "posterior_scale": member.posterior_scale,
    }
    if isinstance(state, FisherDiag):
        values |= {"prior_share": prior_share(state), "warning": prior_warning(state)}
    return values


def format_member(entry: dict[str, Any]) -> str:
    """A member's description as one line."""
    low, median, high = entry["precision"].values()
    parts = [f"member {entry['member']}  {entry['kind']}  precision {low:.3g} / {median:.3g} / {high:.3g}"]
    if entry["source_accuracy"] is not None:
        parts.append(f"source accuracy {entry['source_accuracy']:.3f}")
    if "temperature" in entry:
        parts.append(f"temperature {entry['temperature']:.3g}")
    parts.append(f"scale {entry['posterior_scale']:.3g}")
    return "  ".join(parts)
