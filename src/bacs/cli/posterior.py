"""`bacs posterior`: posteriors and ensembles for checkpoints that were trained elsewhere."""

import json as json_format
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import Positional

from bacs.cli.arguments import Flag, takes


def posterior(
    checkpoints: Annotated[Positional[tuple[Path, ...]], takes("CHECKPOINT ...", required=True)],
    *,
    data: Annotated[str, takes("DATA")],
    out: Annotated[Path, takes("DIR")],
    kind: Annotated[Literal["fisher", "swag"] | None, takes("fisher|swag")] = None,
    members: int = 1,
    members_from: Annotated[Literal["samples", "heads", "seeds"] | None, takes("samples|heads|seeds")] = None,
    images: Annotated[int | None, takes("N")] = None,
    steps: Annotated[int | None, takes("N")] = None,
    learning_rate: Annotated[float | None, takes("NUMBER")] = None,
    model: Annotated[str | None, takes("NAME|MODULE:CLASS")] = None,
    model_arguments: Annotated[tuple[str, ...], takes("NAME=VALUE ...")] = (),
    mean: Annotated[tuple[float, ...], takes("NUMBER ...")] = (),
    std: Annotated[tuple[float, ...], takes("NUMBER ...")] = (),
    size: Annotated[int | None, takes("N")] = None,
    split: Annotated[str, takes("train|test")] = "train",
    data_dir: Annotated[Path | None, takes("DIR")] = None,
    download: Flag = False,
    seed: int = 0,
    device: Annotated[str, takes("cpu|cuda")] = "cpu",
    json: Flag = False,
) -> int:
    """Give trained checkpoints a posterior, or make an ensemble of one.

    Example: bacs posterior runs/mine --data cifar10 --out runs/mine-fisher

    Several checkpoints become one ensemble. One checkpoint becomes several members by draws from its posterior, by new
    last layers, or by short SWAG runs with different seeds; docs/posteriors.md compares them, and has more settings in
    Python.

    Args:
        checkpoints: Saved ensembles, or weight files (.safetensors, .pt, .pth, .bin, .npz) together with --model.
        data: Source images: a data set ("cifar10") or the path of a folder or array file.
        out: Folder to save the ensemble in; bacs.load opens it.
        kind: fisher needs images alone; swag trains for some steps. By default what a checkpoint has, else fisher.
        members: How many members to make of each checkpoint; more than one needs --members-from.
        members_from: How they come to differ: samples of the posterior, new last layers (heads) that are trained for
            some steps, or short SWAG runs with different seeds.
        images: How many source images to use, chosen at random; by default 2,000 for fisher and all for training.
        steps: Of training, for swag and heads; 300 if not given.
        learning_rate: Of swag, constant; about that of the end of training. 0.01 if not given.
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
    from rich.console import Console

    from bacs import checkpoints as files
    from bacs.cli.runs import with_size
    from bacs.cli.work.posterior import (
        check_data,
        check_new_folder,
        check_used,
        format_member,
        make_all,
        size_arguments,
    )
    from bacs.data import load as load_data
    from bacs.engine import Place
    from bacs.ensemble import Ensemble
    from bacs.models import classes_of
    from bacs.preprocessing import Preprocessing
    from bacs.pretrained.checkpoint import open_checkpoint
    from bacs.pretrained.make import Plan

    plan = Plan(kind, members, members_from, images, steps, learning_rate, seed)
    if not checkpoints:
        raise ValueError("checkpoints must name at least one, got none")
    check_new_folder(out)
    Place(device=device).check()
    preprocessing = Preprocessing(mean, std, **size_arguments(size)) if mean or std else None
    opened = [
        open_checkpoint(path, model=model, arguments=model_arguments, preprocessing=preprocessing)
        for path in checkpoints
    ]
    for path in checkpoints:
        if path.is_file() and preprocessing is None:
            raise ValueError(f"mean and std must say how images are normalised: the weight file {path} does not")
    inside = [member for ensemble in opened for member in ensemble.members]
    check_used(inside, plan)
    source_set = load_data(data, split=split, data_dir=data_dir, download=download, size=size)
    height, width = source_set.images.shape[1:3]
    inside = [with_size(member, (height, width)) for member in inside]
    check_data(inside, source_set)
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
    files.write(out, made.describe() | {"posterior": origin | asdict(plan) | {"made": about}}, made.tensors())
    if json:
        print(json_format.dumps({"out": str(out), "members": about}))
    else:
        print("\n".join([*map(format_member, about), f"{out}: bacs.load({str(out)!r}) opens {len(done)} member(s)"]))
    return 0
