"""Names for the types that every module passes on. Axis words: member, batch, classes, channels, height, width."""

from torch import Tensor

Params = dict[str, Tensor]
"""Parameters by name, as in `model.named_parameters()`."""
