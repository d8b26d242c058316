import pytest
import torch

from bacs.training.settings import cross_entropy, cross_entropy_with


def test_label_smoothing_mixes_the_target_with_the_uniform_distribution():
    logits = torch.randn(7, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    labels = torch.tensor([0, 1, 2, 3, 0, 1, 2])
    target = 0.9 * torch.eye(4, dtype=torch.float64)[labels] + 0.1 / 4
    expected = -(target * logits.softmax(dim=1).log()).sum(dim=1).mean()
    torch.testing.assert_close(cross_entropy_with(0.1)(logits, labels), expected)


def test_cross_entropy_is_the_mean_negative_log_probability():
    logits = torch.tensor([[2.0, 0.0], [0.0, 1.0]])
    expected = -(torch.tensor([2.0, 0.0]).softmax(0)[0].log() + torch.tensor([0.0, 1.0]).softmax(0)[1].log()) / 2
    torch.testing.assert_close(cross_entropy(logits, torch.tensor([0, 1])), expected)


def test_smoothing_of_one_is_refused():
    with pytest.raises(ValueError, match="label_smoothing must be at least 0 and below 1, got 1"):
        cross_entropy_with(1)
