"""Images in Parquet files: encoded pictures as Hugging Face writes them, or arrays in (nested) lists."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bacs.errors import DataError, RunError, one_line

if TYPE_CHECKING:
    import pyarrow

NAMES = ("image", "images", "img", "pixel_values")
"""Columns that are taken for the images, the first that is there; else the only column that can be."""


LIMITS = {"thrift_string_size_limit": 1 << 26, "thrift_container_size_limit": 1 << 20}
"""Bytes and entries that a header may ask for: far more than any real file's."""


class Row(NamedTuple):
    data: bytes
    path: str | None


def import_pyarrow() -> Any:
    """pyarrow with its Parquet module, or an error that says how to get it."""
    try:
        import pyarrow
        import pyarrow.compute
        import pyarrow.parquet
    except ImportError as error:
        raise RunError("Parquet files need pyarrow: pip install 'bacs[parquet]'") from error
    return pyarrow


def holds_pictures(path: Path) -> bool:
    """Whether the file's images are encoded pictures rather than arrays."""
    return _is_encoded(_image_column(path)[1])


def count_rows(path: Path) -> int:
    """The number of rows."""
    return _open(path).metadata.num_rows


def read_pictures(path: Path) -> Iterator[Row]:
    """The encoded pictures one after another; never more than a batch of rows is held."""
    name, _ = _image_column(path)
    for batch in _batches(path, name, 64):
        for value in batch.column(0).to_pylist():
            if isinstance(value, dict):
                yield Row(value.get("bytes") or b"", value.get("path"))
            else:
                yield Row(value or b"", None)


def read_arrays(path: Path) -> np.ndarray:
    """All rows of the image column as one array; every row must have the same shape."""
    name, _ = _image_column(path)
    parts = [_as_array(batch.column(0), path) for batch in _batches(path, name, 1024)]
    shapes = {part.shape[1:] for part in parts}
    if len(shapes) != 1:
        raise DataError(f"{path}: arrays must have one shape, found {sorted(shapes) or 'no rows'}")
    return np.concatenate(parts)


def _batches(path: Path, name: str, batch_size: int) -> Iterator[Any]:
    try:
        for batch in _open(path).iter_batches(batch_size, columns=[name]):
            batch.validate(full=True)  # lengths and offsets of a damaged file may point anywhere
            yield batch
    except DataError:
        raise
    except Exception as error:  # ArrowException, OSError, and what Python says to bytes that are no text
        raise DataError(f"{path}: damaged ({one_line(error)})") from error


def _open(path: Path) -> "pyarrow.parquet.ParquetFile":
    pyarrow = import_pyarrow()
    try:
        file = pyarrow.parquet.ParquetFile(path, page_checksum_verification=True, **LIMITS)
        file.schema_arrow.names  # noqa: B018 -- may be no text
        return file
    except FileNotFoundError as error:
        raise DataError(f"{path} is missing") from error
    except Exception as error:  # ArrowException, OSError, and what Python says to bytes that are no text
        raise DataError(f"{path}: damaged or not a Parquet file ({one_line(error)})") from error


def _image_column(path: Path) -> "tuple[str, pyarrow.DataType]":
    schema = _open(path).schema_arrow
    usable = [field.name for field in schema if _is_encoded(field.type) or _is_array(field.type)]
    named = [name for name in NAMES if name in usable] or (usable if len(usable) == 1 else [])
    if not named:
        raise DataError(
            f"{path}: one column must hold images (bytes, a struct with bytes, or lists) and be called "
            f"{', '.join(NAMES)} if there are several, found {schema.names}"
        )
    return named[0], schema.field(named[0]).type


def _is_encoded(kind: "pyarrow.DataType") -> bool:
    types = import_pyarrow().types
    if types.is_struct(kind):
        index = kind.get_field_index("bytes")
        return index >= 0 and _is_encoded(kind.field(index).type)
    return types.is_binary(kind) or types.is_large_binary(kind)


def _is_array(kind: "pyarrow.DataType") -> bool:
    pyarrow = import_pyarrow()
    if isinstance(kind, pyarrow.BaseExtensionType):
        kind = kind.storage_type
    return pyarrow.types.is_list(kind) or pyarrow.types.is_large_list(kind) or pyarrow.types.is_fixed_size_list(kind)


def _as_array(column: Any, path: Path) -> np.ndarray:
    """[rows, ...] of a column of rectangular lists."""
    pyarrow = import_pyarrow()
    if isinstance(column.type, pyarrow.FixedShapeTensorType):
        return column.to_numpy_ndarray()
    if isinstance(column, pyarrow.ExtensionArray):
        column = column.storage
    shape = [len(column)]
    while _is_array(column.type):
        if column.null_count:
            raise DataError(f"{path}: {column.null_count} of the rows or lists are missing")
        lengths = np.unique(pyarrow.compute.list_value_length(column).to_numpy(zero_copy_only=False))
        if len(lengths) != 1:
            raise DataError(f"{path}: arrays must have one shape, found lists of {lengths[0]} to {lengths[-1]} values")
        shape.append(int(lengths[0]))
        column = column.flatten()
    if column.null_count or not (pyarrow.types.is_integer(column.type) or pyarrow.types.is_floating(column.type)):
        raise DataError(f"{path}: arrays must hold numbers without gaps, found {column.type}")
    return column.to_numpy(zero_copy_only=False).reshape(shape)
