"""Data sets, shifts and streams by name; images stay uint8 until a batch is made."""

from bacs.data.folder import FolderImages
from bacs.data.image_set import Images, ImageSet
from bacs.data.load import load
from bacs.data.pictures import Pictures, pictures
from bacs.data.shifts import shift
from bacs.data.streams import (
    Segment,
    StreamBatch,
    World,
    WorldBatch,
    batched,
    continual_names,
    correlated_order,
    gradual_names,
    plan_segments,
    shuffled_order,
    sorted_order,
    stream_batches,
    world_batches,
)

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
