"""The worlds of a recipe: tables `[world.<name>]` that say how a long stream changes."""

from collections.abc import Sequence
from typing import Any

from bacs.data import Segment, World, plan_segments
from bacs.errors import RecipeError
from bacs.toml import check_keys, check_types

SEGMENT = {"images": int, "corruptions": tuple[str, ...], "severities": tuple[float, ...]}
PLANNED = {
    "changes": tuple[str, ...],
    "corruptions": tuple[str, ...],
    "severities": tuple[float, ...],
    "segment_images": int,
}
"""What makes up the segments of a world whose table does not list them."""
STREAM = {"images": int, "order": str, "alpha": float, "slot_size": int}


def world_of(name: str, table: Any, corruptions: Sequence[str], seed: int) -> World:
    """The world of one table, with every value checked; `corruptions` are the recipe's, for a table that has none.

    `changes` names one way to change, or several that follow each other; or `segments` are listed one by one.
    """
    where = f"world.{name}"
    if not isinstance(table, dict):
        raise RecipeError(f"{where} must be a table, got {table!r}")
    check_keys(where, table, [*PLANNED, *STREAM, "segments"], required=[])
    check_types({key: value for key, value in table.items() if key != "segments"}, PLANNED | STREAM, f"{where}.")
    if ("changes" in table) == ("segments" in table):
        raise RecipeError(f"{where} must have one of the keys 'changes' and 'segments'")
    try:
        segments = listed_segments(where, table) if "segments" in table else planned_segments(table, corruptions)
        how: dict[str, Any] = {"images": sum(segment.images for segment in segments)}
        how |= {key: table[key] for key in STREAM if key in table}
        return World(segments, seed=seed, **how)
    except ValueError as error:
        raise RecipeError(f"{where}: {error}") from error


def planned_segments(table: dict[str, Any], corruptions: Sequence[str]) -> tuple[Segment, ...]:
    """The segments of each way to change, one way after the other."""
    how: dict[str, Any] = {"severities": table["severities"]} if "severities" in table else {}
    how |= {"images": table["segment_images"]} if "segment_images" in table else {}
    parts = [plan_segments(way, table.get("corruptions", corruptions), **how) for way in table["changes"]]
    return tuple(segment for part in parts for segment in part)


def listed_segments(where: str, table: dict[str, Any]) -> tuple[Segment, ...]:
    """The segments as the table lists them."""
    for key in PLANNED:
        if key in table:
            raise RecipeError(f"{where}: {key} belongs to 'changes', not to 'segments'")
    if not isinstance(table["segments"], (list, tuple)) or not all(isinstance(own, dict) for own in table["segments"]):
        raise RecipeError(f"{where}.segments must be a list of tables, got {table['segments']!r}")
    found = []
    for own in table["segments"]:
        check_keys(f"a segment of {where}", own, list(SEGMENT), required=["images"])
        check_types(own, SEGMENT, f"{where}.segments.")
        lists: dict[str, Any] = {key: tuple(value) for key, value in own.items() if key != "images"}
        found.append(Segment(own["images"], **lists))
    return tuple(found)
