"""Finds the files of a published set below the data folder; unpacks or downloads them where that is wanted."""

import os
from collections.abc import Iterator
from pathlib import Path

from bacs.data.download import Remote, fetch, unpack
from bacs.data.registry import Layout, Published
from bacs.errors import DataError


def data_root(data_dir: str | Path | None) -> Path:
    """`data_dir`, else the environment variable BACS_DATA, else ~/.cache/bacs/data."""
    if data_dir is None:
        data_dir = os.environ.get("BACS_DATA") or "~/.cache/bacs/data"
    return Path(data_dir).expanduser()


def locate_files(name: str, published: Published, split: str, root: Path, download: bool) -> tuple[Layout, list[Path]]:
    """The layout that is there and the paths of its files for `split`."""
    if found := _find_complete(published, split, root):
        return found
    for layout in published.layouts:
        archives = [remote for remote in layout.remotes[split] if remote.unpacks and (root / remote.path).exists()]
        if archives:
            obtain(archives, root)
            break
    else:
        if download:
            obtain(published.layouts[0].remotes[split], root)
    if found := _find_complete(published, split, root):
        return found
    raise DataError(_what_is_missing(name, published, split, root))


def obtain(remotes: "list[Remote] | tuple[Remote, ...]", root: Path) -> None:
    """Downloads what is not there, and unpacks the archives beside themselves."""
    for remote in remotes:
        path = fetch(remote, root)
        if remote.unpacks:
            unpack(path, path.parent, remote.unpacks)


def _find_complete(published: Published, split: str, root: Path) -> tuple[Layout, list[Path]] | None:
    return next((found for found in _places(published, split, root) if all(path.exists() for path in found[1])), None)


def _places(published: Published, split: str, root: Path) -> Iterator[tuple[Layout, list[Path]]]:
    """Where the files of a split may lie, and by which layout."""
    for layout in published.layouts:
        # The data folder itself comes last: MNIST and Fashion-MNIST have files of the same names.
        for folder in (*(root / each for each in layout.folders), root):
            yield layout, [_plain_or_gzipped(folder / file) for file in layout.files[split]]


def _plain_or_gzipped(path: Path) -> Path:
    zipped = path.with_name(path.name + ".gz")
    return zipped if zipped.exists() and not path.exists() else path


def _what_is_missing(name: str, published: Published, split: str, root: Path) -> str:
    for _, paths in _places(published, split, root):
        missing = [path for path in paths if not path.exists()]
        if len(missing) < len(paths):
            return f"{name}: {missing[0]} is missing, though other files of the {split!r} split are there"
    layout = published.layouts[0]
    files = ", ".join(layout.files[split])
    urls = " ".join(remote.url for remote in layout.remotes[split])
    return (
        f"{name}: put {files} ({split!r} split) into {root / layout.folders[0]}, from {urls}\n"
        "or pass download=True (--download); data_dir or the environment variable BACS_DATA names another data folder"
    )
