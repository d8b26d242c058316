"""`bacs posterior`: posteriors and ensembles for checkpoints that were trained elsewhere."""

import json as json_format
import math
import warnings
from pathlib import Path
from typing import Any, Literal

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from tyro.conf import Positional

from bacs import checkpoints as files
from bacs.cli.source import with_size
from bacs.data import load as load_data
from bacs.data.folder import CENTRAL_CROP
from bacs.data.image_set import ImageSet
from bacs.engine import Place
from bacs.ensemble import Ensemble, Member
from bacs.errors import RunError
from bacs.metrics import accuracy
from bacs.models import classes_of
from bacs.posteriors import kind_of, posterior_weight_for, precision_quantiles
from bacs.posteriors.fisher_diag import FisherDiag, prior_share
from bacs.preprocessing import Preprocessing
from bacs.pretrained import source
from bacs.pretrained.checkpoint import open_checkpoint
from bacs.pretrained.fisher import too_little
from bacs.pretrained.make import AUGMENTATIONS, Plan, chosen, make, work
from bacs.writable import check_writable

SCORED = 1000  # source images on which each member is tried in the end


def posterior(
    checkpoints: Positional[tuple[Path, ...]],
    *,
    data: str,
    out: Path,
    kind: Literal["fisher", "swag"] | None = None,
    members: int = 1,
    from_samples: bool = False,
    from_restarts: bool = False,
    from_seeds: bool = False,
    images: int | None = None,
    steps: int = 300,
    collect_every: int = 10,
    learning_rate: float = 0.01,
    weight_decay: float = 5e-4,
    batch_size: int = 128,
    augment: Literal["none", "pad_crop_flip"] = "none",
    prior_precision: float = 1.0,
    expectation: Literal["exact", "sampled"] | None = None,
    temperature: float | None = None,
    model: str | None = None,
    model_arguments: tuple[str, ...] = (),
    mean: tuple[float, ...] = (),
    std: tuple[float, ...] = (),
    size: int | None = None,
    split: str = "train",
    data_dir: Path | None = None,
    download: bool = False,
    seed: int = 0,
    device: str = "cpu",
    json: bool = False,
) -> int:
    """Give trained checkpoints a posterior, or make an ensemble of one.

    Example: bacs posterior runs/mine --data cifar10 --out runs/mine-fisher

    Several checkpoints become one ensemble. One checkpoint becomes several members by draws from its posterior, by new
    last layers, or by short SWAG runs with different seeds; docs/posteriors.md compares them.

    Args:
        checkpoints: Saved ensembles, or weight files (.safetensors, .pt, .pth, .bin, .npz) together with --model.
        data: Source images: a data set ("cifar10") or the path of a folder or array file.
        out: Folder to save the ensemble in; bacs.load opens it.
        kind: fisher needs images alone; swag trains for some steps. By default what a checkpoint has, else fisher.
        members: How many members to make of each checkpoint; more than one needs one of the three ways.
        from_samples: By draws from the posterior.
        from_restarts: By new last layers, trained for some steps; then each gets its posterior.
        from_seeds: By short SWAG runs with different seeds.
        images: How many source images to use, chosen at random; by default 2,000 for fisher and all for swag.
        steps: Of training, for swag and restarts.
        collect_every: Steps between two iterates of swag.
        learning_rate: Of swag, constant; about that of the end of training.
        weight_decay: Of swag and restarts.
        batch_size: Of swag and restarts.
        augment: What swag and restarts do to images.
        prior_precision: Of fisher; training images times weight decay is the prior that training had.
        expectation: Of fisher over the classes; sampled is as many times as fast as there are classes, and noisier.
        temperature: Of draws; by default the highest that keeps 95 percent of the answers on source images.
        model: For weight files, a name in bacs.models or an import path; else the class of a saved ensemble.
        model_arguments: For weight files, such as depth=20 classes=10.
        mean: For weight files, of each channel on the scale 0..1.
        std: For weight files, of each channel.
        size: Crop and resize the images of a folder to this many pixels. Members keep the size of the images.
        split: Of the data set.
        data_dir: Where data sets lie; $BACS_DATA or ~/.cache/bacs/data by default.
        download: Fetch the data set if it is missing.
        seed: Which images, which draws, which order.
        device: cpu or cuda.
        json: Print what was made as JSON.
    """
    ways = {"samples": from_samples, "restarts": from_restarts, "seeds": from_seeds}
    plan = Plan(
        kind=kind,
        way=one_way(ways, members),
        members=members,
        images=images,
        steps=steps,
        collect_every=collect_every,
        learning_rate=learning_rate,
        weight_decay=weight_decay,
        batch_size=batch_size,
        augment=AUGMENTATIONS[augment],
        prior_precision=prior_precision,
        expectation=expectation,
        temperature=temperature,
        seed=seed,
    )
    if not checkpoints:
        raise ValueError("checkpoints must name at least one, got none")
    check_out(out)
    Place(device=device).check()
    preprocessing = Preprocessing(mean, std, **seen_at(size)) if mean or std else None
    opened = [
        open_checkpoint(path, model=model, arguments=model_arguments, preprocessing=preprocessing)
        for path in checkpoints
    ]
    inside = [member for ensemble in opened for member in ensemble.members]
    check_used(inside, plan)
    source_set = load_data(data, split=split, data_dir=data_dir, download=download, size=size)
    height, width = source_set.images.shape[1:3]
    inside = [with_size(member, (height, width)) for member in inside]
    for member in inside:
        member.model.to(device)
    console = Console(stderr=True)
    try:
        done, about = make_all(inside, source_set, plan, console)
    except KeyboardInterrupt:
        console.print("\nStopped. Nothing was written; the same command starts over.", highlight=False)
        return 130
    named = opened[0].class_names or source_set.classes or None
    if named is not None and classes_of(done[0].model) not in (None, len(named)):
        named = None  # the data show fewer classes than the model has, and do not say which
    made = Ensemble(done, class_names=named)
    origin = {"data": data, "images": len(source_set), "checkpoints": [str(path) for path in checkpoints]}
    files.write(out, made.describe() | {"posterior": origin | plan.as_json() | {"made": about}}, made.tensors())
    if json:
        print(json_format.dumps({"out": str(out), "members": about}))
    else:
        print("\n".join([*map(described, about), f"{out}: bacs.load({str(out)!r}) opens {len(done)} member(s)"]))
    return 0


