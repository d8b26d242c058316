"""The rows of the paper's tables, as data.

A method names one choice of each kind: batch-norm statistics, adapted parameters, objective, posterior.
"""

from dataclasses import dataclass
from typing import Literal

from bacs.errors import unknown_name
from bacs.objectives import OBJECTIVES, Objective
from bacs.parameters import SELECTIONS


@dataclass(frozen=True)
class Method:
    """One way to adapt. `adapts=None` changes no parameter; `posterior` is `flat` or the member's own."""

    statistics: Literal["source", "test"]
    adapts: str | None
    objective: str | Objective | None = None
    posterior: Literal["flat", "member"] | None = None

    def __post_init__(self) -> None:
        if self.statistics not in ("source", "test"):
            raise unknown_name("statistics", self.statistics, ("source", "test"))
        if self.adapts is None:
            return
        if self.adapts not in SELECTIONS:
            raise unknown_name("adapts", self.adapts, SELECTIONS)
        if not callable(self.objective) and self.objective not in OBJECTIVES:
            raise unknown_name("objective", self.objective, list(OBJECTIVES))
        if self.posterior not in ("flat", "member"):
            raise unknown_name("posterior", self.posterior, ("flat", "member"))

    @property
    def objective_function(self) -> Objective:
        """The objective itself, by name or as given."""
        return self.objective if callable(self.objective) else OBJECTIVES[str(self.objective)]


METHODS: dict[str, Method] = {
    "vanilla": Method(statistics="source", adapts=None),
    "bn": Method(statistics="test", adapts=None),
    "tent": Method(statistics="test", adapts="norm_affine", objective="entropy", posterior="flat"),
    "bacs": Method(statistics="test", adapts="all", objective="entropy", posterior="member"),
    "bacs-no-posterior": Method(statistics="test", adapts="all", objective="entropy", posterior="flat"),
}


def find(method: str | Method) -> tuple[str, Method]:
    """Name and row of a method that is in the catalogue, or was made by the caller."""
    if isinstance(method, Method):
        known = [name for name, row in METHODS.items() if row == method]
        return (known[0] if known else "custom"), method
    if method not in METHODS:
        raise unknown_name("method", method, list(METHODS))
    return method, METHODS[method]
