import numpy as np
import pytest
import torch
from scipy.stats import entropy as scipy_entropy

from bacs.objectives import OBJECTIVES, entropy, mean_entropy


def test_entropy_equals_scipy():
    logits = 3 * torch.randn(50, 7, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    expected = scipy_entropy(logits.softmax(dim=1).numpy(), axis=1)
    np.testing.assert_allclose(entropy(logits).numpy(), expected, rtol=1e-12)


def test_uniform_predictions_have_log_classes_and_certain_ones_none():
    assert entropy(torch.zeros(1, 10)).item() == pytest.approx(np.log(10), rel=1e-6)
    assert entropy(torch.tensor([[1000.0, 0.0, -1000.0]])).item() == 0


def test_gradient_is_finite_where_a_probability_is_zero():
    logits = torch.tensor([[2000.0, 0.0, -2000.0]], requires_grad=True)
    mean_entropy(logits).backward()
    assert torch.isfinite(logits.grad).all()


def test_the_catalogue_gives_one_number_each():
    assert OBJECTIVES.keys() == {"entropy"}
    for objective in OBJECTIVES.values():
        assert objective(torch.randn(6, 4)).shape == ()