def seen_at(size: int | None) -> dict[str, Any]:
    """How later pictures are to be brought to the size at which the posterior was made: as the folder's are."""
    return {"size": (size, size), "crop": CENTRAL_CROP, "interpolation": "bicubic"} if size is not None else {}


def check_used(members: list[Member], plan: Plan) -> None:
    """Raises for wishes that nothing would come of, since a posterior that is there is kept."""
    kinds = {chosen(member, plan) for member in members}
    what = "the checkpoint has a posterior, which is kept" if kinds == {"own"} else "kind swag has none"
    hint = "; --kind fisher makes a new one"
    if "fisher" not in kinds:
        for name, plain in (("expectation", None), ("prior_precision", 1.0)):
            if getattr(plan, name) != plain:
                raise ValueError(f"{name} must be left out: {what}{hint}")
    if kinds == {"own"} and plan.way != "restarts" and plan.images is not None:
        raise ValueError(f"images must be left out: {what}{hint}, --kind swag too")


def one_way(ways: dict[str, bool], members: int) -> str | None:
    """The way that was asked for to make several members of one."""
    chosen = [way for way, asked in ways.items() if asked]
    options = ", ".join(f"--from-{way}" for way in ways)
    if len(chosen) > 1:
        raise ValueError(f"only one of {options} can be used, got {len(chosen)}")
    if members > 1 and not chosen:
        raise ValueError(f"members must be 1 without one of {options}, got {members}")
    return chosen[0] if chosen else None


def check_out(out: Path) -> None:
    """Raises before any work is done if the ensemble could not go there."""
    if (out / files.MANIFEST).exists():
        raise RunError(f"{out} holds a saved {files.read_manifest(out)['kind']} already; choose a new folder")
    if out.is_file() or (out.is_dir() and any(out.iterdir())):
        raise RunError(f"{out} holds something else; choose a new folder")
    check_writable("out", out)


def make_all(
    members: list[Member], source_set: ImageSet, plan: Plan, console: Console
) -> tuple[list[Member], list[dict[str, Any]]]:
    """The new members, and what there is to say of each."""
    columns = TextColumn("source images"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    done, about = [], []
    scored = source.taken(source_set.images, SCORED, plan.seed)
    labels = source_set.labels
    if labels is not None:
        labels = labels[source.some(len(source_set), SCORED, plan.seed).numpy()]
    with Progress(*columns, console=console) as progress, warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # said below, for every member in its own words
        task = progress.add_task("", total=sum(work(member, source_set, plan) for member in members))
        for number, member in enumerate(members):
            made, notes = make(member, source_set, plan, number, lambda count: progress.advance(task, count))
            for each in made:
                right, guess = None, None
                if labels is not None:
                    rows = Ensemble([each]).predict(scored)
                    right = accuracy(rows, labels)
                    guess = guessing(right, *rows.shape)
                about.append({"member": len(about), "source_accuracy": right, "guessing": guess} | notes | scale(each))
            done += made
    for entry in about:
        for said in filter(None, (entry["guessing"], entry.get("warning"))):
            console.print(f"member {entry['member']}: {said}", highlight=False, markup=False)
    return done, about


def guessing(right: float, images: int, classes: int) -> str | None:
    """What to say of a member that is right no more often than chance, give or take two deviations of it."""
    chance = 1 / classes
    if right > chance + 2 * math.sqrt(chance * (1 - chance) / images):
        return None
    return (
        f"source accuracy {right:.2f} is that of guessing among {classes} classes: mean, std (both on the scale 0..1), "
        "size, channel order, model or labels are not those of training"
    )


def scale(member: Member) -> dict[str, Any]:
    """How wide a member's posterior is, and the posterior_weight at which adaptation feels it."""
    state = member.posterior
    values: dict[str, Any] = {
        "kind": kind_of(state),
        "precision": precision_quantiles(state)._asdict(),
        "posterior_weight": posterior_weight_for(state),
    }
    if isinstance(state, FisherDiag):
        values |= {"prior_share": prior_share(state), "warning": too_little(state)}
    return values


def described(entry: dict[str, Any]) -> str:
    """One line of a member."""
    low, median, high = entry["precision"].values()
    parts = [f"member {entry['member']}  {entry['kind']}  precision {low:.3g} / {median:.3g} / {high:.3g}"]
    if entry["source_accuracy"] is not None:
        parts.append(f"source accuracy {entry['source_accuracy']:.3f}")
    if "temperature" in entry:
        parts.append(f"temperature {entry['temperature']:.3g}")
    parts.append(f"posterior_weight for the usual pull {entry['posterior_weight']:.3g}")
    return "  ".join(parts)
