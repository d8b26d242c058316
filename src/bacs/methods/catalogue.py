"""Methods as rows of data: what each adapts, by which statistics, objective and posterior, and what it is called.

Whoever needs to know what a method uses, costs or is called asks its row.
"""

from dataclasses import dataclass, field
from typing import Literal

from bacs import objectives
from bacs.adaptation.statistics import check_batch_weight
from bacs.errors import unknown_name
from bacs.objectives import Objective
from bacs.parameters import SELECTIONS

PROTOCOLS = ("offline", "online", "continual", "gradual", "world")
BACKWARD = {"all": 2, "norm_affine": 1}
"""Cost of the way back in forward passes, by what is adapted: gradients of activations are one, of weights another."""


@dataclass(frozen=True, kw_only=True)
class Method:
    """One way to adapt. `adapts=None` changes no parameter; `posterior` is `flat` or the member's own.

    `batch_weight` is the share r of the test batch in batch norm's statistics: 0 those of training, 1 the batch's.
    `objective` is a name, a weighted sum of names, or a function of logits.
    """

    adapts: str | None
    batch_weight: float = 1.0
    objective: str | Objective | None = None
    posterior: Literal["flat", "member"] | None = None
    chooses: bool = False  # the images decide, without labels, how much of the row is done (`bacs.choose`)
    label: str = field(default="", compare=False)  # of single models in tables
    ensemble_label: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        check_batch_weight(self.batch_weight)
        if self.adapts is None:
            return
        if self.adapts not in SELECTIONS:
            raise unknown_name("adapts", self.adapts, SELECTIONS)
        if self.objective is None:
            raise unknown_name("objective", None, list(objectives.OBJECTIVES))
        objectives.terms(self.objective)
        if self.posterior not in ("flat", "member"):
            raise unknown_name("posterior", self.posterior, ("flat", "member"))

    @property
    def uses(self) -> tuple[str, ...]:
        """The settings that its predictions depend on."""
        if self.chooses:
            return ("batch_size", "guard")
        predicting = ("batch_size", "batch_weight", "statistics", "temperature", "reset_every", "guard")
        if self.adapts is None:
            return predicting
        adapting = ("learning_rate", "momentum", "optimizer", "objective", "objective_temperature", "view")
        holding = ("posterior_weight", "posterior_step", "min_variance")
        return (*predicting, *adapting, *(() if self.posterior == "flat" else holding))

    @property
    def needs(self) -> frozenset[str]:
        """What its objective looks at beside a member's own logits: `peers`, `view`, both or nothing."""
        return frozenset() if self.objective is None else objectives.needs(self.objective)

    @property
    def knows_protocol(self) -> bool:
        """Whether predictions depend on how images arrive; not if nothing is adapted, not even statistics."""
        return self.adapts is not None or self.batch_weight > 0

    def passes(self, protocol: str, epochs: int | float) -> int | float:
        """How often each image meets each member: to adapt, and offline once more to predict.

        What `auto` asks a probe of the images comes on top: it does not grow with their number.
        """
        return epochs + 1 if protocol == "offline" and self.adapts is not None else 1

    def cost(self, protocol: str, epochs: int | float) -> int | float:
        """The same in forward passes: a pass that adapts goes there and back."""
        if self.adapts is None:
            return 1
        adapting = epochs if protocol == "offline" else 1
        return self.passes(protocol, epochs) + BACKWARD[self.adapts] * adapting


METHODS: dict[str, Method] = {
    "vanilla": Method(adapts=None, batch_weight=0.0, label="Vanilla", ensemble_label="Vanilla Ensemble"),
    "bn": Method(adapts=None, label="BN Adapt", ensemble_label="Ensemble BN Adapt"),
    "tent": Method(
        adapts="norm_affine", objective="entropy", posterior="flat", label="TENT", ensemble_label="Ensemble TENT"
    ),
    "bacs": Method(adapts="all", objective="entropy", posterior="member", label="BACS (MAP)", ensemble_label="BACS"),
    "bacs-no-posterior": Method(
        adapts="all",
        objective="entropy",
        posterior="flat",
        label="BACS (MAP) - posterior",
        ensemble_label="BACS - posterior",
    ),
    "auto": Method(
        adapts="all",
        objective="information_maximisation",
        posterior="member",
        chooses=True,
        label="Auto",
        ensemble_label="Auto Ensemble",
    ),
}


def find(method: str | Method) -> tuple[str, Method]:
    """Name and row of a method that is in the catalogue, or was made by the caller."""
    if isinstance(method, Method):
        known = [name for name, row in METHODS.items() if row == method]
        return (known[0] if known else "custom"), method
    if method not in METHODS:
        raise unknown_name("method", method, list(METHODS))
    return method, METHODS[method]


def label_of(method: str, kind: str) -> str:
    """What tables call a method as single models or as an ensemble; one outside the catalogue by its own name."""
    row = METHODS.get(method)
    own = "" if row is None else row.ensemble_label if kind == "ensemble" else row.label
    return own or (f"{method} ensemble" if kind == "ensemble" else method)
