"""Several members of one checkpoint by draws from its posterior."""

from typing import Any

import torch

from bacs import posteriors
from bacs.ensemble import Ensemble, Member
from bacs.methods.prepare import copy_member
from bacs.posteriors import recentred
from bacs.pretrained import source_images
from bacs.training.member import member_seed

QUARTERS = 16  # down to deviations of 3e-5 times the posterior's


def from_samples(member: Member, images: Any, count: int, *, temperature: float = 1.0, seed: int = 0) -> list[Member]:
    """Members whose weights are draws from the member's posterior, each with a posterior of the same width around it.

    w = mean + sqrt(temperature) (draw - mean), batch-norm statistics made anew from source images. A Fisher posterior
    is far too wide to draw from as it is, since it takes every weight to be alone: see `temperature_for`.
    """
    if count < 1:
        raise ValueError(f"count must be at least 1, got {count}")
    if not temperature > 0:
        raise ValueError(f"temperature must be > 0, got {temperature}")
    verbs = posteriors.KINDS[posteriors.kind_of(member.posterior)].module
    refresh = source_images.sample_images(images, source_images.REFRESH, seed)
    members = []
    for index in range(count):
        drawn = verbs.sample(member.posterior, torch.Generator().manual_seed(member_seed(seed, index)))
        mean = {name: m.to(drawn[name].dtype) for name, m in member.posterior.mean.items()}
        weights = {name: torch.lerp(m, drawn[name], temperature**0.5) for name, m in mean.items()}
        members.append(
            source_images.move_to_mean(copy_member(member, None), recentred(member.posterior, weights), refresh)
        )
    return members


def temperature_for(member: Member, images: Any, *, agreement: float = 0.95, seed: int = 0) -> float:
    """The highest of 1, 1/4, 1/16, ... at which a draw agrees with the posterior's mean on this part of source images.

    No labels are needed. A draw that answers differently on images the model was trained on has forgotten, not varied.
    """
    if not 0 < agreement < 1:
        raise ValueError(f"agreement must be between 0 and 1, got {agreement}")
    few = source_images.sample_images(images, 512, seed)
    mean = source_images.move_to_mean(copy_member(member, None), member.posterior, few)
    answers = Ensemble([mean]).predict(few).argmax(dim=1)
    for quarters in range(QUARTERS):
        temperature = 0.25**quarters
        drawn = Ensemble(from_samples(member, few, 1, temperature=temperature, seed=seed))
        if (drawn.predict(few).argmax(dim=1) == answers).double().mean() >= agreement:
            return temperature
    raise ValueError(f"no draw agrees with the posterior's mean on {100 * agreement:g} % of the images")
