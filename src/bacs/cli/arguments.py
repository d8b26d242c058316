"""How the command reads its arguments, and what help and errors call them: in plain words, without Python's types."""

from functools import reduce
from operator import or_
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args

import tyro
from tyro.constructors import (
    ConstructorRegistry,
    PrimitiveConstructorSpec,
    PrimitiveTypeInfo,
    UnsupportedTypeAnnotationError,
)

ARGUMENTS = ConstructorRegistry()

WORDS = {"N N": "two whole numbers", "NUMBER|{agreement}": "a number or the word agreement"}
"""What errors say of values that are more than one thing."""

Flag = Annotated[bool, tyro.conf.FlagCreatePairsOff, tyro.conf.arg(help_behavior_hint="")]
"""A switch: help has its one name, and no word of True and False."""


def takes(metavar: str, *, required: bool = False) -> Any:
    """What help calls the value of an argument. A default is shown where there is one to speak of.

    `required` is for several values of which at least one is needed: tyro would take none.
    """

    def hint(default: str) -> str:
        if required:
            return "(required)"
        return "" if default in ("", "None") else f"(default: {default})"

    return tyro.conf.arg(metavar=metavar, help_behavior_hint=hint)


@ARGUMENTS.primitive_rule
def read_numbers(info: PrimitiveTypeInfo) -> PrimitiveConstructorSpec[Any] | None:
    """`N` for whole numbers and `NUMBER` for others, with errors that say so."""
    if info.type is int:
        return _number("N", "a whole number", int)
    if info.type is float:
        return _number("NUMBER", "a number", float)
    return None


def _number(metavar: str, words: str, kind: type[int] | type[float]) -> PrimitiveConstructorSpec[Any]:
    def read(given: list[str]) -> int | float:
        try:
            return kind(given[0])
        except ValueError:
            raise ValueError(f"must be {words}, got {given[0]}") from None

    # Python's own test of a default: 1 will do for a float, as in any call.
    return PrimitiveConstructorSpec(
        nargs=1,
        metavar=metavar,
        instance_from_str=read,
        is_instance=lambda value: isinstance(value, (int, kind)) and not isinstance(value, bool),
        str_from_instance=lambda value: [str(value)],
    )


@ARGUMENTS.primitive_rule
def read_optional(
    info: PrimitiveTypeInfo,
) -> PrimitiveConstructorSpec[Any] | UnsupportedTypeAnnotationError | None:
    """`N` for `int | None`. Nobody writes None, they leave it out; and errors would speak of both types."""
    kinds = get_args(info.type)
    if info.type_origin not in (Union, UnionType) or NoneType not in kinds:
        return None
    given: Any = reduce(or_, [kind for kind in kinds if kind is not NoneType])
    spec = ConstructorRegistry.get_primitive_spec(PrimitiveTypeInfo.make(given, info.markers))
    if isinstance(spec, UnsupportedTypeAnnotationError):
        return spec

    def read(words: list[str]) -> Any:
        try:
            return spec.instance_from_str(words)
        except ValueError as error:
            own = str(error)
            plain = WORDS.get(spec.metavar, spec.metavar)
            raise ValueError(own if own.startswith("must be") else f"must be {plain}, got {' '.join(words)}") from None

    return PrimitiveConstructorSpec(
        nargs=spec.nargs,
        metavar=spec.metavar,
        instance_from_str=read,
        is_instance=lambda value: value is None or spec.is_instance(value),
        str_from_instance=lambda value: ["None"] if value is None else spec.str_from_instance(value),
        choices=spec.choices,
    )
