"""`bacs.stream`: by a method with its settings, or by what the images call for."""

from functools import wraps
from typing import Any

from bacs import methods
from bacs.control import stream_by_choice
from bacs.ensemble import Ensemble, check_ensemble
from bacs.methods import Stream
from bacs.methods.catalogue import Method, find


@wraps(methods.stream)
def stream(ensemble: Ensemble, method: str | Method = "bacs", **arguments: Any) -> Stream:
    check_ensemble(ensemble)
    if find(method)[1].chooses:
        return stream_by_choice(ensemble, **arguments)
    return methods.stream(ensemble, method, **arguments)
