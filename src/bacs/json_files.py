"""JSON files that may come from anywhere: read within bounds, and sealed by a checksum of what they say."""

import hashlib
import json
from pathlib import Path
from typing import Any

LARGEST_FILE = 1 << 26
"""Bytes. Hundreds of times what a run of a hundred members says of itself; parsing takes about ten times as much."""

SEAL = "sha256"


def read_json(file: Path) -> Any:
    """What the file says. Raises OSError if it cannot be read, and ValueError for whatever is no JSON."""
    size = file.stat().st_size
    if size > LARGEST_FILE:
        raise ValueError(f"{size} bytes are too many, {LARGEST_FILE} are allowed")
    try:
        return json.loads(file.read_bytes().decode("utf-8"))
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def sealed(table: dict[str, Any]) -> dict[str, Any]:
    """The table as JSON gives it back, with a checksum of all the rest."""
    plain = json.loads(json.dumps(table))
    return plain | {SEAL: _sum(plain)}


def is_sealed(table: dict[str, Any]) -> bool:
    """Whether a table says what it said when it was sealed."""
    return table.get(SEAL) == _sum({key: value for key, value in table.items() if key != SEAL})


def _sum(table: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(table, sort_keys=True).encode()).hexdigest()
