"""Values of files against types: what fits, what does not, and what is said of it."""

from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple, NotRequired, TypedDict

import pytest

from bacs.schema import Count, Rule, Share, mismatch


class Inner(NamedTuple):
    name: str
    count: int = 0


@dataclass(frozen=True)
class Sized:
    size: tuple[int, int] | None = None
    mean: tuple[float, ...] = ()


class Table(TypedDict):
    kind: Literal["a", "b"]
    inner: list[Inner]
    sized: Sized | None
    share: Share
    names: NotRequired[dict[str, list[str]]]
    free: NotRequired[Any]


GOOD = {"kind": "a", "inner": [{"name": "x", "count": 3}, {"name": "y"}], "sized": {"size": [3, 4]}, "share": 1}


@pytest.mark.parametrize("change", [{}, {"sized": None}, {"names": {"a": ["b"]}}, {"free": [{}]}, {"inner": []}])
def test_what_fits(change):
    assert mismatch(GOOD | change, Table, "") is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": "c"}, "kind must be one of a, b, got 'c'"),
        ({"kind": ["a"]}, "kind must be one of a, b, got ['a']"),
        ({"inner": [{"name": 3}]}, "inner.0.name must be a text, got 3"),
        ({"inner": [{"name": "x"}, {"count": 1}]}, "inner.1 lacks 'name'"),
        ({"inner": [{"name": "x", "cuont": 1}]}, "inner.0 has an unknown key 'cuont'; it may have name, count"),
        ({"inner": [{"name": "x", "count": True}]}, "inner.0.count must be a whole number, got True"),
        ({"inner": [{"name": "x", "count": 10**30}]}, f"inner.0.count must be a whole number, got {10**30}"),
        ({"inner": {}}, "inner must be a list of tables, got {}"),
        ({"sized": {"size": [3]}}, "sized.size must be a list of whole numbers, got [3]"),
        ({"sized": {"size": [3, 4.0]}}, "sized.size must be a list of whole numbers, got [3, 4.0]"),
        ({"sized": {"mean": [0.5, float("nan")]}}, "sized.mean must be a list of numbers, got [0.5, nan]"),
        ({"sized": 3}, "sized must be a table, got 3"),
        ({"share": 1.5}, "share must be a number from 0 to 1, got 1.5"),
        ({"share": "1"}, "share must be a number from 0 to 1, got '1'"),
        ({"share": float("inf")}, "share must be a number from 0 to 1, got inf"),
        ({"names": {"a": "b"}}, "names.a must be a list of texts, got 'b'"),
        ({"more": 1}, "has an unknown key 'more'; it may have kind, inner, sized, share, names, free"),
        ({"kind": "x" * 1000}, f"kind must be one of a, b, got '{'x' * 79}... (1002 characters)"),
    ],
)
def test_what_does_not_fit_is_named_with_its_place_rule_and_value(change, message):
    assert mismatch(GOOD | change, Table, "") == message


def test_what_is_missing_and_what_is_no_table():
    assert mismatch({}, Table, "") == "lacks 'kind'"
    assert mismatch([], Table, "stream") == "stream must be a table, got []"
    assert mismatch(-1, Count, "steps") == "steps must be a whole number from 0 on, got -1"
    assert mismatch(3, Annotated[int, Rule("even", lambda value: value % 2 == 0)], "n") == "n must be even, got 3"
