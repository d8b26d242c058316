"""Models of every kind keep one contract: all methods run, what may change changes, and what is saved comes back."""

import copy
import functools
import json
import logging

import pytest
import torch
from torch import nn

import bacs
from bacs.errors import CheckpointError
from bacs.methods import prepare
from bacs.parameters import read, select
from bacs.posteriors import flat, swag_diag
from kinds import KINDS, ROWS, OwnRmsNorm, Several, built, picked, tabular
from small import noisy_iterates


def ensemble_of(model):
    state = swag_diag.init(read(model))
    for iterate in noisy_iterates(model):
        state = swag_diag.update(state, iterate)
    return bacs.Ensemble([bacs.Member(model, state)])


def changed(before, after):
    return {name for name, value in read(after).items() if not torch.equal(value, read(before)[name])}


@pytest.mark.parametrize("kind", list(KINDS))
class TestContract:
    def test_tent_changes_the_scales_and_shifts_of_its_norms_and_bacs_everything_trainable(self, kind):
        build, inputs, affine = KINDS[kind]
        model = built(build)
        ensemble = ensemble_of(model)
        adapt = functools.partial(bacs.adapt, ensemble, inputs, batch_size=8, learning_rate=0.05)
        for method in ("vanilla", "bn"):
            assert changed(model, adapt(method).members[0].model) == set()
        trainable = {name for name, p in model.named_parameters() if p.requires_grad}
        assert changed(model, adapt("bacs").members[0].model) == trainable
        if affine is None:
            with pytest.raises(ValueError, match="has no parameter to adapt: the method adapts 'norm_affine'"):
                adapt("tent")
        else:
            assert changed(model, adapt("tent").members[0].model) == affine

    def test_predictions_are_the_softmax_of_the_logits_and_the_adapted_model_comes_back_from_a_file(
        self, kind, tmp_path
    ):
        build, inputs, _ = KINDS[kind]
        model = built(build)
        ensemble = ensemble_of(model)
        raw = copy.deepcopy(model)(inputs)
        logits = raw["logits"] if isinstance(raw, dict) else getattr(raw, "logits", raw)
        torch.testing.assert_close(ensemble.predict(inputs), logits.softmax(dim=1).detach(), check_dtype=False)
        adapted = bacs.adapt(ensemble, inputs, "bacs", batch_size=8, learning_rate=0.05)
        adapted.save(tmp_path / "run")
        before = torch.get_rng_state()
        again = bacs.load(tmp_path / "run", model=build)
        assert torch.equal(before, torch.get_rng_state())
        assert torch.equal(adapted.predict(inputs), again.predict(inputs))
        types = [{n: t.dtype for n, t in e.members[0].model.state_dict().items()} for e in (adapted, again)]
        assert types[0] == types[1]

    def test_a_stream_runs_and_starts_again(self, kind):
        build, inputs, _ = KINDS[kind]
        stream = bacs.stream(ensemble_of(built(build)), "bacs", learning_rate=0.05)
        first = stream.step(inputs)
        stream.reset()
        assert torch.equal(first, stream.step(inputs))


def test_bn_is_vanilla_without_batch_norm_and_said_once(caplog):
    prepare._say_no_batch_norm.cache_clear()
    model = built(lambda: tabular(nn.LayerNorm(8)))
    ensemble = bacs.Ensemble([bacs.Member(model, flat.init(read(model))) for _ in range(3)])
    with caplog.at_level(logging.WARNING, logger="bacs"):
        p = bacs.adapt(ensemble, ROWS, "bn").predict(ROWS)
        bacs.adapt(ensemble, ROWS, "tent")
        bacs.stream(ensemble, "bacs")
    # Rows are drawn in another order under 'bn', and with it the last bits of a matrix product.
    torch.testing.assert_close(p, ensemble.predict(ROWS), atol=1e-6, rtol=0)
    assert [record.getMessage().split(",")[0] for record in caplog.records] == ["Sequential has no batch-norm layers"]


def test_dropout_stays_off_while_adapting():
    ensemble = ensemble_of(built(lambda: tabular(nn.BatchNorm1d(8))))
    streams = [bacs.stream(ensemble, "bacs", learning_rate=0.1) for _ in range(2)]
    for _ in range(3):
        assert torch.equal(*(stream.step(ROWS) for stream in streams))


def test_one_row_left_over_is_no_error():
    ensemble = ensemble_of(built(lambda: tabular(nn.BatchNorm1d(8))))
    seen = []
    p = bacs.adapt(ensemble, ROWS, "bacs", batch_size=8, on_batch=seen.append).predict(ROWS, batch_size=8)
    assert sorted(seen) == [2, 7, 8]
    assert p.shape == (17, 4)


def test_half_precision_among_other_types_adapts_in_float32():
    class Mixed(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.Linear(6, 6), nn.Linear(6, 4, dtype=torch.bfloat16)

        def forward(self, x):
            return self.second(self.first(x).to(self.second.weight.dtype))

    model = built(Mixed)
    ensemble = bacs.Ensemble([bacs.Member(model, flat.init(read(model)))])
    adapted = bacs.adapt(ensemble, ROWS, "bacs", learning_rate=1e-4).members[0].model
    assert {p.dtype for p in adapted.parameters()} == {torch.float32}
    assert changed(model, adapted) == set(read(model))
    assert model.second.weight.dtype == torch.bfloat16


def test_the_forward_hook_reaches_copies_and_the_original_keeps_its_weights():
    model = picked(built(lambda: Several(lambda a, b: (a, b))), lambda output: output[1])
    assert bacs.adapt(ensemble_of(model), ROWS, "bacs").predict(ROWS).shape == (17, 3)


class TestArchitecture:
    def test_a_function_by_its_import_path_builds_the_model_again(self, tmp_path):
        model = nn.Linear(6, 4)
        architecture = bacs.Architecture("torch.nn:Linear", {"in_features": 6, "out_features": 4})
        ensemble = bacs.Ensemble([bacs.Member(model, flat.init(read(model)), architecture=architecture)])
        ensemble.save(tmp_path / "run")
        again = bacs.load(tmp_path / "run", model="torch.nn:Linear")
        assert torch.equal(ensemble.predict(ROWS), again.predict(ROWS))
        assert again.members[0].architecture == architecture

    def test_without_arguments_the_error_says_that_a_function_will_do(self, tmp_path):
        model = nn.Linear(6, 4)
        bacs.Ensemble([bacs.Member(model, flat.init(read(model)))]).save(tmp_path / "run")
        with pytest.raises(CheckpointError, match=r"torch.nn.modules.linear:Linear cannot be built .*pass a function"):
            bacs.load(tmp_path / "run", model=nn.Linear)
        assert bacs.load(tmp_path / "run", model=lambda: nn.Linear(6, 4)).predict(ROWS).shape == (17, 4)

    def test_arguments_that_no_file_can_hold_are_refused_when_named(self):
        with pytest.raises(TypeError, match=r"must be JSON values \(Object of type Linear is not JSON serializable\)"):
            bacs.Architecture("my.module:Net", {"config": nn.Linear(1, 1)})
        assert json.dumps(bacs.Architecture("timm:create_model", {"model_name": "resnet18"}).as_json())


def test_select_knows_the_norms_of_libraries_by_name_and_shape():
    class NormalisedLinear(nn.Linear):
        pass

    model = nn.ModuleDict({"norm": OwnRmsNorm(), "linear": NormalisedLinear(8, 8), "last": nn.RMSNorm(8)})
    assert set(select(model, "norm_affine")) == {"norm.weight", "last.weight"}
