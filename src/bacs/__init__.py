"""Bayesian test-time adaptation for PyTorch classifiers."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bacs import (
        agreement,
        corruptions,
        data,
        metrics,
        models,
        objectives,
        posteriors,
        predictions,
        pretrained,
        temperature,
        training,
    )
    from bacs.adaptation.statistics import Statistics
    from bacs.architecture import Architecture
    from bacs.control import choose
    from bacs.drivers import Evaluation, adapt, evaluate, load, stream
    from bacs.ensemble import Ensemble, Member
    from bacs.errors import BacsError
    from bacs.methods import METHODS, Method, Stream, calibrate
    from bacs.predictions import predict_table
    from bacs.preprocessing import Preprocessing

__version__ = "0.2.0"

# Names are looked up when they are first used: `bacs --help` need not wait for torch.
_HOMES = {
    "bacs.adaptation.statistics": ["Statistics"],
    "bacs.architecture": ["Architecture"],
    "bacs.control": ["choose"],
    "bacs.drivers": ["Evaluation", "adapt", "evaluate", "load", "stream"],
    "bacs.ensemble": ["Ensemble", "Member"],
    "bacs.errors": ["BacsError"],
    "bacs.methods": ["METHODS", "Method", "Stream", "calibrate"],
    "bacs.predictions": ["predict_table"],
    "bacs.preprocessing": ["Preprocessing"],
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "METHODS",
    "Architecture",
    "BacsError",
    "Ensemble",
    "Evaluation",
    "Member",
    "Method",
    "Preprocessing",
    "Statistics",
    "Stream",
    "adapt",
    "agreement",
    "calibrate",
    "choose",
    "corruptions",
    "data",
    "evaluate",
    "load",
    "metrics",
    "models",
    "objectives",
    "posteriors",
    "predict_table",
    "predictions",
    "pretrained",
    "stream",
    "temperature",
    "training",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'bacs' has no attribute {name!r}")
    home = _HOME_OF.get(name)
    value = import_module(f"bacs.{name}") if home is None else getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
