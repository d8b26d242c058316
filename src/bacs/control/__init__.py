"""Decisions without labels: what to do with images, whether it helped, and what to take back."""

from bacs.control.auto import adapt_by_choice
from bacs.control.candidates import Candidate
from bacs.control.choose import Choice, choose
from bacs.control.watch import AutoStream, stream_by_choice

__all__ = ["AutoStream", "Candidate", "Choice", "adapt_by_choice", "choose", "stream_by_choice"]
