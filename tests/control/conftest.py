import pytest

import bacs
from blobs import trained


@pytest.fixture(scope="module")
def ensemble():
    return bacs.Ensemble([trained(seed) for seed in range(3)])
