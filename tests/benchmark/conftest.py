"""A saved ensemble of two tiny members, and a sweep of seconds."""

import pytest

from bacs.benchmark.recipe import parse
from tiny import SWEEP, tiny_ensemble


@pytest.fixture(scope="session")
def run_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "tiny"
    tiny_ensemble().save(folder)
    return folder


@pytest.fixture
def recipe():
    return parse(SWEEP)
