"""The adaptation step: descend the objective, held back by the training posterior.

    minimise over w    objective(logits(w)) - beta log q(w)         (paper, appendix "Adaptation Details")

`log q` is quadratic. Its plain gradient step is stable only while learning_rate * beta / variance stays under
2 (1 + momentum); trained networks have weights far outside of that. So the default takes it implicitly, after the
optimiser's step on the objective alone. Its step length is that of the optimiser at rest, so that the fixed point
is exactly the minimum of the whole.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from bacs.errors import unknown_name
from bacs.types import Params

LogQ = Callable[[Params], Tensor]
Proximal = Callable[[Params, float | Params], Params]

OPTIMIZERS = ("sgd", "adam")
POSTERIOR_STEPS = ("proximal", "gradient")


class Descent:
    """The way of one model's parameters: the optimiser with its memory, and the posterior that holds them back.

    A flat posterior has no log q (None). Rate and posterior weight may be changed between steps.
    """

    def __init__(
        self,
        model: nn.Module,
        params: Params,
        *,
        log_q: LogQ | None,
        proximal: Proximal | None,
        posterior_weight: float,
        posterior_step: str,
        learning_rate: float,
        momentum: float,
        optimizer: str,
    ) -> None:
        if posterior_step not in POSTERIOR_STEPS:
            raise unknown_name("posterior_step", posterior_step, POSTERIOR_STEPS)
        self.params = params
        self.posterior_weight = posterior_weight
        self._model_name = type(model).__name__
        self._log_q, self._proximal, self._posterior_step = log_q, proximal, posterior_step
        self._momentum = momentum
        # Only what changes gets a gradient: the backward pass leaves out all the rest.
        for name, p in model.named_parameters():
            p.requires_grad_(name in params)
        self.optimizer: torch.optim.Optimizer
        if optimizer == "sgd":
            self.optimizer = torch.optim.SGD(params.values(), lr=learning_rate, momentum=momentum)
        elif optimizer == "adam":
            self.optimizer = torch.optim.Adam(params.values(), lr=learning_rate, betas=(momentum, 0.999))
        else:
            raise unknown_name("optimizer", optimizer, OPTIMIZERS)

    @property
    def learning_rate(self) -> float:
        return self.optimizer.param_groups[0]["lr"]

    @learning_rate.setter
    def learning_rate(self, value: float) -> None:
        self.optimizer.param_groups[0]["lr"] = value

    def descend(self, objective: Tensor) -> None:
        """Takes one step on the objective minus beta log q. Raises before any change."""
        if not objective.requires_grad:
            raise ValueError(
                f"no gradient reaches the adapted parameters of {self._model_name}: does its forward run under "
                "torch.no_grad, or detach?"
            )
        log_q = None
        if self._log_q is not None and self._posterior_step == "gradient" and self.posterior_weight:
            log_q = self._log_q(self.params)
        loss = adaptation_loss(objective, log_q, posterior_weight=self.posterior_weight)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()
        if self._proximal is not None and self._posterior_step == "proximal" and self.posterior_weight:
            self._hold_back(self._proximal)

    @torch.no_grad()
    def _hold_back(self, proximal: Proximal) -> None:
        """w <- argmin_v |v - w|^2 / (2 s) - log q(v), with s = beta times the optimiser's step length."""
        moved = proximal(self.params, self._step_length())
        for name, p in self.params.items():
            p.copy_(moved[name])

    def _step_length(self) -> float | Params:
        """beta times how far a constant unit gradient moves a parameter in one step, in the long run."""
        if isinstance(self.optimizer, torch.optim.SGD):
            return self.posterior_weight * self.learning_rate / (1 - self._momentum)
        decay, epsilon = self.optimizer.defaults["betas"][1], self.optimizer.defaults["eps"]
        lengths = {}
        for name, p in self.params.items():
            memory: dict[str, Any] = self.optimizer.state[p]
            if not memory:  # a parameter that the loss does not reach has not moved and need not be held
                lengths[name] = torch.zeros_like(p)
                continue
            mean_square = memory["exp_avg_sq"] / (1 - decay ** memory["step"])
            lengths[name] = self.posterior_weight * self.learning_rate / (mean_square.sqrt() + epsilon)
        return lengths


def adaptation_loss(objective: Tensor, log_q: Tensor | None, *, posterior_weight: float) -> Tensor:
    """mean_j H[p(y | x_j, w)] - beta log q(w); log_q None where the posterior is stepped implicitly."""
    return objective if log_q is None else objective - posterior_weight * log_q.to(objective.dtype)
