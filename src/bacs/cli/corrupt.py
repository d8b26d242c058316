"""`bacs corrupt`: a corrupted copy of a data set in the layout of CIFAR-C or ImageNet-C."""

import json as json_format
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional

from bacs.cli.arguments import Flag, takes


def corrupt(
    data: Annotated[Positional[str], takes("DATA")],
    out: Annotated[Path, takes("DIR")],
    corruptions: Annotated[tuple[str, ...] | None, takes("NAME ...")] = None,
    severities: Annotated[tuple[int, ...], takes("N ...")] = (1, 2, 3, 4, 5),
    seed: int = 0,
    limit: Annotated[int | None, takes("N")] = None,
    split: Annotated[str, takes("train|test")] = "test",
    data_dir: Annotated[Path | None, takes("DIR")] = None,
    download: Flag = False,
    size: Annotated[int | None, takes("N")] = None,
    json: Flag = False,
) -> int:
    """Write a corrupted copy of a data set in the published layout.

    Arrays become OUT/<corruption>.npy and OUT/labels.npy as in CIFAR-10-C, image folders become
    OUT/<corruption>/<severity>/<class>/*.JPEG as in ImageNet-C. A call that was cut goes on where it stopped.

    Example: bacs corrupt cifar10 --out data/CIFAR-10-C --corruptions fog snow --limit 1000

    Args:
        data: A data set ("cifar10") or the path of an image folder, .npy, .npz or .safetensors file.
        out: The folder to write into.
        corruptions: Names; all 19 by default.
        severities: From 1 to 5, in the order in which they are stacked.
        seed: The noise of an image depends on this, its number, the corruption and the severity.
        limit: The first images only.
        split: Of the data set.
        data_dir: Where data sets lie; $BACS_DATA or ~/.cache/bacs/data by default.
        download: Fetch the data set if it is missing.
        size: Crop and resize the images of a folder to this many pixels.
        json: Print what was done as JSON.
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from bacs.corruptions import TEST, VALIDATION
    from bacs.data import load
    from bacs.data.copies import write_copy
    from bacs.data.image_set import take_first
    from bacs.errors import unknown_name
    from bacs.files import check_writable

    chosen = (*TEST, *VALIDATION) if corruptions is None else tuple(dict.fromkeys(corruptions))
    if not chosen:
        raise ValueError("corruptions must name at least one, got none")
    for name in chosen:
        if name not in (*TEST, *VALIDATION):
            raise unknown_name("corruptions", name, (*TEST, *VALIDATION))
    if not severities or len(set(severities)) != len(severities) or not set(severities) <= {1, 2, 3, 4, 5}:
        raise ValueError(f"severities must be different numbers 1..5, got {severities}")
    if out.exists() and not out.is_dir():
        raise ValueError(f"out must be a folder, {out} is a file")
    if seed < 0:
        raise ValueError(f"seed must be at least 0, got {seed}")
    if out.resolve().is_relative_to(Path(data).resolve()) and Path(data).is_dir():
        raise ValueError(f"out must lie outside of the data, {out} is in {data}: the copy would become a part of it")
    check_writable("out", out)
    image_set = take_first(load(data, split=split, data_dir=data_dir, download=download, size=size), limit)
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task("corrupted images", total=len(chosen) * len(severities) * len(image_set))
        written = write_copy(image_set, out, chosen, severities, seed, lambda images: progress.advance(task, images))
    kept = [name for name in chosen if name not in written]
    if json:
        print(json_format.dumps({"out": str(out), "images": len(image_set), "written": written, "kept": kept}))
    else:
        print(f"{out}: corruptions written: {len(written)}, there already: {len(kept)}")
    return 0
