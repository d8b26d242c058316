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

from bacs.adaptation.forward import forward
from bacs.errors import unknown_name
from bacs.objectives import Objective
from bacs.types import Params

LogQ = Callable[[Params], Tensor]
Proximal = Callable[[Params, float | Params], Params]

OPTIMIZERS = ("sgd", "adam")
POSTERIOR_STEPS = ("proximal", "gradient")


class Adapter:
    """One model on its way: its changing parameters and the optimiser's memory."""

    def __init__(
        self,
        model: nn.Module,
        params: Params,
        *,
        objective: Objective,
        log_q: LogQ,
        proximal: Proximal,
        posterior_weight: float,
        posterior_step: str,
        learning_rate: float,
        momentum: float,
        optimizer: str,
        class_mask: Tensor | None = None,
        compiled: bool = False,
    ) -> None:
        self.model = model
        self.params = params
        self.class_mask = class_mask
        self._compiled = compiled
        self._objective, self._log_q, self._proximal = objective, log_q, proximal
        self._posterior_weight, self._posterior_step = posterior_weight, posterior_step
        self._learning_rate, self._momentum = learning_rate, momentum
        if posterior_step not in POSTERIOR_STEPS:
            raise unknown_name("posterior_step", posterior_step, POSTERIOR_STEPS)
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

    def step(self, inputs: Tensor) -> Tensor:
        """Takes one step on a batch; returns its logits from before the step. Raises before any change."""
        logits = forward(self.model, inputs, self.class_mask, compiled=self._compiled)
        if not logits.requires_grad:
            raise ValueError(
                f"no gradient reaches the adapted parameters of {type(self.model).__name__}: does its forward run "
                "under torch.no_grad, or detach?"
            )
        loss = adaptation_loss(
            self._objective(logits),
            self._log_q(self.params) if self._posterior_step == "gradient" and self._posterior_weight else None,
            posterior_weight=self._posterior_weight,
        )
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()
        if self._posterior_step == "proximal" and self._posterior_weight:
            self._hold_back()
        return logits.detach()

    @torch.no_grad()
    def _hold_back(self) -> None:
        """w <- argmin_v |v - w|^2 / (2 s) - log q(v), with s = beta times the optimiser's step length."""
        moved = self._proximal(self.params, self._step_length())
        for name, p in self.params.items():
            p.copy_(moved[name])

    def _step_length(self) -> float | Params:
        """beta times how far a constant unit gradient moves a parameter in one step, in the long run."""
        if isinstance(self.optimizer, torch.optim.SGD):
            return self._posterior_weight * self._learning_rate / (1 - self._momentum)
        decay, epsilon = self.optimizer.defaults["betas"][1], self.optimizer.defaults["eps"]
        lengths = {}
        for name, p in self.params.items():
            memory: dict[str, Any] = self.optimizer.state[p]
            if not memory:  # a parameter that the loss does not reach has not moved and need not be held
                lengths[name] = torch.zeros_like(p)
                continue
            mean_square = memory["exp_avg_sq"] / (1 - decay ** memory["step"])
            lengths[name] = self._posterior_weight * self._learning_rate / (mean_square.sqrt() + epsilon)
        return lengths


def adaptation_loss(objective: Tensor, log_q: Tensor | None, *, posterior_weight: float) -> Tensor:
    """mean_j H[p(y | x_j, w)] - beta log q(w); log_q None where the posterior is stepped implicitly."""
    return objective if log_q is None else objective - posterior_weight * log_q.to(objective.dtype)
