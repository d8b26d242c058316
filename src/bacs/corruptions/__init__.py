"""The 19 common corruptions of CIFAR-C and ImageNet-C, regenerated from a seed."""

from bacs.corruptions.corrupt import TEST, VALIDATION, corrupt

__all__ = ["TEST", "VALIDATION", "corrupt"]
