import bz2
import errno

import numpy as np
import pytest

from bacs.data.formats import usps
from bacs.errors import DataError


def line(label="3", values=("0",) * 256, first=1):
    return f"{label} " + " ".join(f"{place}:{value}" for place, value in enumerate(values, first)) + "\n"


def test_reads_grey_and_calls_digit_one_zero(tmp_path, rng, write_usps):
    images = rng.integers(0, 256, (3, 16, 16), dtype=np.uint8)
    images[0, 0, :2] = 0, 255
    write_usps(tmp_path / "usps.t.bz2", images, [0, 9, 4])
    found, labels = usps.read(tmp_path / "usps.t.bz2")
    np.testing.assert_array_equal(found, images[..., None])
    assert found.dtype == np.uint8
    assert labels.tolist() == [0, 9, 4]


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("", "no digits"),
        (line() + "\n", "line 2 must be a label and 256 pairs place:value"),
        (line() + line("three"), "line 2 must be a label and 256 pairs place:value, found b'three 1:0"),
        ("3 1:0 2\n", "line 1 must be a label and 256 pairs place:value"),
        (line(values=["0"] * 255), r"line 1 must have places 1..256 in order, found 255"),
        (line(first=0), r"line 1 must have places 1..256 in order"),
        (line(values=["1.5"] + ["0"] * 255), r"line 1 must have values from -1 to 1, found 1.5"),
        (line(values=["nan"] + ["0"] * 255), r"line 1 must have values from -1 to 1, found nan"),
        (line("0"), r"line 1 must have a label 1..10, found 0"),
        (line("11"), r"line 1 must have a label 1..10, found 11"),
        ("3 " + "7" * 20_000, "line 1 must be a label and 256 pairs place:value"),
    ],
)
def test_files_that_do_not_fit_are_named(tmp_path, content, complaint):
    path = tmp_path / "usps.bz2"
    path.write_bytes(bz2.compress(content.encode()))
    with pytest.raises(DataError, match=f"usps.bz2: {complaint}"):
        usps.read(path)


@pytest.mark.parametrize("cut", [0, 3, 100])
def test_truncated_and_foreign_files_are_named(tmp_path, rng, write_usps, cut):
    path = tmp_path / "usps.bz2"
    write_usps(path, rng.integers(0, 256, (4, 16, 16), dtype=np.uint8), [1, 2, 3, 4])
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(DataError, match=r"usps\.bz2: (damaged bzip2 file|no digits)"):
        usps.read(path)
    path.write_bytes(b"PK" + bytes(50))
    with pytest.raises(DataError, match=r"usps\.bz2: damaged bzip2 file"):
        usps.read(path)


def test_a_file_without_end_is_given_up(tmp_path, monkeypatch):
    monkeypatch.setattr(usps, "_MOST_LINES", 2)
    path = tmp_path / "usps.bz2"
    path.write_bytes(bz2.compress((line() * 3).encode()))
    with pytest.raises(DataError, match="more than 2 lines"):
        usps.read(path)


def test_what_the_disk_says_is_passed_on(tmp_path):
    with pytest.raises(OSError) as told:
        usps.read(tmp_path / "absent.bz2")
    assert told.value.errno == errno.ENOENT
