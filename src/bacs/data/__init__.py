"""Data sets, shifts and streams by name; images stay uint8 until a batch is made."""

from bacs.data.folder import FolderImages
from bacs.data.image_set import Images, ImageSet
from bacs.data.load import load
from bacs.data.pictures import Pictures, pictures
from bacs.data.shifts import Shift, shift
from bacs.data.streams import (
    StreamBatch,
    batched,
    continual_names,
    correlated_order,
    gradual_names,
    shuffled_order,
    stream_batches,
)

__all__ = [
    "FolderImages",
    "ImageSet",
    "Images",
    "Pictures",
    "Shift",
    "StreamBatch",
    "batched",
    "continual_names",
    "correlated_order",
    "gradual_names",
    "load",
    "pictures",
    "shift",
    "shuffled_order",
    "stream_batches",
]
