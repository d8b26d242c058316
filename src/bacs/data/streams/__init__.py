"""Streams: how images arrive in online runs. Shifts one after the other, or a world that changes without end."""

from bacs.data.streams.orders import batched, correlated_order, shuffled_order
from bacs.data.streams.shifts import StreamBatch, continual_names, gradual_names, stream_batches

__all__ = [
    "StreamBatch",
    "batched",
    "continual_names",
    "correlated_order",
    "gradual_names",
    "shuffled_order",
    "stream_batches",
]
