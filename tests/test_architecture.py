"""Models of every kind keep one contract: all methods run, what may change changes, and what is saved comes back.

What cannot work says so in a line or two, before any work is done.
"""

import copy
import functools
import json
import logging
from collections import OrderedDict, namedtuple

import pytest
import torch
from torch import nn

import bacs
from bacs.errors import CheckpointError
from bacs.methods import prepare
from bacs.parameters import read, select
from bacs.posteriors import flat, swag_diag
from small import noisy_iterates

IMAGES = torch.randn(17, 3, 12, 12, generator=torch.Generator().manual_seed(0))
ROWS = torch.randn(17, 6, generator=torch.Generator().manual_seed(0))
SERIES = torch.randn(17, 4, 10, generator=torch.Generator().manual_seed(0))
TOKENS = torch.randint(1, 30, (17, 7), generator=torch.Generator().manual_seed(0))


def convolutional(norm):
    return nn.Sequential(nn.Conv2d(3, 8, 3), norm, nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 4))


def tabular(norm):
    return nn.Sequential(nn.Linear(6, 8), norm, nn.ReLU(), nn.Dropout(0.5), nn.Linear(8, 4))


class Tokens(nn.Module):
    """Text: the mean of embedded tokens. Its mask is made of the tokens, so that one tensor is all it needs."""

    def __init__(self):
        super().__init__()
        self.embedding, self.norm, self.head = nn.Embedding(30, 8, padding_idx=0), nn.LayerNorm(8), nn.Linear(8, 4)

    def forward(self, tokens):
        mask = (tokens != 0).unsqueeze(-1)
        return self.head(self.norm((self.embedding(tokens) * mask).sum(dim=1) / mask.sum(dim=1)))


class OwnRmsNorm(nn.Module):
    """As libraries bring them along: a norm that is none of torch's classes."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(8))

    def forward(self, x):
        return x * self.weight / (x.square().mean(dim=-1, keepdim=True) + 1e-6).sqrt()


class FrozenBatchNorm(nn.Module):
    """As torchvision has it: statistics, scale and shift are buffers."""

    def __init__(self):
        super().__init__()
        for name, value in (("weight", 1.0), ("bias", 0.0), ("running_mean", 0.1), ("running_var", 2.0)):
            self.register_buffer(name, torch.full((8,), value))

    def forward(self, x):
        scale = (self.weight / self.running_var.sqrt())[:, None, None]
        return x * scale + self.bias[:, None, None] - self.running_mean[:, None, None] * scale


class Several(nn.Module):
    """Two heads; `form` says how they are returned."""

    def __init__(self, form):
        super().__init__()
        self.norm, self.first, self.second = nn.BatchNorm1d(6), nn.Linear(6, 4), nn.Linear(6, 3)
        self.form = form

    def forward(self, x):
        return self.form(self.first(self.norm(x)), self.second(self.norm(x)))


class SeveralTypes(nn.Module):
    """float64 in the last layer, float32 before."""

    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8)), nn.Linear(8, 4, dtype=torch.float64)

    def forward(self, x):
        return self.head(self.body(x).double())


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.norm, self.second = nn.Linear(6, 6), nn.LayerNorm(6), nn.Linear(6, 6)
        self.second.weight = self.first.weight

    def forward(self, x):
        return self.second(torch.relu(self.norm(self.first(x))))


def picked(model, pick):
    """The user's one line for models with several outputs."""
    model.register_forward_hook(lambda module, inputs, output: pick(output))
    return model


def frozen(model, *names):
    for name, p in model.named_parameters():
        p.requires_grad_(name not in names)
    return model


Heads = namedtuple("Heads", ["features", "logits"])

