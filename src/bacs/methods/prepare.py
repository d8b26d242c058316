"""A member made ready to adapt: a copy of its model, and the step that a method takes on it."""

import copy
import logging
from collections.abc import Sequence
from dataclasses import replace
from functools import cache, lru_cache

import torch
from torch import Tensor, nn

from bacs import objectives, posteriors
from bacs.adaptation import statistics
from bacs.adaptation.descend import Descent
from bacs.adaptation.loop import Mover
from bacs.adaptation.statistics import Statistics
from bacs.adaptation.views import check_view
from bacs.ensemble import Ensemble, Member
from bacs.layout import arrange, layout_of
from bacs.methods.catalogue import Method
from bacs.methods.settings import AGREEMENT, Settings
from bacs.parameters import batch_norm_layers, select
from bacs.posteriors import gaussian as normal
from bacs.types import Params

HALF = (torch.bfloat16, torch.float16)


def copy_member(member: Member, device: torch.device | str | None) -> Member:
    """A member with a model of its own on the device, in the plain layout; the posterior is shared, being read only.

    Half-precision weights become float32: an adaptation step is smaller than their rounding and would be lost.
    """
    model = copy.deepcopy(member.model)
    if any(tensor.dtype in HALF for tensor in _tensors(model)):
        model._apply(lambda tensor: tensor.float() if tensor.dtype in HALF else tensor)
    if device is not None:
        model = model.to(device)
    return replace(member, model=arrange(model, torch.contiguous_format))


def working_copy(member: Member, device: torch.device | str | None = None) -> Member:
    """As `copy_member`, in the layout in which the model is fastest."""
    own = copy_member(member, device)
    return replace(own, model=arrange(own.model, layout_of(own.model)))


def mover_for(
    member: Member,
    method: Method,
    settings: Settings,
    class_mask: Tensor | None,
    *,
    compiled: bool = False,
    seed: int = 0,
) -> Mover:
    """This member's model under a method, ready to move; the settings are complete (`Settings.of`)."""
    used = statistics_of(settings)
    statistics.use(member.model, used)
    if used.batch_weight > 0 and not batch_norm_layers(member.model):
        _say_no_batch_norm(type(member.model).__name__)
    mover = Mover(member.model, member.prepare, used, class_mask=class_mask, compiled=compiled, seed=seed)
    if method.adapts is None:
        return mover
    objective = method.objective if settings.objective is None else settings.objective
    assert objective is not None
    mover.objective = objectives.compose(objective, temperature=settings.objective_temperature)
    mover.needs, mover.view = _needs(method, settings), settings.view
    mover.descent = descent_of(member, method, settings)
    return mover


def statistics_of(settings: Settings) -> Statistics:
    """What a model adapts under; `accumulated` ones are there only afterwards, and until then it is a mixture."""
    assert settings.batch_weight is not None
    return Statistics(settings.batch_weight, "source" if settings.statistics == "accumulated" else settings.statistics)


def descent_of(member: Member, method: Method, settings: Settings) -> Descent:
    """The way of the parameters that the method adapts."""
    params = select(member.model, str(method.adapts))
    if not params:
        raise ValueError(
            f"{type(member.model).__name__} has no parameter to adapt: the method adapts {method.adapts!r}, and it has "
            "none of these that requires a gradient"
        )
    state = posteriors.flat.init({}) if method.posterior == "flat" else member.posterior
    log_q, proximal = _functions(state, params, settings.min_variance, member.posterior_scale)
    return Descent(
        member.model,
        params,
        log_q=log_q,
        proximal=proximal,
        posterior_weight=settings.posterior_weight,
        posterior_step=settings.posterior_step,
        learning_rate=settings.learning_rate,
        momentum=settings.momentum,
        optimizer=settings.optimizer,
    )


@cache  # once per kind of model, not once per member
def _say_no_batch_norm(name: str) -> None:
    logging.getLogger(__name__).warning(
        "%s has no batch-norm layers, so there are no batch statistics to adapt: 'bn' predicts as 'vanilla', and the "
        "other methods adapt weights alone",
        name,
    )


def _functions(state: posteriors.Posterior, params: Params, min_variance: float, scale: float):
    """log q and its proximal step over `params`, which may be part of what the posterior covers; None of a flat one.

    It is log q^scale, up to a constant: weighed by posterior_weight, it is posterior_weight * scale * log q.
    """
    whole = posteriors.gaussian_of(state, min_variance=min_variance)
    if whole is None:
        return None, None
    q = normal.temper(normal.marginal(whole, params), scale)

    @lru_cache(maxsize=1)  # under SGD the same at every step, until somebody changes the rate
    def gain(step_length: float) -> Params:
        return normal.gain(q, dict.fromkeys(q.mean, step_length))

    def proximal(params: Params, step_length: float | Params) -> Params:
        if q.factor is None and isinstance(step_length, float):
            return normal.towards_mean(q, params, gain(step_length))
        return normal.proximal(q, params, step_length)

    return (lambda params: normal.log_prob(q, params)), proximal


def groups_of(members: int, method: Method, settings: Settings) -> list[list[int]]:
    """Which members move together: all in lockstep if they look at each other, else each on its own."""
    if "peers" in _needs(method, settings):
        return [list(range(members))]
    return [[index] for index in range(members)]


def check_choice(
    ensemble: Ensemble, method: Method, settings: Settings, batches: Sequence[Tensor] | None = None
) -> None:
    """Raises if a choice needs what is not there: peers of a single member, a second view of tokens, a reference.

    `batches`: a few images for each member, if there are some already.
    """
    needs = _needs(method, settings)
    if method.chooses:
        raise ValueError("method 'auto' decides by itself: begin with it, by bacs.adapt or bacs.stream")
    if settings.temperature == AGREEMENT and len(ensemble) < 2:
        raise ValueError(f"temperature {AGREEMENT!r} needs two members or more: one has nobody to agree with")
    if "peers" in needs and len(ensemble) < 2:
        named = settings.objective or "of the method"
        raise ValueError(f"objective {named!r} looks at other members: it needs two or more, got an ensemble of one")
    if "view" in needs and batches is not None:
        for member, batch in zip(ensemble.members, batches, strict=True):
            check_view(member.prepare(batch), settings.view)
    for member in ensemble.members:
        statistics.check_reference(member.model, statistics_of(settings))


def _needs(method: Method, settings: Settings) -> frozenset[str]:
    if method.adapts is None:
        return frozenset()
    return method.needs if settings.objective is None else objectives.needs(settings.objective)


def with_class_mask(ensemble: Ensemble, class_mask: Tensor | None) -> Ensemble:
    """The ensemble under a mask of its own, or the one it already has."""
    return ensemble if class_mask is None else replace(ensemble, class_mask=class_mask)


@torch.no_grad()
def write_back(home: nn.Module, worked: nn.Module) -> None:
    """Writes the weights and statistics of a working copy into the model that it was made from."""
    for mine, theirs in zip(_tensors(home), _tensors(worked), strict=True):
        if not torch.equal(mine, theirs):  # a constant may be expanded, which cannot be written to
            mine.copy_(theirs)


def _tensors(model: nn.Module) -> tuple[Tensor, ...]:
    return (*model.parameters(), *model.buffers())
