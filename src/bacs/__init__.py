"""Bayesian test-time adaptation for PyTorch classifiers."""

__version__ = "0.1.0"