# name: (function that builds the model, its inputs, what TENT changes: None if there is nothing for it)
KINDS = {
    "batch norm": (lambda: convolutional(nn.BatchNorm2d(8)), IMAGES, {"1.weight", "1.bias"}),
    "batch norm, average": (lambda: convolutional(nn.BatchNorm2d(8, momentum=None)), IMAGES, {"1.weight", "1.bias"}),
    "batch norm, untracked": (
        lambda: convolutional(nn.BatchNorm2d(8, track_running_stats=False)),
        IMAGES,
        {"1.weight", "1.bias"},
    ),
    "batch norm, no affine": (lambda: convolutional(nn.BatchNorm2d(8, affine=False)), IMAGES, None),
    "batch norm, frozen": (lambda: frozen(convolutional(nn.BatchNorm2d(8)), "1.weight", "1.bias"), IMAGES, None),
    "batch norm, buffers only": (lambda: convolutional(FrozenBatchNorm()), IMAGES, None),
    "synchronised batch norm": (lambda: convolutional(nn.SyncBatchNorm(8)), IMAGES, {"1.weight", "1.bias"}),
    "group norm": (lambda: convolutional(nn.GroupNorm(2, 8)), IMAGES, {"1.weight", "1.bias"}),
    "instance norm": (lambda: convolutional(nn.InstanceNorm2d(8, affine=True)), IMAGES, {"1.weight", "1.bias"}),
    "layer norm": (lambda: tabular(nn.LayerNorm(8)), ROWS, {"1.weight", "1.bias"}),
    "a library's norm": (lambda: tabular(OwnRmsNorm()), ROWS, {"1.weight"}),
    "no norm": (lambda: tabular(nn.Identity()), ROWS, None),
    "table": (lambda: tabular(nn.BatchNorm1d(8)), ROWS, {"1.weight", "1.bias"}),
    "series": (
        lambda: nn.Sequential(nn.Conv1d(4, 8, 3), nn.BatchNorm1d(8), nn.ReLU(), nn.Flatten(), nn.Linear(64, 4)),
        SERIES,
        {"1.weight", "1.bias"},
    ),
    "tokens": (Tokens, TOKENS, {"norm.weight", "norm.bias"}),
    "tied weights": (Tied, ROWS, {"norm.weight", "norm.bias"}),
    "several types": (SeveralTypes, ROWS, {"body.1.weight", "body.1.bias"}),
    "object with logits": (lambda: Several(lambda a, b: Heads(b, a)), ROWS, {"norm.weight", "norm.bias"}),
    "dict with logits": (lambda: Several(lambda a, b: {"x": b, "logits": a}), ROWS, {"norm.weight", "norm.bias"}),
    "picked of a tuple": (
        lambda: picked(Several(lambda a, b: (b, a)), lambda output: output[1]),
        ROWS,
        {"norm.weight", "norm.bias"},
    ),
    "picked of a dict": (
        lambda: picked(Several(lambda a, b: OrderedDict(u=a, v=b)), lambda output: output["u"]),
        ROWS,
        {"norm.weight", "norm.bias"},
    ),
}


def built(build):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return build().eval()


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
    assert torch.equal(p, ensemble.predict(ROWS))
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
    adapted = bacs.adapt(ensemble, ROWS, learning_rate=1e-4).members[0].model
    assert {p.dtype for p in adapted.parameters()} == {torch.float32}
    assert changed(model, adapted) == set(read(model))
    assert model.second.weight.dtype == torch.bfloat16


def test_the_forward_hook_reaches_copies_and_the_original_keeps_its_weights():
    model = picked(built(lambda: Several(lambda a, b: (a, b))), lambda output: output[1])
    assert bacs.adapt(ensemble_of(model), ROWS).predict(ROWS).shape == (17, 3)


