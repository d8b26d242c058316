"""Tensors of the Open Inference Protocol v2: JSON, and the binary extension that follows the JSON in one body."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from bacs.serve.refusal import Refused

INPUT = "images"
DATATYPES = {
    "UINT8": np.uint8,
    "INT32": np.int32,
    "INT64": np.int64,
    "FP16": np.float16,
    "FP32": np.float32,
    "FP64": np.float64,
}
NAMES = {np.dtype(kind): name for name, kind in DATATYPES.items()} | {np.dtype(bool): "BOOL"}


class Inference(NamedTuple):
    """What a client asks for."""

    images: np.ndarray
    id: str | None
    outputs: dict[str, bool] | None  # name -> whether in binary; None: all of them
    binary: bool  # unless an output says otherwise


def parse(body: bytes, header_bytes: int | None) -> Inference:
    """The request of a body whose first `header_bytes` are JSON (None: all of it)."""
    head, tail = (body, b"") if header_bytes is None else (body[:header_bytes], body[header_bytes:])
    if header_bytes is not None and not 0 <= header_bytes <= len(body):
        raise Refused(400, "Inference-Header-Content-Length must lie within the body")
    try:
        asked = json.loads(head)
    except (ValueError, RecursionError) as error:
        raise Refused(400, "the body is not JSON") from error
    if not isinstance(asked, dict):
        raise Refused(400, "the body must be a JSON object")
    inputs = asked.get("inputs")
    if not (isinstance(inputs, list) and len(inputs) == 1 and isinstance(inputs[0], dict)):
        raise Refused(400, f"inputs must be a list of one tensor, {INPUT!r}")
    if not isinstance(asked.get("id", ""), str):
        raise Refused(400, "id must be a string")
    binary = _object(asked, "parameters").get("binary_data_output", False)
    if not isinstance(binary, bool):
        raise Refused(400, "binary_data_output must be true or false")
    return Inference(_tensor(inputs[0], tail), asked.get("id"), _outputs(asked.get("outputs"), binary), binary)


def _object(holder: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = holder.get(name, {})
    if not isinstance(value, dict):
        raise Refused(400, f"{name} must be an object")
    return value


def _outputs(asked: Any, binary: bool) -> dict[str, bool] | None:
    if asked is None or asked == []:
        return None
    if not (isinstance(asked, list) and all(isinstance(o, dict) and isinstance(o.get("name"), str) for o in asked)):
        raise Refused(400, "outputs must be a list of objects with a name")
    found = {output["name"]: _object(output, "parameters").get("binary_data", binary) for output in asked}
    if not all(isinstance(value, bool) for value in found.values()):
        raise Refused(400, "binary_data must be true or false")
    return found


def _tensor(tensor: Mapping[str, Any], tail: bytes) -> np.ndarray:
    if tensor.get("name") != INPUT:
        raise Refused(400, f"the input must be named {INPUT!r}")
    shape = tensor.get("shape")
    whole = isinstance(shape, list) and all(isinstance(n, int) and not isinstance(n, bool) and n > 0 for n in shape)
    if not (isinstance(shape, list) and whole and 2 <= len(shape) <= 8):
        raise Refused(400, "shape must be a list of two to eight whole numbers > 0")
    name = tensor.get("datatype")
    if not isinstance(name, str) or name not in DATATYPES:
        raise Refused(400, f"datatype must be one of {', '.join(DATATYPES)}")
    kind = np.dtype(DATATYPES[name])
    count = 1
    for number in shape:
        count *= number
    size = _object(tensor, "parameters").get("binary_data_size")
    if size is None:
        values = _of_json(tensor.get("data"), kind)
    else:
        if isinstance(size, bool) or size != len(tail) or size != count * kind.itemsize:
            raise Refused(400, "binary_data_size must be that of shape and datatype, and of what follows the JSON")
        values = np.frombuffer(tail, kind.newbyteorder("<")).astype(kind)
    if values.size != count:
        raise Refused(400, f"data must hold {count} numbers, as shape says, got {values.size}")
    if kind.kind == "f":
        with np.errstate(over="ignore"):  # what float32 cannot hold is then refused as infinite
            values = values.astype(np.float32) if kind != np.float32 else values
        if not np.isfinite(values).all():
            raise Refused(422, "images must be finite")
    return values.reshape(shape)


def _of_json(data: Any, kind: np.dtype) -> np.ndarray:
    """Numbers from a flat or nested list; none that the datatype does not hold."""
    if not isinstance(data, list):
        raise Refused(400, "data must be a list of numbers, or binary_data_size must be given")
    try:
        values = np.array(data)
    except (ValueError, OverflowError, RecursionError) as error:
        raise Refused(400, "data must be a list of numbers, nested by shape or flat") from error
    if values.dtype.kind not in ("iuf" if kind.kind == "f" else "iu"):
        raise Refused(400, "data must be numbers of the datatype")
    if kind.kind != "f" and values.size and (values.min() < np.iinfo(kind).min or values.max() > np.iinfo(kind).max):
        raise Refused(400, "data must be numbers of the datatype")
    with np.errstate(over="ignore"):
        return values.astype(kind).reshape(-1)


def response(head: Mapping[str, Any], found: Mapping[str, np.ndarray], asked: Inference) -> tuple[bytes, int | None]:
    """The body, and the length of its JSON where binary tensors follow."""
    wanted = dict.fromkeys(found, asked.binary) if asked.outputs is None else asked.outputs
    outputs, tail = [], []
    for name, binary in wanted.items():
        values = found[name]
        entry: dict[str, Any] = {"name": name, "datatype": NAMES[values.dtype], "shape": list(values.shape)}
        if binary:
            tail.append(values.astype(values.dtype.newbyteorder("<")).tobytes())
            entry["parameters"] = {"binary_data_size": len(tail[-1])}
        else:
            entry["data"] = values.reshape(-1).tolist()
        outputs.append(entry)
    told = json.dumps({**head, "outputs": outputs}).encode()
    return told + b"".join(tail), len(told) if tail else None


def describe_tensors(found: Sequence[tuple[str, str, Sequence[int]]]) -> list[dict[str, Any]]:
    """Tensors as metadata names them."""
    return [{"name": name, "datatype": kind, "shape": list(shape)} for name, kind, shape in found]
