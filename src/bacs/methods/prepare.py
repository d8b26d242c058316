"""A member made ready to adapt: a copy of its model, and the step that a method takes on it."""

import copy
import logging
from dataclasses import replace
from functools import cache

import torch
from torch import Tensor, nn

from bacs import posteriors
from bacs.adaptation import norm_statistics
from bacs.adaptation.step import Adapter
from bacs.ensemble import Member
from bacs.layout import arrange, layout_of
from bacs.methods.catalogue import Method
from bacs.methods.settings import Settings
from bacs.parameters import batch_norm_layers, select
from bacs.posteriors import gaussian as normal
from bacs.types import Params

HALF = (torch.bfloat16, torch.float16)


def copied(member: Member, device: torch.device | str | None) -> Member:
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
    """As `copied`, in the layout in which the model is fastest."""
    own = copied(member, device)
    return replace(own, model=arrange(own.model, layout_of(own.model)))


def adapter_for(
    member: Member, method: Method, settings: Settings, class_mask: Tensor | None, *, compiled: bool = False
) -> Adapter | None:
    """The adapter of this member's model under a method, None if the method changes no parameter."""
    norm_statistics.use(member.model, "batch" if method.statistics == "test" else "source")
    if method.statistics == "test" and not batch_norm_layers(member.model):
        _say_no_batch_norm(type(member.model).__name__)
    if method.adapts is None:
        return None
    params = select(member.model, method.adapts)
    if not params:
        raise ValueError(
            f"{type(member.model).__name__} has no parameter to adapt: the method adapts {method.adapts!r}, and it has "
            "none of these that requires a gradient"
        )
    state = posteriors.flat.init({}) if method.posterior == "flat" else member.posterior
    log_q, proximal = _functions(state, params, settings.min_variance)
    return Adapter(
        member.model,
        params,
        objective=method.objective_function,
        log_q=log_q,
        proximal=proximal,
        posterior_weight=0.0 if isinstance(state, posteriors.flat.Flat) else settings.posterior_weight,
        posterior_step=settings.posterior_step,
        learning_rate=settings.learning_rate,
        momentum=settings.momentum,
        optimizer=settings.optimizer,
        class_mask=class_mask,
        compiled=compiled,
    )


@cache  # said once a kind of model, not once a member
def _say_no_batch_norm(name: str) -> None:
    logging.getLogger(__name__).warning(
        "%s has no batch-norm layers, so there are no batch statistics to adapt: 'bn' predicts as 'vanilla', and the "
        "other methods adapt weights alone",
        name,
    )


def _functions(state: posteriors.Posterior, params: Params, min_variance: float):
    """log q and its proximal step over `params`, which may be part of what the posterior covers."""
    whole = posteriors.gaussian_of(state, min_variance=min_variance)
    if whole is None:
        return (lambda params: torch.zeros(())), (lambda params, step_length: params)
    q = normal.marginal(whole, params)

    @cache  # under SGD the same at every step
    def gain(step_length: float) -> Params:
        return normal.gain(q, dict.fromkeys(q.mean, step_length))

    def proximal(params: Params, step_length: float | Params) -> Params:
        if q.factor is None and isinstance(step_length, float):
            return normal.towards_mean(q, params, gain(step_length))
        return normal.proximal(q, params, step_length)

    return (lambda params: normal.log_prob(q, params)), proximal


@torch.no_grad()
def settle(home: nn.Module, worked: nn.Module) -> None:
    """Writes the weights and statistics of a working copy into the model that it was made from."""
    for mine, theirs in zip(_tensors(home), _tensors(worked), strict=True):
        if not torch.equal(mine, theirs):  # a constant may be expanded, which cannot be written to
            mine.copy_(theirs)


def _tensors(model: nn.Module) -> tuple[Tensor, ...]:
    return (*model.parameters(), *model.buffers())
