"""What every model of the vision libraries must do with bacs."""

import pytest
import torch

import bacs
from bacs.parameters import read, select
from bacs.posteriors import swag_diag
from small import noisy_iterates

IMAGES = 1.5 * torch.randn(10, 3, 32, 32, generator=torch.Generator().manual_seed(1)) + 0.5


def built(build):
    """The model with every weight drawn anew: libraries begin some heads and scales at zero, which stops gradients."""
    generator = torch.Generator().manual_seed(0)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = build().eval()
    with torch.no_grad():
        for p in model.parameters():
            p += 0.05 * torch.randn(p.shape, generator=generator)
    return model


def check_contract(build, folder, *, norm_affine, inputs=IMAGES, architecture=None, source=None):
    """Every method runs; TENT changes `norm_affine` parameters, BACS all; what is adapted comes back from files."""
    model = built(build)
    state = swag_diag.init(read(model))
    for iterate in noisy_iterates(model):
        state = swag_diag.update(state, iterate)
    ensemble = bacs.Ensemble([bacs.Member(model, state, architecture=architecture)])
    output = model(inputs)
    logits = getattr(output, "logits", output)
    torch.testing.assert_close(ensemble.predict(inputs), logits.softmax(dim=1).detach(), atol=1e-5, rtol=1e-3)
    assert len(select(model, "norm_affine")) == norm_affine
    expected = {"vanilla": 0, "bn": 0, "tent": norm_affine, "bacs": len(read(model))}
    for method, count in expected.items():
        if method == "tent" and not norm_affine:
            with pytest.raises(ValueError, match="has no parameter to adapt: the method adapts 'norm_affine'"):
                bacs.adapt(ensemble, inputs, method)
            continue
        adapted = bacs.adapt(ensemble, inputs, method, batch_size=5, learning_rate=0.1)
        after = read(adapted.members[0].model)
        assert sum(not torch.equal(after[name], value) for name, value in read(model).items()) == count, method
    adapted.save(folder)
    again = bacs.load(folder, model=source or build)
    assert torch.equal(adapted.predict(inputs), again.predict(inputs))


def smooth_picture():
    """A uint8 picture [320, 280, 3] in which a fraction of a pixel makes little difference."""
    coarse = torch.rand(1, 3, 6, 6, generator=torch.Generator().manual_seed(0))
    return (255 * torch.nn.functional.interpolate(coarse, (320, 280), mode="bilinear")[0]).byte().permute(1, 2, 0)
