"""Members by new last layers."""

from dataclasses import replace

import pytest
import torch
from torch import nn

import bacs
from bacs.parameters import read
from bacs.posteriors import flat
from bacs.pretrained import with_new_head
from bacs.pretrained.new_head import find_head


def head_name(model):
    return [name for name, layer in model.named_modules() if isinstance(layer, nn.Linear)][-1]


def test_only_the_last_layer_changes_and_it_learns_again(untouched, source):
    done = with_new_head(untouched, *source, steps=60, batch_size=16)
    head = head_name(done.model)
    for name, value in untouched.model.state_dict().items():
        same = torch.equal(value, done.model.state_dict()[name])
        assert same != name.startswith(f"{head}."), name
    accuracy = bacs.metrics.accuracy(bacs.Ensemble([done]).predict(source[0]), torch.from_numpy(source[1]))
    assert accuracy > 0.9
    assert done.architecture == untouched.architecture
    assert all(p.requires_grad for p in done.model.parameters())


def test_the_posterior_moves_to_the_new_weights(untouched, source):
    done = with_new_head(replace(untouched, posterior_scale=30.0), *source, steps=2, batch_size=16)
    assert done.posterior_scale == 30.0
    assert all(torch.equal(p, done.posterior.mean[name]) for name, p in done.model.named_parameters())


def test_equal_seeds_agree_and_others_differ(untouched, source):
    one, two, other = (
        read(with_new_head(untouched, *source, steps=3, batch_size=16, seed=seed).model) for seed in (1, 1, 2)
    )
    assert all(torch.equal(one[name], two[name]) for name in one)
    assert not all(torch.equal(one[name], other[name]) for name in one)


def test_a_head_is_found_by_name_or_as_the_last_linear_layer(untouched):
    model = nn.Sequential(nn.Conv2d(3, 4, 1), nn.ReLU(), nn.Conv2d(4, 2, 1))
    assert find_head(model, "2") is model[2]
    with pytest.raises(ValueError, match=r"no nn.Linear: name its last layer by head="):
        find_head(model, None)
    with pytest.raises(ValueError, match="head must be one of 0, 2; got 'fc'"):
        find_head(model, "fc")
    with pytest.raises(ValueError, match="steps must be at least 1, got 0"):
        with_new_head(untouched, torch.zeros(1), torch.zeros(1), steps=0)


def test_the_caller_keeps_its_random_state():
    linear = nn.Linear(2, 2)
    member = bacs.Member(linear, flat.init(read(linear)))
    before = torch.get_rng_state()
    with_new_head(member, torch.randn(4, 2, generator=torch.Generator()), torch.tensor([0, 1, 0, 1]), steps=1)
    assert torch.equal(before, torch.get_rng_state())
