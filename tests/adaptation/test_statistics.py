import torch
from torch import nn

from bacs.adaptation.statistics import BATCH, SOURCE, Statistics, accumulate, use, using


def network():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Dropout(0.5), nn.Flatten(), nn.Linear(144, 5))


def state(model):
    return {name: tensor.clone() for name, tensor in model.state_dict().items()}


def test_batch_statistics_normalise_by_the_batch_and_change_no_buffer():
    model = network()
    before = state(model)
    inputs = 3 * torch.randn(16, 3, 8, 8) + 2
    use(model, BATCH)
    with torch.no_grad():
        normalised = model[1](model[0](inputs))
    torch.testing.assert_close(normalised.mean(dim=(0, 2, 3)), torch.zeros(4), atol=1e-5, rtol=0)
    torch.testing.assert_close(normalised.var(dim=(0, 2, 3), correction=0), torch.ones(4), atol=1e-3, rtol=0)
    assert all(torch.equal(before[name], tensor) for name, tensor in model.state_dict().items())


def test_only_batch_norm_leaves_evaluation_mode():
    model = network().train()
    use(model, BATCH)
    assert [layer.training for layer in model] == [False, True, False, False, False]
    use(model, SOURCE)
    assert not any(layer.training for layer in model)


def test_source_statistics_come_back_after_batch_statistics():
    model = network().eval()
    inputs = torch.randn(16, 3, 8, 8) + 2
    with torch.no_grad():
        expected = model(inputs)
        use(model, BATCH)
        assert not torch.allclose(model(inputs), expected)
        use(model, SOURCE)
        assert torch.equal(model(inputs), expected)


def test_using_gives_every_layer_its_own_mode_back():
    model = network().train()
    model[4].eval()
    before = [(layer.training, getattr(layer, "track_running_stats", None)) for layer in model]
    with using(model, BATCH):
        pass
    assert [(layer.training, getattr(layer, "track_running_stats", None)) for layer in model] == before


def test_accumulated_statistics_are_the_average_over_images_of_unequal_batches():
    model = network()
    inputs = torch.randn(20, 3, 8, 8) * torch.linspace(0.5, 2, 20)[:, None, None, None]
    batches = inputs.split([8, 8, 4])
    accumulate(model, batches)
    with torch.no_grad():
        features = [model[0](batch) for batch in batches]
    weights = torch.tensor([8, 8, 4]) / 20
    mean = sum(w * f.mean(dim=(0, 2, 3)) for w, f in zip(weights, features, strict=True))
    variance = sum(w * f.var(dim=(0, 2, 3)) for w, f in zip(weights, features, strict=True))
    torch.testing.assert_close(model[1].running_mean, mean)
    torch.testing.assert_close(model[1].running_var, variance)
    assert model[1].momentum == 0.1
    assert not model[1].training


def test_torch_does_alone_what_is_no_mixture():
    assert not SOURCE.mixes
    assert not BATCH.mixes
    assert Statistics(0.3).mixes
    assert Statistics(1.0, "running").mixes  # the batch's own, which the averages must follow
    assert not Statistics(0.0, "running").mixes
