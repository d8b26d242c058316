"""How the command reads an argument that may be left out: as what it is, without a word of None."""

from functools import reduce
from operator import or_
from types import NoneType, UnionType
from typing import Any, Union, get_args

from tyro.constructors import (
    ConstructorRegistry,
    PrimitiveConstructorSpec,
    PrimitiveTypeInfo,
    UnsupportedTypeAnnotationError,
)

ARGUMENTS = ConstructorRegistry()


@ARGUMENTS.primitive_rule
def may_be_left_out(
    info: PrimitiveTypeInfo,
) -> PrimitiveConstructorSpec[Any] | UnsupportedTypeAnnotationError | None:
    """`INT` for `int | None`. Nobody writes None, they leave it out; and errors would speak of both types."""
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
        except ValueError:
            raise ValueError(f"must be {spec.metavar}, got {' '.join(words)}") from None

    return PrimitiveConstructorSpec(
        nargs=spec.nargs,
        metavar=spec.metavar,
        instance_from_str=read,
        is_instance=lambda value: value is None or spec.is_instance(value),
        str_from_instance=lambda value: ["None"] if value is None else spec.str_from_instance(value),
        choices=spec.choices,
    )
