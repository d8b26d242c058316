"""Examples in docstrings run."""

import doctest
from importlib import import_module
from pathlib import Path

import pytest

import bacs

ROOT = Path(bacs.__file__).parent
MODULES = sorted(
    "bacs." + ".".join(file.relative_to(ROOT).with_suffix("").parts)
    for file in ROOT.rglob("*.py")
    if ">>>" in file.read_text() and file.name != "__init__.py"
)


def test_examples_are_found():
    assert "bacs.errors" in MODULES


@pytest.mark.parametrize("name", MODULES)
def test_examples_give_what_they_say(name):
    failed, tried = doctest.testmod(import_module(name))
    assert failed == 0
    assert tried > 0
