"""What a file says against what it may say, field by field, before anything is looked up by its words.

A table is described by a TypedDict, a NamedTuple or a dataclass; what is in it by bool, int, float, str, None, Any,
Literal, a union, list, tuple or dict[str, ...]. `Annotated[int, Rule(...)]` bounds a value. A key that the table does
not have is an error: a misspelt one would leave its default in force without a sign.
"""

import math
import types
from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from typing import (
    Annotated,
    Any,
    Literal,
    NamedTuple,
    NotRequired,
    Required,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

LARGEST = 2**63 - 1
"""Whole numbers beyond it fit no number: neither arrays nor seeds hold them."""


class Rule(NamedTuple):
    words: str  # what the value must be
    holds: Callable[[Any], bool]


Count = Annotated[int, Rule("a whole number from 0 on", lambda value: value >= 0)]
Positive = Annotated[float, Rule("a number above 0", lambda value: value > 0)]
Share = Annotated[float, Rule("a number from 0 to 1", lambda value: 0 <= value <= 1)]


def mismatch(value: Any, kind: Any, where: str) -> str | None:
    """What is wrong with a value, in one line that begins with `where`; None if it fits.

    >>> mismatch({"mean": [0.5, "x"]}, dict[str, list[float]], "preprocessing")
    "preprocessing.mean must be a list of numbers, got [0.5, 'x']"
    """
    if get_origin(kind) in (NotRequired, Required):
        return mismatch(value, get_args(kind)[0], where)
    if (hints := _table_hints(kind)) is not None:
        return _table_mismatch(value, kind, hints, where)
    if get_origin(kind) in (Union, types.UnionType):
        found = [mismatch(value, option, where) for option in get_args(kind)]
        # A table that does not fit says more of itself than "a table or nothing".
        return None if None in found else found[0] if isinstance(value, dict) else _say_mismatch(value, kind, where)
    inner = _items_of(value, kind)
    if inner is None:
        return None if fits(value, kind) else _say_mismatch(value, kind, where)
    if any(_table_hints(each) is not None or get_origin(each) in (list, dict) for _, _, each in inner):
        named = (mismatch(item, each, f"{where}.{key}" if where else str(key)) for key, item, each in inner)
        return next((text for text in named if text is not None), None)
    return next((_say_mismatch(value, kind, where) for _, item, each in inner if mismatch(item, each, where)), None)


def check(value: Any, kind: Any, where: str = "", *, error: type[Exception] = ValueError, saying: str = "") -> None:
    """Raises an error that says what is wrong with a value, behind words of the caller's; nothing if it fits."""
    if (wrong := mismatch(value, kind, where)) is not None:
        raise error(f"{saying}{wrong}")


def known_part(table: dict[str, Any], kind: Any) -> dict[str, Any]:
    """What a table has under the keys of its kind, where others may stand beside them that nobody looks up."""
    return {key: value for key, value in table.items() if key in kind.__annotations__}


def fits(value: Any, kind: Any) -> bool:
    """Whether a value without parts is of this kind; a whole number may stand for a float, a truth value for none."""
    if get_origin(kind) is Annotated:
        plain, *rules = get_args(kind)
        return fits(value, plain) and all(rule.holds(value) for rule in rules)
    if get_origin(kind) is Literal:
        return isinstance(value, str) and value in get_args(kind)
    if kind is Any:
        return True
    if kind in (None, types.NoneType):
        return value is None
    if kind is int or (kind is float and isinstance(value, int)):
        return isinstance(value, int) and not isinstance(value, bool) and abs(value) <= LARGEST
    if kind is float:
        return isinstance(value, float) and math.isfinite(value)
    return get_origin(kind) is None and isinstance(value, kind)


def describe_kind(kind: Any, *, several: bool = False) -> str:
    """A kind in words."""
    if get_origin(kind) is Annotated:
        plain, *rules = get_args(kind)
        return describe_kind(plain, several=True) if several else rules[0].words
    if get_origin(kind) in (Union, types.UnionType):
        options = get_args(kind)
        return describe_kind(float if float in options else options[0], several=several)
    if get_origin(kind) is Literal:
        return f"one of {', '.join(get_args(kind))}"
    if get_origin(kind) in (list, tuple):
        return f"a list of {describe_kind(get_args(kind)[0], several=True)}"
    words = {int: "a whole number", float: "a number", bool: "true or false", str: "a text", None: "nothing"}
    plural = {int: "whole numbers", float: "numbers", str: "texts"}
    return plural.get(kind, "tables") if several else words.get(kind, "a table")


def _items_of(value: Any, kind: Any) -> list[tuple[Any, Any, Any]] | None:
    """(key, item, kind) of what is in a list or a table of free keys; None for what is no such container."""
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is dict and isinstance(value, dict):
        return [(key, item, arguments[1]) for key, item in value.items()]
    if origin not in (list, tuple) or not isinstance(value, (list, tuple)):
        return None
    endless = origin is list or arguments[-1] is ...
    if not endless and len(arguments) != len(value):
        return None
    each = [arguments[0]] * len(value) if endless else arguments
    return [(number, item, one) for number, (item, one) in enumerate(zip(value, each, strict=True))]


def _table_hints(kind: Any) -> dict[str, Any] | None:
    """The fields of a described table by name; None for any other kind."""
    if get_origin(kind) is None and (is_typeddict(kind) or is_dataclass(kind) or hasattr(kind, "_fields")):
        return get_type_hints(kind, include_extras=True)
    return None


def required_names(kind: Any) -> list[str]:
    """The fields of a described table that have no default."""
    if is_typeddict(kind):
        return [name for name in get_type_hints(kind) if name in kind.__required_keys__]
    if is_dataclass(kind):
        return [f.name for f in fields(kind) if f.default is MISSING and f.default_factory is MISSING]
    return [name for name in kind._fields if name not in kind._field_defaults]


def _table_mismatch(value: Any, kind: Any, hints: dict[str, Any], where: str) -> str | None:
    if not isinstance(value, dict):
        return f"{where or 'it'} must be a table, got {shorten(value)}"
    place = f"{where} " if where else ""
    for name in value:
        if name not in hints:
            return f"{place}has an unknown key {shorten(name)}; it may have {', '.join(hints)}"
    for name in required_names(kind):
        if name not in value:
            return f"{place}lacks {name!r}"
    found = (mismatch(item, hints[name], f"{where}.{name}" if where else name) for name, item in value.items())
    return next((text for text in found if text is not None), None)


def _say_mismatch(value: Any, kind: Any, where: str) -> str:
    return f"{where or 'it'} must be {describe_kind(kind)}, got {shorten(value)}"


def shorten(value: Any) -> str:
    """A value as an error shows it: one line, and never all of a long one."""
    text = repr(value)
    return text if len(text) <= 100 else f"{text[:80]}... ({len(text)} characters)"