class TestWhatCannotWorkSaysSo:
    @pytest.mark.parametrize(
        ("form", "hint"),
        [
            (lambda a, b: (a, b), r"got a tuple\npick them with model.register_forward_hook\(.*output\[0\]\)"),
            (lambda a, b: {"u": a, "v": b}, r"got a dict\npick them with .*output\['u'\]\)"),
            (lambda a, b: None, "got a NoneType$"),
            (lambda a, b: a[:, :, None], r"must return \[batch, classes\] logits, got shape \[2, 4, 1\]"),
        ],
    )
    def test_outputs_without_logits_name_the_way_to_pick_them(self, form, hint):
        model = built(lambda: Several(form))
        with pytest.raises(TypeError, match=hint):
            bacs.adapt(bacs.Ensemble([bacs.Member(model, flat.init(read(model)))]), ROWS)

    @pytest.mark.parametrize(
        ("layers", "message"),
        [
            ([nn.Linear(6, 4), nn.Softmax(dim=1)], "must return logits, but those of Sequential are probabilities"),
            ([nn.Linear(6, 1)], "a logit for each of two or more classes, got one from Sequential"),
            ([nn.ReLU(inplace=True), nn.Linear(6, 4)], "Sequential changes its inputs in place"),
        ],
    )
    def test_models_that_would_go_wrong_without_a_sign(self, layers, message):
        model = nn.Sequential(*layers).eval()
        rows = ROWS.clone()
        ensemble = bacs.Ensemble([bacs.Member(model, flat.init(read(model)))])
        for call in (lambda: ensemble.predict(rows), lambda: bacs.stream(ensemble).step(rows)):
            with pytest.raises(ValueError, match=message):
                call()
        assert torch.equal(rows, ROWS)

    def test_log_probabilities_are_logits(self):
        model = nn.Sequential(nn.Linear(6, 4), nn.LogSoftmax(dim=1)).eval()
        ensemble = bacs.Ensemble([bacs.Member(model, flat.init(read(model)))])
        torch.testing.assert_close(ensemble.predict(ROWS), model[0](ROWS).softmax(dim=1).detach())

    def test_a_forward_without_gradient(self):
        class Closed(nn.Linear):
            @torch.no_grad()
            def forward(self, x):
                return super().forward(x)

        model = Closed(6, 4)
        ensemble = bacs.Ensemble([bacs.Member(model, flat.init(read(model)))])
        with pytest.raises(ValueError, match="no gradient reaches the adapted parameters of Closed"):
            bacs.adapt(ensemble, ROWS)
        assert bacs.adapt(ensemble, ROWS, "vanilla").predict(ROWS).shape == (17, 4)

    @pytest.mark.parametrize(
        ("build", "message"),
        [
            (lambda: nn.DataParallel(nn.Linear(6, 4)), "this is a DataParallel, pass model.module"),
            (lambda: torch.compile(nn.Linear(6, 4)), "this is a OptimizedModule, pass model._orig_mod"),
            (lambda: nn.LazyLinear(4), "'weight' has none yet; call the model on a batch once before"),
            (lambda: nn.LazyBatchNorm1d(affine=False), "'running_mean' has none yet"),
            (lambda: nn.Linear(6, 4, dtype=torch.complex64), "real, dense weights.*: 'weight' is complex64"),
        ],
    )
    @pytest.mark.filterwarnings("ignore:.*torch.jit.script_method.*:DeprecationWarning")  # of torch.compile itself
    def test_modules_that_cannot_be_copied_and_adapted(self, build, message):
        model = build()
        with pytest.raises(TypeError, match=message):
            read(model)
        with pytest.raises(TypeError, match=message):
            bacs.Member(model, flat.init({}))

    def test_sparse_weights(self):
        model = nn.Linear(6, 4)
        model.weight = nn.Parameter(torch.eye(4, 6).to_sparse())
        with pytest.raises(TypeError, match="real, dense weights.*: 'weight' is sparse_coo"):
            read(model)

    @pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning")
    def test_compiled_scripts(self):
        scripted = torch.jit.script(nn.Linear(6, 4))
        for model in (scripted, nn.Sequential(scripted)):
            with pytest.raises(TypeError, match="copies of a torch.jit module cannot learn; pass its original"):
                read(model)


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
