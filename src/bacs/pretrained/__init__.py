"""Models that were trained elsewhere: a posterior after the fact, and ensembles of one checkpoint."""

from bacs.pretrained.fisher import with_fisher
from bacs.pretrained.new_head import with_new_head
from bacs.pretrained.samples import from_samples, temperature_for
from bacs.pretrained.short_swag import short_swag
from bacs.pretrained.squares import squared_gradients
from bacs.pretrained.weights import open_weights

__all__ = [
    "from_samples",
    "open_weights",
    "short_swag",
    "squared_gradients",
    "temperature_for",
    "with_fisher",
    "with_new_head",
]
