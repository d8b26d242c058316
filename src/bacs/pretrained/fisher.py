"""`with_fisher`: a posterior after the fact, from a trained model and some source images."""

import copy
import warnings
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader

from bacs.ensemble import Ensemble, Member
from bacs.errors import unknown_name
from bacs.inputs import Images, batches
from bacs.parameters import read
from bacs.posteriors import fisher_diag, posterior_scale_for
from bacs.posteriors.fisher_diag import FisherDiag
from bacs.pretrained.source_images import as_known_labels, count_classes
from bacs.pretrained.squares import EXPECTATIONS, Expectation, squared_gradients
from bacs.threads import OnBatch

MANY_CLASSES = 20
"""With more classes than this, `sampled` on as many more images tells more than `exact` for the same work."""


def with_fisher(
    member: Member,
    images: Images,
    labels: Tensor | np.ndarray | None = None,
    *,
    source_size: int | None = None,
    prior_precision: float = 1.0,
    expectation: Expectation | None = None,
    batch_size: int = 64,
    seed: int = 0,
    on_batch: OnBatch = lambda count: None,
) -> Member:
    """The member with a diagonal Fisher posterior around its weights; its model is shared and stays as it is.

    Its posterior_scale makes the default posterior_weight mean the usual pull, as of SWAG-D in training: Fisher
    posteriors are thousands of times as wide.

    Args:
        images: a few thousand source images in any form `bacs.adapt` takes.
        labels: theirs, for the "empirical" Fisher, which vanishes where the model is right. Without them it is the
            Fisher information proper, expected over the model's own p(y | x).
        source_size: how many images the model was trained on; as many as are given if None.
        prior_precision: of a Gaussian prior; source_size * weight_decay is the one that weight decay stands for.
        expectation: `exact` or `sampled`, see `squared_gradients`; exact for up to 20 classes if None.
        seed: of the sampled directions.
        on_batch: hears the number of images of every batch, for progress bars.
    """
    if expectation is not None and expectation not in EXPECTATIONS:
        raise unknown_name("expectation", expectation, EXPECTATIONS)
    if labels is not None and isinstance(images, DataLoader):
        raise TypeError("labels need images in a known order: pass a tensor, an array or a Dataset, not a DataLoader")
    Ensemble([member]).check_inputs(images, batch_size)
    # A squared gradient of 1e-10 is nothing in half precision.
    full = replace(member, model=copy.deepcopy(member.model).float()) if member.like.itemsize < 4 else member
    classes = count_classes(full, images)
    chosen = expectation or ("exact" if classes <= MANY_CLASSES else "sampled")
    targets = None if labels is None else as_known_labels(labels, len(images), classes)
    generator = torch.Generator().manual_seed(seed)
    state = fisher_diag.init(read(member.model), prior_precision=prior_precision, source_size=source_size)
    for positions, batch in batches(images, batch_size):
        squares = squared_gradients(
            full.model,
            full.prepare(batch),
            None if targets is None else targets[positions],
            expectation=chosen,
            generator=generator,
        )
        state = fisher_diag.update(state, squares, len(batch))
        on_batch(len(batch))
    rounded = {name: total.float().double() for name, total in state.sum_squares.items()}  # what a checkpoint keeps
    state = state._replace(sum_squares=rounded)
    if message := prior_warning(state):
        warnings.warn(message, stacklevel=2)
    return replace(member, posterior=state, posterior_scale=posterior_scale_for(state))


def prior_warning(state: FisherDiag) -> str | None:
    """What to say of a posterior that is mostly its prior, None if the data decide."""
    share = fisher_diag.prior_share(state)
    if share <= 0.5:
        return None
    return (
        f"the Fisher posterior is mostly its prior: {100 * share:.0f} % of the weights have less information than "
        f"prior_precision={state.prior_precision:g}. Either the model fits these images almost perfectly, and images "
        "that it was not trained on say more; or it does not see them as in training (mean, std, size, channel order)"
    )
