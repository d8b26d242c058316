"""`pictures`: a user's own images, wherever they lie, ready for the members of an ensemble.

Files are decoded once, by several threads. What is held afterwards is uint8 at the model's size, in an unnamed
temporary file that the operating system keeps in memory as long as there is room; nothing else grows with the number
of pictures.
"""

import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bacs.data.decode import MODES, decode_views
from bacs.data.formats import arrays, parquet
from bacs.data.listing import Encoded, list_all
from bacs.errors import DataError
from bacs.preprocessing import Preprocessing, geometry


class Failure(NamedTuple):
    path: str
    reason: str


@dataclass(frozen=True, eq=False)
class Pictures:
    """Images and where they came from; what could not be read is in `failures`."""

    views: tuple[np.ndarray, ...]  # for each preprocessing asked for: uint8 NHWC at its size, or an array as stored
    index: np.ndarray  # the place of each image among all that were listed, counting those that could not be read
    paths: tuple[str, ...] | None  # None for arrays
    failures: tuple[Failure, ...] = ()
    ignored: int = 0  # files of a folder that are no pictures by their names

    @property
    def images(self) -> np.ndarray:
        """The images for the first preprocessing: what `bacs.adapt` takes."""
        return self.views[0]

    def __len__(self) -> int:
        return len(self.index)


def pictures(
    source: str | Path | Sequence[str | Path],
    *preprocessings: Preprocessing | None,
    strict: bool = False,
    limit: int | None = None,
    on_picture: Callable[[int, int], Any] = lambda done, total: None,
) -> Pictures:
    """The images of a folder (with its sub-folders), a glob, an array file, a Parquet file or one picture.

    Of several places the pictures come one after the other. `limit` takes the first so many.

    Pictures come in the order of their paths, decoded as `bacs.data.decode` says and brought to the size of each
    member's preprocessing. Arrays (.npy, .npz, .safetensors, lists in .parquet) are taken as they are. `strict`
    raises at the first picture that cannot be read; else it goes to `failures`.
    """
    places = [source] if isinstance(source, (str, Path)) else list(source or [])
    if not places:
        raise ValueError(f"source must be a folder, a glob, a picture or an array file, got {source!r}")
    if limit is not None and limit < 1:
        raise ValueError(f"limit must be at least 1, got {limit}")
    path = Path(places[0]).expanduser()
    if len(places) == 1 and path.suffix in (*arrays.SUFFIXES, ".parquet") and not path.is_dir():
        if not path.exists():
            raise DataError(f"{path} is missing")
        if path.suffix != ".parquet" or not parquet.holds_pictures(path):
            array = parquet.read_arrays(path) if path.suffix == ".parquet" else arrays.read_inputs(path)
            array = array[:limit]
            return Pictures((array,) * max(1, len(preprocessings)), np.arange(len(array)), None)
    fits = [check_fit(fit) for fit in preprocessings or (None,)]
    found = list_all(places)
    count = found.count if limit is None else min(limit, found.count)
    chosen = islice(found.pictures, count)
    held = _decode_all(chosen, fits, strict=strict, on_picture=lambda done: on_picture(done, count))
    return Pictures(*held, found.ignored)


def check_fit(preprocessing: Preprocessing | None) -> Preprocessing:
    """The preprocessing, if pictures can be brought to it."""
    if preprocessing is None:
        raise ValueError(
            "pictures need a member with preprocessing: Member(..., preprocessing=bacs.Preprocessing(mean, std, size))"
        )
    if len(preprocessing.mean) not in MODES:
        raise ValueError(f"pictures have 1 or 3 channels, the member's preprocessing has {len(preprocessing.mean)}")
    return preprocessing


def _decode_all(
    found: Iterable[Encoded], fits: Sequence[Preprocessing], *, strict: bool, on_picture: Callable[[int], Any]
) -> tuple[tuple[np.ndarray, ...], np.ndarray, tuple[str, ...], tuple[Failure, ...]]:
    """Views, places, names and failures. Equal geometries share one view."""
    distinct = list({geometry(fit): fit for fit in fits}.values())
    kept: list[Encoded] = []
    failures: list[Failure] = []
    shapes: list[tuple[int, ...]] = []
    threads = min(8, os.cpu_count() or 1)
    with ExitStack() as stack:
        files = [stack.enter_context(tempfile.TemporaryFile(buffering=0)) for _ in distinct]
        pool = stack.enter_context(ThreadPoolExecutor(threads))
        for chunk in _chunks(found, 4 * threads):
            for item, result in zip(chunk, pool.map(lambda item: decode_or_fail(item, distinct), chunk), strict=True):
                on_picture(1)
                if isinstance(result, Failure):
                    if strict:
                        raise DataError(f"{result.path}: {result.reason}")
                    failures.append(result)
                    continue
                shapes = shapes or [pixels.shape for pixels in result]
                _check_shapes(item, kept, [pixels.shape for pixels in result], shapes)
                _write(files, result)
                kept.append(item._replace(data=b""))
        if not kept:
            raise DataError(
                f"none of the {len(failures)} pictures can be read; {failures[0].path}: {failures[0].reason}"
                if failures
                else "there are no pictures"
            )
        maps = [np.memmap(file, np.uint8, "c", shape=(len(kept), *s)) for file, s in zip(files, shapes, strict=True)]
    view = {geometry(fit): pixels for fit, pixels in zip(distinct, maps, strict=True)}
    index, names = np.array([item.index for item in kept]), tuple(item.name for item in kept)
    return tuple(view[geometry(fit)] for fit in fits), index, names, tuple(failures)


def decode_or_fail(item: Encoded, fits: Sequence[Preprocessing]) -> list[np.ndarray] | Failure:
    """The picture for each preprocessing, or why there is none."""
    try:
        return decode_views(item.data, fits)
    except DataError as error:
        return Failure(item.name, str(error))


def _chunks(items: Iterable[Encoded], size: int) -> Iterator[list[Encoded]]:
    iterator = iter(items)
    while chunk := list(islice(iterator, size)):
        yield chunk


def _check_shapes(item: Encoded, kept: list[Encoded], found: list, expected: list) -> None:
    for one, other in zip(found, expected, strict=True):
        if one != other:
            raise DataError(
                f"{item.name} has {one[0]} x {one[1]} pixels and {kept[0].name} {other[0]} x {other[1]}, but the "
                "checkpoint does not say which size its model takes: --size HEIGHT WIDTH does, or Preprocessing(size=)"
            )


def _write(files: Sequence[Any], pixels: Sequence[np.ndarray]) -> None:
    try:
        for file, part in zip(files, pixels, strict=True):
            data = part.tobytes()
            while data:  # a disk that is almost full takes a part before it says so
                data = data[file.write(data) :]
    except OSError as error:
        raise DataError(
            f"the decoded pictures do not fit into {tempfile.gettempdir()}: {error.strerror or error}; "
            "TMPDIR may name another folder"
        ) from error
