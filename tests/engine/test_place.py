"""How many jobs a place runs at the same time."""

import os
import sys
from types import SimpleNamespace

import pytest

from bacs.engine import Place


def test_here_it_is_what_was_asked_or_one_for_every_core():
    assert Place(workers=3).capacity() == 3
    assert Place().capacity() == len(os.sched_getaffinity(0))


@pytest.mark.parametrize(
    ("resources", "options", "jobs"),
    [
        ({"CPU": 128.0}, {}, 128),
        ({"CPU": 128.0}, {"threads": 2}, 64),
        ({"CPU": 7.0}, {"threads": 2}, 3),
        ({"CPU": 128.0, "GPU": 8.0}, {"device": "cuda"}, 8),
        ({"CPU": 4.0, "GPU": 8.0}, {"device": "cuda"}, 4),
        ({"CPU": 2.0}, {"threads": 4}, 1),
        ({}, {"device": "cuda"}, 1),
    ],
)
def test_a_cluster_has_room_for_as_many_as_its_cores_and_gpus(monkeypatch, resources, options, jobs):
    monkeypatch.setitem(sys.modules, "ray", SimpleNamespace(cluster_resources=lambda: resources))
    assert Place("ray", **options).capacity() == jobs
