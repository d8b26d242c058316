import pytest
import torch
from torch import nn

from bacs.parameters import read, select, write


class Mixed(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)
        self.batch = nn.BatchNorm2d(4)
        self.group = nn.GroupNorm(2, 4)
        self.layer = nn.LayerNorm(4)
        self.head = nn.Linear(4, 4)
        self.tied = nn.Linear(4, 4)
        self.tied.weight = self.head.weight


def test_all_means_every_trainable_parameter_once():
    model = Mixed()
    model.conv.bias.requires_grad_(False)
    names = select(model, "all").keys()
    assert names == {name for name, _ in model.named_parameters()} - {"conv.bias"}
    assert "head.weight" in names
    assert "tied.weight" not in names


def test_norm_affine_means_scales_and_shifts_of_every_kind_of_normalisation():
    kinds = {f"{layer}.{part}" for layer in ("batch", "group", "layer") for part in ("weight", "bias")}
    assert select(Mixed(), "norm_affine").keys() == kinds


def test_an_unknown_selection_is_refused_with_the_near_match():
    with pytest.raises(
        ValueError, match=r"adapts must be one of all, norm_affine; got 'norm' \(did you mean 'norm_affine'"
    ):
        select(Mixed(), "norm")


def test_write_and_read_are_inverse_and_keep_ties():
    model = Mixed()
    values = {name: torch.randn_like(p) for name, p in read(model).items()}
    write(model, values)
    assert all(torch.equal(values[name], p) for name, p in read(model).items())
    assert torch.equal(model.tied.weight, values["head.weight"])


def test_write_refuses_parameters_of_another_model():
    with pytest.raises(ValueError, match="params does not belong to this model"):
        write(Mixed(), {"other": torch.zeros(1)})
