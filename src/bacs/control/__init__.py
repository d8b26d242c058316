"""Decisions without labels: what to do with images, whether it helped, and what to take back."""

from bacs.control.auto import adapt_by_choice
from bacs.control.candidates import Candidate
from bacs.control.choose import Choice, choose
from bacs.control.guarded import GuardedStream
from bacs.control.streams import guard_stream, stream_by_choice

__all__ = ["Candidate", "Choice", "GuardedStream", "adapt_by_choice", "choose", "guard_stream", "stream_by_choice"]
