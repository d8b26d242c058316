import pytest

from sweep_records import whole_sweep


@pytest.fixture(scope="session")
def sweep_folder(tmp_path_factory):
    """All 15 corruptions at severity 5, offline with 1 and 5 epochs and online, and one failed cell."""
    return whole_sweep(tmp_path_factory.mktemp("sweeps") / "cifar10-c")
