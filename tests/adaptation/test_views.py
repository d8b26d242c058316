"""Second views show the same picture, and seed and step decide which."""

import pytest
import torch

from bacs.adaptation.views import second_view


@pytest.fixture
def batch():
    return torch.arange(2 * 1 * 16 * 24, dtype=torch.float32).reshape(2, 1, 16, 24)


def test_mirrored_is_left_to_right(batch):
    assert torch.equal(second_view(batch, "mirrored", seed=0, step=0), batch[..., range(23, -1, -1)])


def test_shifted_is_the_picture_a_few_pixels_away(batch):
    seen = set()
    for step in range(40):
        moved = second_view(batch, "shifted", seed=0, step=step)
        centre = moved[0, 0, 8, 12].item()  # unlike all others, so that it says where it came from
        row, column = int(centre // 24), int(centre % 24)
        seen.add((row - 8, column - 12))
        assert torch.equal(moved[:, :, 4:12, 6:18], batch[:, :, row - 4 : row + 4, column - 6 : column + 6])
    assert len(seen) > 10
    assert all(abs(down) <= 2 and abs(right) <= 3 for down, right in seen)


def test_seed_and_step_decide(batch):
    def views(seed):
        return torch.stack([second_view(batch, "shifted", seed=seed, step=step) for step in range(10)])

    assert torch.equal(views(0), views(0))
    assert not torch.equal(views(0), views(1))
