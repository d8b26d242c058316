"""Tables as files: Parquet, CSV or JSON lines by the ending of the name, each written whole or not at all."""

import csv
import io
import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from bacs import files
from bacs.data.formats.parquet import import_pyarrow
from bacs.files import check_writable

Columns = dict[str, Any]  # name -> array or sequence; a two-dimensional array has a list in each row


def check_table_file(path: str | Path, *, overwrite: bool) -> None:
    """Raises for what would fail after the work: an ending, a file that is there, a closed folder, no pyarrow."""
    file = Path(path)
    if file.suffix not in WRITERS:
        raise ValueError(f"out must end in {', '.join(WRITERS)}, got {file}")
    if file.is_dir():
        raise ValueError(f"out must be a file, {file} is a folder")
    if file.exists() and not overwrite:
        raise ValueError(f"out must be a new file, {file} exists: overwrite=True (--overwrite) replaces it")
    if file.suffix == ".parquet":
        import_pyarrow()
    check_writable("out", file)


@contextmanager
def stage(path: str | Path, columns: Columns, *, overwrite: bool = False) -> Iterator[None]:
    """Writes the columns in the format of the file's ending; the file takes its place when the block has gone well.

    So what belongs to it can be written in the block: if that fails, the table is not there either.
    """
    check_table_file(path, overwrite=overwrite)
    file, remark = Path(path), "; nothing was left half-written"
    with ExitStack() as staged:
        with files.explain_failure(file, remark):
            staged.enter_context(files.stage(file, lambda handle: WRITERS[file.suffix](handle, columns)))
        yield
        with files.explain_failure(file, remark):
            staged.close()


def _write_parquet(handle: BinaryIO, columns: Columns) -> None:
    pyarrow = import_pyarrow()

    def column(values: Any) -> Any:
        if isinstance(values, np.ndarray) and values.ndim == 2:
            return pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(values.ravel()), values.shape[1])
        return pyarrow.array(values)

    pyarrow.parquet.write_table(pyarrow.table({name: column(values) for name, values in columns.items()}), handle)


def _write_csv(handle: BinaryIO, columns: Columns, *, header: bool = True) -> None:
    """A list becomes a column for each of its places: probabilities_0, probabilities_1, ..."""
    flat = {}
    for name, values in columns.items():
        if isinstance(values, np.ndarray) and values.ndim == 2:
            flat |= {f"{name}_{place}": values[:, place] for place in range(values.shape[1])}
        else:
            flat[name] = values
    text = io.TextIOWrapper(handle, "utf-8", newline="")
    lines = csv.writer(text, lineterminator="\n")
    if header:
        lines.writerow(flat)
    for row in _rows(flat):
        lines.writerow([str(value).lower() if isinstance(value, bool) else value for value in row])
    text.detach()  # flushes, and leaves the handle open for its owner


def _write_json_lines(handle: BinaryIO, columns: Columns, *, header: bool = True) -> None:
    for row in _rows(columns):
        line = json.dumps(dict(zip(columns, row, strict=True)), ensure_ascii=False)
        handle.write(line.encode() + b"\n")


def _rows(columns: Columns) -> Iterator[tuple[Any, ...]]:
    """Row by row, as plain Python values: arrays are turned into lists a row at a time."""
    for row in zip(*columns.values(), strict=True):
        yield tuple(value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value for value in row)


WRITERS: dict[str, Callable[[BinaryIO, Columns], None]] = {
    ".parquet": _write_parquet,
    ".csv": _write_csv,
    ".jsonl": _write_json_lines,
}
APPENDERS: dict[str, Callable[..., None]] = {".csv": _write_csv, ".jsonl": _write_json_lines}
"""Formats that can be written row by row; the first rows come with a header, where the format has one."""
