"""Small models of every kind that users bring."""

from collections import OrderedDict, namedtuple

import torch
from torch import nn

IMAGES = torch.randn(17, 3, 12, 12, generator=torch.Generator().manual_seed(0))
ROWS = torch.randn(17, 6, generator=torch.Generator().manual_seed(0))
SERIES = torch.randn(17, 4, 10, generator=torch.Generator().manual_seed(0))
TOKENS = torch.randint(1, 30, (17, 7), generator=torch.Generator().manual_seed(0))


def convolutional(norm):
    return nn.Sequential(nn.Conv2d(3, 8, 3), norm, nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 4))


def tabular(norm):
    return nn.Sequential(nn.Linear(6, 8), norm, nn.ReLU(), nn.Dropout(0.5), nn.Linear(8, 4))


class Tokens(nn.Module):
    """Text: the mean of embedded tokens. Its mask is made of the tokens, so that one tensor is all it needs."""

    def __init__(self):
        super().__init__()
        self.embedding, self.norm, self.head = nn.Embedding(30, 8, padding_idx=0), nn.LayerNorm(8), nn.Linear(8, 4)

    def forward(self, tokens):
        mask = (tokens != 0).unsqueeze(-1)
        return self.head(self.norm((self.embedding(tokens) * mask).sum(dim=1) / mask.sum(dim=1)))


class OwnRmsNorm(nn.Module):
    """As libraries bring them along: a norm that is none of torch's classes."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(8))

    def forward(self, x):
        return x * self.weight / (x.square().mean(dim=-1, keepdim=True) + 1e-6).sqrt()


class FrozenBatchNorm(nn.Module):
    """As torchvision has it: statistics, scale and shift are buffers."""

    def __init__(self):
        super().__init__()
        for name, value in (("weight", 1.0), ("bias", 0.0), ("running_mean", 0.1), ("running_var", 2.0)):
            self.register_buffer(name, torch.full((8,), value))

    def forward(self, x):
        scale = (self.weight / self.running_var.sqrt())[:, None, None]
        return x * scale + self.bias[:, None, None] - self.running_mean[:, None, None] * scale


class Several(nn.Module):
    """Two heads; `form` says how they are returned."""

    def __init__(self, form):
        super().__init__()
        self.norm, self.first, self.second = nn.BatchNorm1d(6), nn.Linear(6, 4), nn.Linear(6, 3)
        self.form = form

    def forward(self, x):
        return self.form(self.first(self.norm(x)), self.second(self.norm(x)))


class SeveralTypes(nn.Module):
    """float64 in the last layer, float32 before."""

    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8)), nn.Linear(8, 4, dtype=torch.float64)

    def forward(self, x):
        return self.head(self.body(x).double())


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.norm, self.second = nn.Linear(6, 6), nn.LayerNorm(6), nn.Linear(6, 6)
        self.second.weight = self.first.weight

    def forward(self, x):
        return self.second(torch.relu(self.norm(self.first(x))))


def picked(model, pick):
    """The user's one line for models with several outputs."""
    model.register_forward_hook(lambda module, inputs, output: pick(output))
    return model


def frozen(model, *names):
    for name, p in model.named_parameters():
        p.requires_grad_(name not in names)
    return model


Heads = namedtuple("Heads", ["features", "logits"])

# name: (function that builds the model, its inputs, what TENT changes: None if there is nothing for it)
KINDS = {
    "batch norm": (lambda: convolutional(nn.BatchNorm2d(8)), IMAGES, {"1.weight", "1.bias"}),
    "batch norm, average": (lambda: convolutional(nn.BatchNorm2d(8, momentum=None)), IMAGES, {"1.weight", "1.bias"}),
    "batch norm, untracked": (
        lambda: convolutional(nn.BatchNorm2d(8, track_running_stats=False)),
        IMAGES,
        {"1.weight", "1.bias"},
    ),
    "batch norm, no affine": (lambda: convolutional(nn.BatchNorm2d(8, affine=False)), IMAGES, None),
    "batch norm, frozen": (lambda: frozen(convolutional(nn.BatchNorm2d(8)), "1.weight", "1.bias"), IMAGES, None),
    "batch norm, buffers only": (lambda: convolutional(FrozenBatchNorm()), IMAGES, None),
    "synchronised batch norm": (lambda: convolutional(nn.SyncBatchNorm(8)), IMAGES, {"1.weight", "1.bias"}),
    "group norm": (lambda: convolutional(nn.GroupNorm(2, 8)), IMAGES, {"1.weight", "1.bias"}),
    "instance norm": (lambda: convolutional(nn.InstanceNorm2d(8, affine=True)), IMAGES, {"1.weight", "1.bias"}),
    "layer norm": (lambda: tabular(nn.LayerNorm(8)), ROWS, {"1.weight", "1.bias"}),
    "a library's norm": (lambda: tabular(OwnRmsNorm()), ROWS, {"1.weight"}),
    "no norm": (lambda: tabular(nn.Identity()), ROWS, None),
    "table": (lambda: tabular(nn.BatchNorm1d(8)), ROWS, {"1.weight", "1.bias"}),
    "series": (
        lambda: nn.Sequential(nn.Conv1d(4, 8, 3), nn.BatchNorm1d(8), nn.ReLU(), nn.Flatten(), nn.Linear(64, 4)),
        SERIES,
        {"1.weight", "1.bias"},
    ),
    "tokens": (Tokens, TOKENS, {"norm.weight", "norm.bias"}),
    "tied weights": (Tied, ROWS, {"norm.weight", "norm.bias"}),
    "several types": (SeveralTypes, ROWS, {"body.1.weight", "body.1.bias"}),
    "object with logits": (lambda: Several(lambda a, b: Heads(b, a)), ROWS, {"norm.weight", "norm.bias"}),
    "dict with logits": (lambda: Several(lambda a, b: {"x": b, "logits": a}), ROWS, {"norm.weight", "norm.bias"}),
    "picked of a tuple": (
        lambda: picked(Several(lambda a, b: (b, a)), lambda output: output[1]),
        ROWS,
        {"norm.weight", "norm.bias"},
    ),
    "picked of a dict": (
        lambda: picked(Several(lambda a, b: OrderedDict(u=a, v=b)), lambda output: output["u"]),
        ROWS,
        {"norm.weight", "norm.bias"},
    ),
}


def built(build):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return build().eval()
