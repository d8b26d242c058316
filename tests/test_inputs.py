"""Batches cover every image once, in whatever form the images come."""

import functools

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset

from bacs import inputs


@settings(deadline=None, max_examples=60)
@given(count=st.integers(1, 70), batch_size=st.integers(1, 80), seed=st.none() | st.integers(0, 5))
def test_every_image_is_met_once_and_no_batch_is_too_large(count, batch_size, seed):
    images = torch.arange(count, dtype=torch.float32)[:, None]
    generator = None if seed is None else torch.Generator().manual_seed(seed)
    pairs = list(inputs.batches(images, batch_size, generator=generator))
    positions = torch.cat([where for where, _ in pairs])
    assert sorted(positions.tolist()) == list(range(count))
    assert all(torch.equal(batch[:, 0], where.float()) for where, batch in pairs)
    sizes = [len(batch) for _, batch in pairs]
    assert len(sizes) == -(-count // batch_size)
    assert max(sizes) <= batch_size
    assert sizes[:-2] == [batch_size] * len(sizes[:-2])
    assert min(sizes) > 1 or count == 1 or batch_size <= 2


@pytest.mark.parametrize(("share", "met"), [(0.5, 10), (0.25, 5), (0.001, 2), (1.0, 20)])
def test_a_share_is_of_images_chosen_at_random_and_never_of_one(share, met):
    images = torch.arange(20.0).reshape(20, 1)
    batch = functools.partial(inputs.batches, images, 4, share=share)
    positions = torch.cat([where for where, _ in batch(generator=torch.Generator().manual_seed(3))])
    assert positions.tolist() == torch.randperm(20, generator=torch.Generator().manual_seed(3))[:met].tolist()
    assert torch.cat([where for where, _ in batch()]).tolist() == list(range(met))


def test_batches_in_order_are_views_without_a_copy():
    images = torch.randn(10, 3)
    _, batch = next(inputs.batches(images, 4))
    assert batch.data_ptr() == images.data_ptr()
    array = np.random.default_rng(0).integers(0, 256, (10, 4, 4, 3), dtype=np.uint8)
    _, batch = next(inputs.batches(array, 4))
    assert batch.data_ptr() == array.ctypes.data


class Pairs(Dataset):
    """A Dataset as torchvision has them: image and label."""

    def __len__(self):
        return 9

    def __getitem__(self, index):
        if index >= 9:
            raise IndexError
        return np.full((3, 2, 2), index, np.float32), index % 3


class ManyAtOnce(Pairs):
    def __getitem__(self, index):
        raise AssertionError("one item was asked for where many could be had")

    def __getitems__(self, indices):
        return [Pairs.__getitem__(self, index) for index in indices]


@pytest.mark.parametrize("dataset", [Pairs(), ManyAtOnce()])
def test_of_a_pair_only_the_image_is_read(dataset):
    batches = [batch for _, batch in inputs.batches(dataset, 4)]
    assert torch.equal(torch.cat(batches)[:, 0, 0, 0], torch.arange(9.0))


def test_a_share_of_a_loader_is_whole_batches():
    loader = DataLoader(TensorDataset(torch.zeros(22, 3)), batch_size=5)
    assert [len(batch) for _, batch in inputs.batches(loader, 100, share=0.4)] == [5, 5]
    assert [len(batch) for _, batch in inputs.batches(loader, 100, share=0.01)] == [5]


def test_a_share_of_a_loader_without_a_length_is_an_error():
    class Endless(IterableDataset):
        def __iter__(self):
            yield torch.zeros(3)

    with pytest.raises(ValueError, match="epochs must be a whole number for a DataLoader that has no length"):
        list(inputs.batches(DataLoader(Endless()), 4, share=0.5))


def test_a_loader_keeps_its_own_batches():
    loader = DataLoader(Pairs(), batch_size=5)
    pairs = list(inputs.batches(loader, batch_size=2))
    assert [where.tolist() for where, _ in pairs] == [[0, 1, 2, 3, 4], [5, 6, 7, 8]]


def test_a_sample_of_a_loader_is_a_fair_draw_that_a_seed_repeats():
    images = torch.arange(60.0).reshape(60, 1)
    loader = DataLoader(TensorDataset(images), batch_size=7)
    drawn = [inputs.sample(loader, 20, seed=seed)[:, 0] for seed in range(200)]
    assert torch.equal(drawn[3], inputs.sample(loader, 20, seed=3)[:, 0])
    assert all(len(set(draw.tolist())) == 20 for draw in drawn)
    met = torch.bincount(torch.cat(drawn).long(), minlength=60) / len(drawn)
    assert (met - 20 / 60).abs().max() < 0.14  # four deviations of 200 draws
    assert torch.equal(inputs.sample(loader, 100, seed=0), images)


def test_members_that_share_a_view_share_its_sample():
    images, other = torch.randn(30, 2), torch.randn(30, 3)
    first, second, third = inputs.sample(inputs.PerMember((images, other, images)), 5, seed=1)
    assert first is third
    chosen = [int((images == row).all(dim=1).nonzero()) for row in first]
    assert torch.equal(second, other[chosen])
