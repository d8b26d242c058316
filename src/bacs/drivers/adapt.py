"""`bacs.adapt`: by a method with its settings, or by what the images call for."""

from functools import wraps
from typing import Any

from bacs import methods
from bacs.control import adapt_by_choice
from bacs.ensemble import Ensemble, check_ensemble
from bacs.inputs import Images
from bacs.methods.catalogue import Method, find


@wraps(methods.adapt)
def adapt(ensemble: Ensemble, images: Images, method: str | Method = "auto", **arguments: Any) -> Ensemble:
    check_ensemble(ensemble)
    if find(method)[1].chooses:
        return adapt_by_choice(ensemble, images, **arguments)
    return methods.adapt(ensemble, images, method, **arguments)
