"""torchvision from PyPI beside a CPU build of torch.

It is built for CUDA, then lacks two operators and cannot be imported; nor can timm and torchmetrics, which import it.
"""

import importlib
import sys

import torch

_declared = []  # torch forgets operators when their Library is collected


def import_torchvision():
    """Imports torchvision; declares the operators if they are missing.

    They are never run: they find boxes, not classes.
    """
    try:
        importlib.import_module("torchvision")
        return
    except RuntimeError as error:
        if "torchvision::nms does not exist" not in str(error):
            raise
    for half_imported in [module for module in sys.modules if module.split(".")[0] == "torchvision"]:
        del sys.modules[half_imported]
    _declared.append(torch.library.Library("torchvision", "DEF"))
    for operator in ("nms", "qnms"):
        _declared[-1].define(f"{operator}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    importlib.import_module("torchvision")
