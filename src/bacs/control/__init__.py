"""Decisions without labels: what to do with images, whether it helped, and what to take back."""

from bacs.control.auto import adapt
from bacs.control.choose import Candidate, Choice, choose

__all__ = ["Candidate", "Choice", "adapt", "choose"]
