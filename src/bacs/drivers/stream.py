"""`bacs.stream`: by a method with its settings, or by what the images call for; watched by a guard, or not."""

from functools import wraps
from inspect import Parameter, signature
from typing import Any

from bacs import methods
from bacs.control import guard_stream, stream_by_choice
from bacs.ensemble import Ensemble, check_ensemble
from bacs.methods import Stream
from bacs.methods.catalogue import Method, find
from bacs.methods.settings import check_guard

GUARD = """
    `guard=True` watches the stream at a cost of about 15 %: it compares adapted weights with the ensemble as it came,
    holds still when the world changes, goes back where adapting did harm, and gathers batches of fewer than 32 images
    before it steps on them. 'auto' does so unless told `guard=False`, and then it decides once, on its first images.
    """


@wraps(methods.stream)
def stream(ensemble: Ensemble, method: str | Method = "auto", *, guard: bool | None = None, **arguments: Any) -> Stream:
    check_ensemble(ensemble)
    check_guard(guard)
    if find(method)[1].chooses:
        return stream_by_choice(ensemble, **arguments, guard=guard is not False)
    plain = methods.stream(ensemble, method, **arguments)
    return guard_stream(plain) if guard else plain


stream.__doc__ = f"{(methods.stream.__doc__ or '').rstrip()}\n{GUARD}"
_plain = signature(methods.stream)
_guard = Parameter("guard", Parameter.KEYWORD_ONLY, default=None, annotation="bool | None")
stream.__signature__ = _plain.replace(parameters=[*_plain.parameters.values(), _guard])  # type: ignore[attr-defined]
