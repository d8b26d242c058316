"""`bacs.adapt`: the offline protocol over an ensemble."""

from dataclasses import replace

import torch
from torch import Tensor

from bacs.adaptation import norm_statistics, offline
from bacs.ensemble import Ensemble, Member
from bacs.errors import unknown_name
from bacs.inputs import Images
from bacs.methods.catalogue import Method, find
from bacs.methods.prepare import adapter_for, copied, settle, working_copy
from bacs.methods.settings import Settings, check_epochs
from bacs.side_by_side import OnBatch, safe, side_by_side

PREDICT_STATISTICS = ("batch", "accumulated")


def adapt(
    ensemble: Ensemble,
    images: Images,
    method: str | Method = "bacs",
    *,
    epochs: int | float = 1,
    batch_size: int = 128,
    learning_rate: float = 1e-3,
    posterior_weight: float = 1e-4,
    momentum: float = 0.9,
    optimizer: str = "sgd",
    posterior_step: str = "proximal",
    min_variance: float = 1e-12,
    predict_statistics: str = "batch",
    class_mask: Tensor | None = None,
    seed: int = 0,
    device: torch.device | str | None = None,
    compile: bool = False,
    on_batch: OnBatch = lambda count: None,
) -> Ensemble:
    """An ensemble adapted to unlabelled images, ready to predict; the one given stays as it is, bit for bit.

    Args:
        images: a tensor or array (floats as the model takes them, or uint8 NHWC), a Dataset or a DataLoader.
        method: a name in `bacs.METHODS`, or a `bacs.Method` of your own.
        epochs: passes over the images that adapt; 0.5 adapts to half of them, chosen at random.
        posterior_weight: beta, how strongly log q holds the weights.
        posterior_step: `proximal` (stable for every variance) or `gradient` (as the paper's optimiser does).
        min_variance: floor of the posterior's variances.
        predict_statistics: what batch norm uses when the adapted ensemble predicts: the `batch` at hand, or
            statistics `accumulated` over `images` in one more pass, for predictions on single images.
        class_mask: True for each class that can occur; the others get probability 0.
        seed: order of the images. Equal calls give equal results.
        compile: run the steps through `torch.compile`; equal members compile once (docs/performance.md).
        on_batch: hears the number of images of every step, for progress bars.
    """
    settings = Settings(learning_rate, posterior_weight, momentum, optimizer, posterior_step, min_variance)
    name, row = find(method)
    check_epochs(epochs)
    if predict_statistics not in PREDICT_STATISTICS:
        raise unknown_name("predict_statistics", predict_statistics, PREDICT_STATISTICS)
    source = with_class_mask(ensemble, class_mask)
    source.check_inputs(images, batch_size)
    statistics = "source" if row.statistics == "source" else predict_statistics

    def adapted(home: Member, on_batch: OnBatch) -> Member:
        return adapt_member(
            home,
            images,
            row,
            settings,
            epochs=epochs,
            batch_size=batch_size,
            statistics=statistics,
            class_mask=source.class_mask,
            seed=seed,
            compiled=compile,
            on_batch=on_batch,
        )

    # All at once, before any adapts: results laid down between activations would break up the memory that these free,
    # and every member would need more.
    homes = [copied(member, device) for member in source.members]
    together = safe(images, [home.model for home in homes])
    members = list(side_by_side(adapted, homes, on_batch=on_batch, allowed=together))
    how = {"method": name, "protocol": "offline", "epochs": epochs, "batch_size": batch_size, "seed": seed}
    return replace(source, members=members, statistics=statistics, adaptation=how | settings.as_json())


def adapt_member(
    home: Member,
    images: Images,
    method: Method,
    settings: Settings,
    *,
    epochs: int | float,
    batch_size: int,
    statistics: str,
    class_mask: Tensor | None,
    seed: int,
    compiled: bool,
    on_batch: OnBatch,
) -> Member:
    """Adapts a working copy of one member, and writes its weights and statistics into the member itself.

    Its image order depends on the seed alone, not on its place in the ensemble.
    """
    adapted = working_copy(home)
    generator = torch.Generator().manual_seed(seed)
    adapter = adapter_for(adapted, method, settings, class_mask, compiled=compiled)
    if adapter is not None:
        offline.adapt_epochs(
            adapter,
            images,
            epochs=epochs,
            batch_size=batch_size,
            generator=generator,
            prepare=adapted.prepare,
            on_batch=on_batch,
        )
    if statistics == "accumulated":
        offline.accumulate_statistics(
            adapted.model, images, batch_size=batch_size, generator=generator, prepare=adapted.prepare
        )
    settle(home.model, adapted.model)
    norm_statistics.use(home.model, "source")
    return home


def with_class_mask(ensemble: Ensemble, class_mask: Tensor | None) -> Ensemble:
    """The ensemble under a mask of its own, or the one it already has."""
    if class_mask is None:
        return ensemble
    mask = torch.as_tensor(class_mask)
    if mask.dtype != torch.bool or mask.ndim != 1 or not mask.any():
        raise ValueError(f"class_mask must be one True or False a class, at least one True, got {class_mask!r}")
    return replace(ensemble, class_mask=mask)
