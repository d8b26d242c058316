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

from bacs import locks
from bacs.benchmark.cell import slug
from bacs.data import Shift
from bacs.data.image_set import Images
from bacs.errors import DataError

CHUNK = 256  # images that are in memory at a time while lazy ones are written


def folder(working: Path, shift: str) -> Path:
    return working / "images" / slug(shift)


def make_once(folder: Path, make: Callable[[], Shift]) -> Shift:
    """The shift stored in `folder`; the first to ask makes it, the others wait."""
    if not folder.exists():
        with locks.locked(folder.with_name(f"{folder.name}.lock"), f"{folder} is being made", wait=True):
            if not folder.exists():
                _write(make(), folder)
    about = json.loads((folder / "about.json").read_text())
    mask = about["class_mask"]
    return Shift(
        about["name"],
        np.load(folder / "images.npy", mmap_mode="r"),
        np.load(folder / "labels.npy"),
        tuple(about["classes"]),
        None if mask is None else np.array(mask),
    )


def _write(shift: Shift, folder: Path) -> None:
    if shift.labels is None:
        raise DataError(f"{shift.name} has no labels: there is nothing to score by")
    part = folder.with_name(f".{folder.name}.{uuid4().hex}")
    try:
        part.mkdir(parents=True)
        _write_images(part / "images.npy", shift.images)
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


def _write_images(file: Path, images: Images) -> None:
    # Not through a memory map: a full disk would end the process instead of raising an error.
    with file.open("wb") as handle:
        header = {"descr": "|u1", "fortran_order": False, "shape": tuple(images.shape)}
        np.lib.format.write_array_header_1_0(handle, header)
        for start in range(0, len(images), CHUNK):
            handle.write(np.ascontiguousarray(images[start : start + CHUNK]).data)
