"""The snippets of docs/streams.md run as printed."""

import re
import tomllib
from pathlib import Path

import numpy as np

import bacs
from bacs.benchmark.recipe import parse
from tiny import tiny_ensemble

GUIDE = (Path(__file__).parents[1] / "docs" / "streams.md").read_text()


def test_the_python_snippets():
    snippets = re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)
    assert len(snippets) == 2
    camera = [np.zeros((4, 28, 28, 1), np.uint8)] * 2
    names = {"bacs": bacs, "ensemble": tiny_ensemble(), "camera": camera}
    for snippet in snippets:
        exec(compile(snippet, "docs/streams.md", "exec"), names)
    assert names["first"] == 64 * 9
    batches = bacs.data.world_batches(names["world"], names["test"].images, names["test"].labels)
    passing = next(batch for batch in batches if batch.first == 64 * 7)
    np.testing.assert_array_equal(names["again"].images, passing.images)


def test_the_recipe():
    (snippet,) = re.findall(r"```toml\n(.*?)```", GUIDE, re.DOTALL)
    worlds = parse(tomllib.loads(snippet)).worlds()
    assert {name: world.images for name, world in worlds.items()} == {
        "cifar10-c/world/mixed": 100_000,
        "cifar10-c/world/mine": 3000,
    }
