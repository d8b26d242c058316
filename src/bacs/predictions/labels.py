"""Labels of a user's pictures, where there are some; predictions are compared with them when all are made."""

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bacs.data import Pictures
from bacs.data.formats import arrays
from bacs.errors import DataError, did_you_mean
from bacs.metrics import scores_of
from bacs.predictive import Predictive

FOLDERS = "folders"
UNKNOWN = -1


class Truth(NamedTuple):
    labels: np.ndarray  # a class number per image, UNKNOWN where nobody says

    def scores(self, before: Predictive, after: Predictive) -> dict[str, Any]:
        """Scores of the images that have a label."""
        known = self.labels != UNKNOWN
        made = {"before": before, "after": after}
        return {"images": int(known.sum())} | {
            when: scores_of(each.probabilities[known], self.labels[known]) for when, each in made.items()
        }


def check_truth(source: str) -> None:
    """Raises, before any picture is read, for what holds no labels by its name or is not there."""
    if source == FOLDERS:
        return
    if Path(source).suffix not in (".csv", ".npy"):
        raise ValueError(f"labels must be a .csv, a .npy or the word {FOLDERS}, got {source}")
    if not Path(source).exists():
        raise DataError(f"labels {source} is missing")


def read_truth(source: str, found: Pictures, class_names: Sequence[str] | None, classes: int | None = None) -> Truth:
    """Labels of the pictures that were read: of a .csv, a .npy, or of the folders that they lie in.

    `classes` is how many there are, where that is known without their names.
    """
    check_truth(source)
    if source == FOLDERS:
        labels = _read_folders(found, class_names)
    elif Path(source).suffix == ".csv":
        labels = _read_table(Path(source), found, class_names)
    else:
        labels = _read_array(Path(source), found)
    if not (labels != UNKNOWN).any():
        raise DataError(f"labels: {source} says nothing of any of the {len(found)} images")
    count = classes if class_names is None else len(class_names)
    if labels.min() < UNKNOWN or (count is not None and labels.max() >= count):
        rule = "0 or more" if count is None else f"0..{count - 1}"
        raise DataError(
            f"labels: {source} has classes {labels.min()}..{labels.max()}, those of the ensemble are {rule}"
        )
    return Truth(labels)


def _read_folders(found: Pictures, class_names: Sequence[str] | None) -> np.ndarray:
    if found.paths is None or class_names is None:
        raise ValueError(f"labels must not be {FOLDERS!r} for arrays, or for an ensemble without class names")
    numbers = {name: number for number, name in enumerate(class_names)}

    def label(path: str) -> int:
        return next((numbers[part] for part in reversed(Path(path).parts[:-1]) if part in numbers), UNKNOWN)

    return np.array([label(path) for path in found.paths])


def _read_array(file: Path, found: Pictures) -> np.ndarray:
    labels = np.asarray(arrays.read_npy(file))
    if labels.ndim != 1 or labels.dtype.kind not in "iu" or (len(labels) and found.index.max() >= len(labels)):
        raise DataError(
            f"{file}: labels must be whole numbers, one per image of the source ({found.index.max() + 1} or more), got "
            f"{labels.dtype} of shape {list(labels.shape)}"
        )
    return labels[found.index].astype(np.int64)


def _read_table(file: Path, found: Pictures, class_names: Sequence[str] | None) -> np.ndarray:
    try:
        with file.open(newline="", encoding="utf-8-sig") as handle:  # Excel writes a mark before the first column
            rows = list(csv.DictReader(handle))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{file} cannot be read as labels: {error}") from error
    if any(None in row or None in row.values() for row in rows):
        raise DataError(f"{file}: every row must have as many cells as the first")
    columns = set(rows[0]) if rows else set()
    key = next((name for name in ("path", "index") if name in columns), None)
    if key is None or "label" not in columns:
        raise DataError(f"{file}: labels must have the columns path or index, and label, got {sorted(columns)}")
    known = {str(row[key]): _class_number(row["label"] or "", class_names, file) for row in rows}  # None in a short row
    keys = found.paths if key == "path" else [str(number) for number in found.index]
    if keys is None:
        raise DataError(f"{file}: images of an array have no path; give the column index instead")
    by_name = {Path(path).name: number for path, number in known.items()} if key == "path" else {}
    return np.array([known.get(word, by_name.get(Path(word).name, UNKNOWN)) for word in keys])


def _class_number(word: str, class_names: Sequence[str] | None, file: Path) -> int:
    """The class that a label means: its name, or its number."""
    if class_names is not None and word in class_names:
        return list(class_names).index(word)
    if word.isdecimal() and len(word) < 10 and (class_names is None or int(word) < len(class_names)):
        return int(word)
    raise DataError(f"{file}: label {word!r} is no class{did_you_mean(word, list(class_names or []))}")
