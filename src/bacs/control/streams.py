"""Guarded streams from their start: under `auto`, or the stream of another method, watched."""

from typing import Any

from bacs.control.auto import check_auto_arguments
from bacs.control.guarded import GuardedStream
from bacs.ensemble import Ensemble
from bacs.methods.online import Stream
from bacs.methods.prepare import with_class_mask
from bacs.methods.settings import AGREEMENT, Settings

OPEN = ("class_mask", "seed", "device", "compile", "guard")


def stream_by_choice(ensemble: Ensemble, **given: Any) -> GuardedStream:
    """A stream under `auto`; arguments as in `bacs.stream`, less what it chooses."""
    check_auto_arguments(given, OPEN)
    source = with_class_mask(ensemble, given.get("class_mask"))
    start = Settings(batch_weight=0.0, temperature=AGREEMENT if len(ensemble) > 1 else None)
    how = {"compiled": given.get("compile", False), "seed": given.get("seed", 0), "guard": given.get("guard", True)}
    return GuardedStream(source, "bn", start, given.get("device"), **how, chooses=True)


def guard_stream(stream: Stream) -> GuardedStream:
    """The same stream from its start, watched."""
    how = {"compiled": stream.compiled, "seed": stream.seed}
    return GuardedStream(stream.source, *stream.start, stream.device, **how)
