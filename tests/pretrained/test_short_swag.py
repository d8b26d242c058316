"""Short SWAG: the trajectory of plain SGD from the checkpoint's weights."""

import pytest
import torch
from torch import nn

import bacs
from bacs.parameters import read
from bacs.posteriors import flat, pull_quantiles, swag_diag
from bacs.pretrained import short_swag


def linear_member():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = nn.Linear(3, 2)
    return bacs.Member(model, flat.init(read(model)))


def test_mean_and_variance_are_those_of_a_hand_written_loop():
    """Batches of all rows: no order, so the trajectory is plain gradient descent with momentum."""
    member = linear_member()
    x = torch.randn(8, 3, generator=torch.Generator().manual_seed(1))
    y = torch.arange(8) % 2
    settings = {"learning_rate": 0.3, "momentum": 0.8, "weight_decay": 0.01}
    done = short_swag(member, x, y, steps=6, collect_every=1, collect_from=0.5, batch_size=8, **settings)
    model = linear_member().model
    optimizer = torch.optim.SGD(model.parameters(), lr=0.3, momentum=0.8, weight_decay=0.01)
    iterates = []
    for step in range(1, 7):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
        if step > 3:
            iterates.append(model.weight.detach().double().clone())
    assert done.posterior.count == 3
    torch.testing.assert_close(done.model.weight.double(), torch.stack(iterates).mean(dim=0), rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(
        swag_diag.variance(done.posterior)["weight"], torch.stack(iterates).var(dim=0, correction=0), rtol=1e-4, atol=0
    )


def test_a_convolutional_checkpoint_gets_a_posterior_and_keeps_what_it_knows(untouched, source):
    done = short_swag(untouched, *source, steps=20, collect_every=2, batch_size=16)
    assert done.posterior.count == 8  # after steps 6, 8, ... 20
    assert pull_quantiles(done).median == pytest.approx(0.2, rel=0.01)  # at the default weight
    assert done.preprocessing == untouched.preprocessing
    assert done.architecture == untouched.architecture
    before, after = (
        bacs.metrics.accuracy(bacs.Ensemble([m]).predict(source[0]), torch.from_numpy(source[1]))
        for m in (untouched, done)
    )
    assert after > before - 0.1
    for name, p in done.model.named_parameters():
        assert torch.equal(p, done.posterior.mean[name].float())


def test_statistics_are_those_of_the_mean_weights(untouched, source):
    done = short_swag(untouched, *source, steps=8, collect_every=2, batch_size=16)
    again = bacs.training.at_mean(done.model, done.posterior, source[0], done.preprocessing)
    first = {name: b.clone() for name, b in done.model.named_buffers() if name.endswith("running_mean")}
    assert first
    for name, b in again.model.named_buffers():
        if name.endswith("running_mean"):
            torch.testing.assert_close(b, first[name], rtol=1e-4, atol=1e-5)


def test_equal_seeds_agree_and_others_go_another_way(untouched, source):
    one, two, other = (
        read(short_swag(untouched, *source, steps=6, collect_every=2, batch_size=16, seed=seed).model)
        for seed in (1, 1, 2)
    )
    assert all(torch.equal(one[name], two[name]) for name in one)
    assert not all(torch.equal(one[name], other[name]) for name in one)


def test_progress_is_told_step_by_step_and_iterate_by_iterate(untouched, source):
    seen, logs = [], []
    short_swag(
        untouched,
        *source,
        steps=8,
        collect_every=4,
        collect_from=0.0,
        batch_size=16,
        on_batch=seen.append,
        on_collect=logs.append,
    )
    assert seen == [16] * 8
    assert [log.iterates for log in logs] == [1, 2]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"steps": 5, "collect_every": 10}, "collect_every must be 1..steps=5, got 10"),
        ({"steps": 20, "collect_every": 10, "collect_from": 0.5}, "at least 2 iterates, got 1 of steps=20"),
        ({"posterior": "fisher_diag"}, "posterior must be one of flat, swag_diag, swag_low_rank; got 'fisher_diag'"),
    ],
)
def test_wrong_arguments_are_refused_by_name(arguments, message):
    with pytest.raises(ValueError, match=message):
        short_swag(linear_member(), torch.ones(4, 3), torch.zeros(4, dtype=torch.long), **arguments)


def test_labels_that_do_not_fit_are_refused(untouched, source):
    with pytest.raises(ValueError, match="one per image: 96 images, labels \\[3\\]"):
        short_swag(untouched, source[0], source[1][:3])
    with pytest.raises(ValueError, match=r"labels must be 0..2, got 5..7"):
        short_swag(untouched, source[0], source[1] + 5)
    with pytest.raises(TypeError, match="images must be a tensor, an array or images of bacs.data.load, got list"):
        short_swag(untouched, list(source[0]), source[1])
