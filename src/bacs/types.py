"""Names for the types that every module passes on. Axis words: member, batch, classes, channels, height, width."""

import torch
from torch import Tensor

Params = dict[str, Tensor]
"""Parameters by name, as in `model.named_parameters()`."""

FLOATS: dict[str, torch.dtype] = {
    "float16": torch.float16,
    "bfloat16": torch.bfloat16,
    "float32": torch.float32,
    "float64": torch.float64,
}
"""The types that weights may have, by the names that files give them: no file's word is looked up in torch itself."""
