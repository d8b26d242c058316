"""Data sets, shifts and streams by name; images stay uint8 until a batch is made."""

from bacs.data.folder import FolderImages
from bacs.data.image_set import Images, ImageSet
from bacs.data.load import load
from bacs.data.pictures import Pictures, pictures
from bacs.data.shifts import shift
from bacs.data.streams.orders import batched, correlated_order, shuffled_order, sorted_order
from bacs.data.streams.shifts import StreamBatch, continual_names, gradual_names, stream_batches
from bacs.data.streams.world_batches import WorldBatch, world_batches
from bacs.data.streams.worlds import Segment, World, plan_segments

__all__ = [
    "FolderImages",
    "ImageSet",
    "Images",
    "Pictures",
    "Segment",
    "StreamBatch",
    "World",
    "WorldBatch",
    "batched",
    "continual_names",
    "correlated_order",
    "gradual_names",
    "load",
    "pictures",
    "plan_segments",
    "shift",
    "shuffled_order",
    "sorted_order",
    "stream_batches",
    "world_batches",
]
