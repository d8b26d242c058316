"""The images of a shift, made once and shared through a file by all processes that work on its cells.

Every process maps the same file into its memory, so that ten methods on ten workers cost the memory and the making of
one. For a cluster the folder has to be on storage that all machines see.
"""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

import numpy as np

from bacs import files
from bacs.benchmark.cell import slug
from bacs.data import ImageSet
from bacs.data.formats.arrays import write_images
from bacs.errors import DataError

CHUNK = 256  # images that are in memory at a time while lazy ones are written


def folder(working: Path, shift: str) -> Path:
    return working / "images" / slug(shift)


def make_once(folder: Path, make: Callable[[], ImageSet]) -> ImageSet:
    """The shift stored in `folder`; the first to ask makes it, the others wait."""
    if not folder.exists():
        with files.lock(folder.with_name(f"{folder.name}.lock"), f"{folder} is being made", wait=True):
            if not folder.exists():
                _write(make(), folder)
    about = json.loads((folder / "about.json").read_text())
    mask = about["class_mask"]
    return ImageSet(
        about["name"],
        np.load(folder / "images.npy", mmap_mode="r"),
        np.load(folder / "labels.npy"),
        tuple(about["classes"]),
        None if mask is None else np.array(mask),
    )


def _write(shift: ImageSet, folder: Path) -> None:
    if shift.labels is None:
        raise DataError(f"{shift.name} has no labels: there is nothing to score by")
    part = folder.with_name(f".{folder.name}.{uuid4().hex}")
    try:
        part.mkdir(parents=True)
        parts = (shift.images[start : start + CHUNK] for start in range(0, len(shift), CHUNK))
        with (part / "images.npy").open("wb") as file:
            write_images(file, shift.images.shape, parts)
        np.save(part / "labels.npy", shift.labels)
        mask = None if shift.class_mask is None else shift.class_mask.tolist()
        about = {"name": shift.name, "classes": shift.classes, "class_mask": mask}
        (part / "about.json").write_text(json.dumps(about))
        os.rename(part, folder)
    except OSError as error:
        shutil.rmtree(part, ignore_errors=True)
        raise DataError(
            f"the images of {shift.name} could not be kept in {folder}: {error.strerror or error}"
        ) from error
