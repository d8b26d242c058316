"""What a method's row says of itself, against what happens."""

import pytest
import torch

import bacs
from bacs.methods.catalogue import label_of
from small import small_member


def test_every_method_has_two_labels_of_its_own():
    labels = [label_of(method, kind) for method in bacs.METHODS for kind in ("single", "ensemble")]
    assert len(set(labels)) == 2 * len(bacs.METHODS)
    assert not set(labels) & set(bacs.METHODS)
    assert label_of("nobodys-method", "single") == "nobodys-method"
    assert label_of("nobodys-method", "ensemble") == "nobodys-method ensemble"


@pytest.mark.parametrize("method", bacs.METHODS)
@pytest.mark.parametrize(("protocol", "epochs"), [("offline", 1), ("offline", 2), ("online", 1)])
def test_the_passes_of_a_row_are_those_that_are_made(method, protocol, epochs):
    ensemble, images = bacs.Ensemble([small_member(seed) for seed in range(2)]), torch.randn(8, 3, 12, 12)
    how = {"epochs": epochs} if protocol == "offline" else {}
    counts = []
    bacs.evaluate(ensemble, images, torch.zeros(8, dtype=int), method, protocol=protocol, on_batch=counts.append, **how)
    assert sum(counts) == bacs.METHODS[method].passes(protocol, epochs) * len(images) * len(ensemble)
