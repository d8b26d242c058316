"""What a record holds beside its scores: the label-free figures, and scores at other temperatures."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import bacs
from bacs.benchmark import records, sweep
from bacs.benchmark.recipe import parse
from tiny import SWEEP, tiny_ensemble


def test_a_record_has_what_predictions_show_and_their_scores_at_other_temperatures(tmp_path):
    ensemble = tiny_ensemble()
    ensemble.save(tmp_path / "run")
    table = SWEEP | {"corruptions": ["fog"], "methods": ["bn"], "batch_weight": 0.6}
    sweep(parse(table), tmp_path / "run", tmp_path / "out")
    (record,) = records(tmp_path / "out")
    shift = bacs.data.shift("fashion-mnist-part-c/fog/5", limit=32)
    adapted = bacs.adapt(ensemble, np.asarray(shift.images), "bn", batch_size=16, batch_weight=0.6)
    rows = [adapted.predict_member(i, shift.images, batch_size=16) for i in range(2)]
    assert record["observed"]["agreement"] == pytest.approx(bacs.agreement.pairwise(rows))
    assert record["settings"]["batch_weight"] == 0.6
    found = dict(zip(record["tempered"]["temperature"], record["tempered"]["nll"], strict=True))
    assert found[1.0] == pytest.approx(record["ensemble"]["nll"])
    for temperature in (0.75, 4.0):
        warm = replace(adapted, temperature=temperature).predict(shift.images, batch_size=16)
        assert found[temperature] == pytest.approx(bacs.metrics.nll(warm, torch.as_tensor(shift.labels)), rel=1e-5)
