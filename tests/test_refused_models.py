"""Models that cannot be adapted say so in a line or two, before any work is done."""

import pytest
import torch
from torch import nn

import bacs
from bacs.parameters import read
from bacs.posteriors import flat
from kinds import ROWS, Several, built


@pytest.mark.parametrize(
    ("form", "hint"),
    [
        (lambda a, b: (a, b), r"got a tuple\npick them with model.register_forward_hook\(.*output\[0\]\)"),
        (lambda a, b: {"u": a, "v": b}, r"got a dict\npick them with .*output\['u'\]\)"),
        (lambda a, b: None, "got a NoneType$"),
        (lambda a, b: a[:, :, None], r"must return \[batch, classes\] logits, got shape \[2, 4, 1\]"),
    ],
)
def test_outputs_without_logits_name_the_way_to_pick_them(form, hint):
    model = built(lambda: Several(form))
    with pytest.raises(TypeError, match=hint):
        bacs.adapt(bacs.Ensemble([bacs.Member(model, flat.init(read(model)))]), ROWS, "bacs")


@pytest.mark.parametrize(
    ("layers", "message"),
    [
        ([nn.Linear(6, 4), nn.Softmax(dim=1)], "must return logits, but those of Sequential are probabilities"),
        ([nn.Linear(6, 1)], "a logit for each of two or more classes, got one from Sequential"),
        ([nn.ReLU(inplace=True), nn.Linear(6, 4)], "Sequential changes its inputs in place"),
    ],
)
def test_models_that_would_go_wrong_without_a_sign(layers, message):
    model = nn.Sequential(*layers).eval()
    rows = ROWS.clone()
    ensemble = bacs.Ensemble([bacs.Member(model, flat.init(read(model)))])
    for call in (lambda: ensemble.predict(rows), lambda: bacs.stream(ensemble, "bacs").step(rows)):
        with pytest.raises(ValueError, match=message):
            call()
    assert torch.equal(rows, ROWS)


def test_log_probabilities_are_logits():
    model = nn.Sequential(nn.Linear(6, 4), nn.LogSoftmax(dim=1)).eval()
    ensemble = bacs.Ensemble([bacs.Member(model, flat.init(read(model)))])
    torch.testing.assert_close(ensemble.predict(ROWS), model[0](ROWS).softmax(dim=1).detach())


def test_a_forward_without_gradient():
    class Closed(nn.Linear):
        @torch.no_grad()
        def forward(self, x):
            return super().forward(x)

    model = Closed(6, 4)
    ensemble = bacs.Ensemble([bacs.Member(model, flat.init(read(model)))])
    with pytest.raises(ValueError, match="no gradient reaches the adapted parameters of Closed"):
        bacs.adapt(ensemble, ROWS, "bacs")
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
def test_modules_that_cannot_be_copied_and_adapted(build, message):
    model = build()
    with pytest.raises(TypeError, match=message):
        read(model)
    with pytest.raises(TypeError, match=message):
        bacs.Member(model, flat.init({}))


def test_sparse_weights():
    model = nn.Linear(6, 4)
    model.weight = nn.Parameter(torch.eye(4, 6).to_sparse())
    with pytest.raises(TypeError, match="real, dense weights.*: 'weight' is sparse_coo"):
        read(model)


@pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning")
def test_compiled_scripts():
    scripted = torch.jit.script(nn.Linear(6, 4))
    for model in (scripted, nn.Sequential(scripted)):
        with pytest.raises(TypeError, match="copies of a torch.jit module cannot learn; pass its original"):
            read(model)
