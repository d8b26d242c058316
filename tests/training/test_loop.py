import copy

import pytest
import torch
from torch import nn
from torch.nn import functional

from bacs.errors import DivergenceError
from bacs.parameters import read
from bacs.posteriors import swag_diag
from bacs.preprocessing import Preprocessing
from bacs.training import Identity, loop
from bacs.training.settings import TrainingSettings
from bacs.training.shard import WHOLE, Shard
from small import small_model

PREPROCESSING = Preprocessing((0.4, 0.4, 0.4), (0.3, 0.3, 0.3))


@pytest.fixture
def tensors(train_data):
    return tuple(torch.from_numpy(array) for array in train_data)


def settings(**changes):
    return TrainingSettings(**({"epochs": 4, "batch_size": 16, "learning_rate": 0.05, "augment": Identity()} | changes))


def test_an_epoch_takes_the_steps_of_a_plain_loop(tensors):
    images, labels = tensors
    ours, plain = small_model(0, classes=3), small_model(0, classes=3)
    chosen = settings(nesterov=True, weight_decay=1e-2, decay_norm=False)
    state = loop.start(ours, chosen)
    norms = [p for layer in plain.modules() if isinstance(layer, nn.BatchNorm2d) for p in layer.parameters()]
    others = [p for p in plain.parameters() if not any(p is norm for norm in norms)]
    optimizer = torch.optim.SGD(
        [{"params": others, "weight_decay": 1e-2}, {"params": norms}], lr=0.05, momentum=0.9, nesterov=True
    )
    plain.train()
    for batch in loop.epoch_batches(images, labels, chosen, 0, WHOLE):
        inputs = (batch.images.float() / 255 - 0.4).div(0.3).permute(0, 3, 1, 2).contiguous()
        optimizer.zero_grad()
        functional.cross_entropy(plain(inputs), batch.labels).backward()
        optimizer.step()
    log = loop.train_epoch(state, images, labels, chosen, PREPROCESSING)
    for (name, p), other in zip(ours.named_parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(p, other, rtol=1e-4, atol=1e-5, msg=name)
    assert log.epoch == state.epoch == 1


def test_every_image_is_met_once_an_epoch_in_batches_of_nearly_one_size(tensors):
    _, labels = tensors
    images = torch.arange(len(labels), dtype=torch.uint8).reshape(-1, 1, 1, 1)
    orders = []
    for epoch in range(2):
        made = list(loop.epoch_batches(images, labels, settings(), epoch, WHOLE))
        assert [len(batch.labels) for batch in made] == [15, 15, 15, 15]
        numbers = torch.cat([batch.images.flatten() for batch in made]).long()
        assert numbers.sort().values.tolist() == list(range(len(labels)))
        assert torch.equal(torch.cat([batch.labels for batch in made]), labels[numbers])
        orders.append(numbers)
    assert not torch.equal(*orders)


def test_shards_of_a_batch_make_up_the_batch(tensors):
    images, labels = tensors
    whole = list(loop.epoch_batches(images, labels, settings(), 0, WHOLE))
    parts = [list(loop.epoch_batches(images, labels, settings(), 0, Shard(index, 4))) for index in range(4)]
    for step, batch in enumerate(whole):
        assert torch.equal(torch.cat([part[step].images for part in parts]), batch.images)
        assert sum(part[step].weight for part in parts) == pytest.approx(4)


def test_images_read_lazily_give_the_same_batches(tensors):
    images, labels = tensors
    lazy = images.numpy()
    for ours, theirs in zip(
        loop.epoch_batches(images, labels, settings(), 0, WHOLE),
        loop.epoch_batches(lazy, labels, settings(), 0, WHOLE),
        strict=True,
    ):
        assert torch.equal(ours.images, theirs.images)


@pytest.mark.parametrize(
    ("epochs", "collect_from", "per_epoch", "count", "first"),
    [(300, 0.533333, 1, 140, 161), (100, 0.9, 4, 40, 90.25), (12, 0.533333, 4, 23, 6.5), (4, 0.0, 1, 4, 1)],
)
def test_iterates_are_collected_evenly_after_the_first_part(epochs, collect_from, per_epoch, count, first):
    steps = 100
    chosen = settings(epochs=epochs, collect_from=collect_from, collections_per_epoch=per_epoch)
    times = [done / steps for done in range(1, epochs * steps + 1) if loop.collects(done, steps, chosen)]
    assert len(times) == count
    assert times[0] == first
    assert times[-1] == epochs


def test_the_posterior_holds_the_moments_of_the_iterates(tensors):
    chosen = settings(collect_from=0.25)
    state = loop.start(small_model(0, classes=3), chosen)
    iterates = []
    for _ in range(4):
        loop.train_epoch(state, *tensors, chosen, PREPROCESSING)
        iterates.append(read(state.model)["conv.weight"].double())
    collected = torch.stack(iterates[1:])
    assert state.posterior.count == 3
    torch.testing.assert_close(state.posterior.mean["conv.weight"], collected.mean(dim=0))
    variance = swag_diag.variance(state.posterior)["conv.weight"]
    torch.testing.assert_close(variance, collected.var(dim=0, unbiased=False))


class WithDropout(nn.Module):
    def __init__(self):
        super().__init__()
        self.drop, self.head = nn.Dropout(0.5), nn.Linear(432, 3)

    def forward(self, images):
        return self.head(self.drop(images.flatten(1)))


def test_equal_seeds_agree_with_dropout_and_other_seeds_do_not_and_the_callers_random_state_stays(tensors):
    torch.manual_seed(7)
    before = torch.get_rng_state()
    torch.manual_seed(7)
    first = WithDropout()
    after_building = torch.get_rng_state()
    models = [copy.deepcopy(first) for _ in range(3)]
    for model, seed in zip(models, (1, 1, 2), strict=True):
        chosen = settings(seed=seed)
        loop.train_epoch(loop.start(model, chosen), *tensors, chosen, PREPROCESSING)
    assert torch.equal(models[0].head.weight, models[1].head.weight)
    assert not torch.equal(models[0].head.weight, models[2].head.weight)
    assert torch.equal(torch.get_rng_state(), after_building)
    torch.set_rng_state(before)


def test_an_objective_of_the_users_own_is_what_is_minimised(tensors):
    images, labels = tensors

    def only_class_2(logits, labels):
        return functional.cross_entropy(logits, torch.full_like(labels, 2))

    chosen = settings(objective=only_class_2, learning_rate=0.1)
    state = loop.start(small_model(0, classes=3), chosen)
    for _ in range(4):
        loop.train_epoch(state, images, labels, chosen, PREPROCESSING)
    predicted = state.model.eval()(PREPROCESSING(images)).argmax(dim=1)
    assert (predicted == 2).float().mean() > 0.9


def test_a_loss_that_is_no_number_stops_the_training_and_says_what_helps(tensors):
    chosen = settings(objective=lambda logits, labels: logits.sum() * float("nan"))
    state = loop.start(small_model(0, classes=3), chosen)
    with pytest.raises(DivergenceError, match=r"training loss was nan in epoch 1; a smaller learning_rate"):
        loop.train_epoch(state, *tensors, chosen, PREPROCESSING)


def test_bfloat16_trains_to_nearly_the_same_loss(tensors):
    losses = {}
    for precision in ("float32", "bfloat16"):
        chosen = settings(precision=precision)
        state = loop.start(small_model(0, classes=3), chosen)
        losses[precision] = loop.train_epoch(state, *tensors, chosen, PREPROCESSING).loss
        assert next(state.model.parameters()).dtype == torch.float32
    assert losses["bfloat16"] == pytest.approx(losses["float32"], rel=0.05)
