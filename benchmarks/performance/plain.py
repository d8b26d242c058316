"""The plain side: adaptation as its usual code does it, eager, NCHW, one model after another, nothing tuned.

Batch norm normalises by the batch and has no running averages; entropy, backward, torch.optim.SGD. TENT trains the
scales and shifts of batch norm, the other trains all weights, which is BACS without its posterior.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn

Step = Callable[[Tensor], Tensor]


def mean_entropy(logits: Tensor) -> Tensor:
    return -(logits.softmax(dim=1) * logits.log_softmax(dim=1)).sum(dim=1).mean()


def tent(model: nn.Module, *, learning_rate: float, momentum: float = 0.9) -> Step:
    """A function that takes one TENT step of the model on a batch and returns the logits from before it."""
    model.requires_grad_(False)
    for layer in model.modules():
        if isinstance(layer, nn.BatchNorm2d):
            layer.requires_grad_(True)
    return _stepper(model, learning_rate, momentum)


def all_weights(model: nn.Module, *, learning_rate: float, momentum: float = 0.9) -> Step:
    """As `tent`, for every weight of the model."""
    return _stepper(model.requires_grad_(True), learning_rate, momentum)


def _stepper(model: nn.Module, learning_rate: float, momentum: float) -> Step:
    model.train()
    for layer in model.modules():
        if isinstance(layer, nn.BatchNorm2d):
            layer.track_running_stats = False
            layer.running_mean = layer.running_var = None
    changing = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.SGD(changing, lr=learning_rate, momentum=momentum)

    def step(images: Tensor) -> Tensor:
        logits = model(images)
        mean_entropy(logits).backward()
        optimizer.step()
        optimizer.zero_grad()
        return logits.detach()

    return step


def epoch(step: Step, images: Tensor, batch_size: int) -> None:
    """One pass of steps over all images in random order."""
    order = torch.randperm(len(images), generator=torch.Generator().manual_seed(0))
    for positions in order.split(batch_size):
        step(images[positions])


@torch.no_grad()
def predict(model: nn.Module, images: Tensor, batch_size: int) -> Tensor:
    """Probabilities of all images, with the statistics of each batch."""
    return torch.cat([model(batch).softmax(dim=1) for batch in images.split(batch_size)])
