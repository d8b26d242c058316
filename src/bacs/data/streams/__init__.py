"""Streams: how images arrive in online runs. Shifts one after the other, or a world that goes on changing."""

from bacs.data.streams.orders import batched, correlated_order, shuffled_order, sorted_order
from bacs.data.streams.shifts import StreamBatch, continual_names, gradual_names, stream_batches
from bacs.data.streams.world_batches import WorldBatch, world_batches
from bacs.data.streams.worlds import Segment, World, plan_segments

__all__ = [
    "Segment",
    "StreamBatch",
    "World",
    "WorldBatch",
    "batched",
    "continual_names",
    "correlated_order",
    "gradual_names",
    "plan_segments",
    "shuffled_order",
    "sorted_order",
    "stream_batches",
    "world_batches",
]
