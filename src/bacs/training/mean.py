"""A model at its posterior's mean, with batch-norm statistics of its own: where adaptation starts."""

import torch
from torch import nn

from bacs import posteriors
from bacs.adaptation.statistics import accumulate
from bacs.ensemble import Member
from bacs.inputs import Images, batches
from bacs.parameters import batch_norm_layers, write
from bacs.posteriors import Posterior
from bacs.preprocessing import Preprocessing


def at_mean(
    model: nn.Module,
    posterior: Posterior,
    inputs: Images,
    preprocessing: Preprocessing | None = None,
    *,
    batch_size: int = 128,
    seed: int = 0,
) -> Member:
    """The member to adapt: `model` itself with the posterior's mean as weights and refreshed batch-norm statistics.

    The third of three lines that add SWAG to a training loop of your own:

        posterior = swag_diag.init(parameters.read(model))               # before
        posterior = swag_diag.update(posterior, parameters.read(model))  # after each epoch of the second half
        member = training.at_mean(model, posterior, train_images)        # after

    An average of weights has no running statistics, so they are made anew from one pass over training inputs.
    """
    count = posterior._asdict().get("count")  # not getattr: every tuple has a method of that name
    if count is not None and posteriors.KINDS[posteriors.kind_of(posterior)].of_iterates and count < 2:
        raise ValueError(f"posterior must hold at least 2 iterates, got {count}: call update after more epochs")
    posterior = posteriors.rounded(posterior)
    write(model, {name: mean.to(model.get_parameter(name).dtype) for name, mean in posterior.mean.items()})
    member = Member(model, posterior, preprocessing)
    if batch_norm_layers(model):
        generator = torch.Generator().manual_seed(seed)  # a random order: sorted classes would bias the statistics
        prepared = (member.prepare(batch) for _, batch in batches(inputs, batch_size, generator=generator))
        accumulate(model, prepared)
    return Member(model.eval(), posterior, preprocessing)
