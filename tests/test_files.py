"""Files: whole or not at all, one process at a time, and what is read of strangers."""

import json
import os
import subprocess
import sys

import pytest

from bacs import files
from bacs.errors import RunError
from bacs.files import LARGEST_JSON, is_sealed, read_json, seal


def test_a_file_is_replaced_whole(tmp_path):
    file = tmp_path / "a.json"
    file.write_bytes(b"before")
    files.write(file, b"after")
    assert file.read_bytes() == b"after"
    assert os.listdir(tmp_path) == ["a.json"]


@pytest.mark.parametrize("durable", [True, False])
def test_what_fails_in_the_middle_leaves_what_was_there(tmp_path, durable):
    file = tmp_path / "a.json"
    file.write_bytes(b"before")

    def fill(handle):
        handle.write(b"aft")
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space left"), files.stage(file, fill, durable=durable):
        pytest.fail("nothing was staged")
    assert file.read_bytes() == b"before"
    assert os.listdir(tmp_path) == ["a.json"]


def test_a_staged_file_takes_its_place_only_if_the_block_goes_well(tmp_path):
    file = tmp_path / "a.json"
    with pytest.raises(ZeroDivisionError), files.stage(file, lambda handle: handle.write(b"x")):
        1 / 0  # noqa: B018
    assert os.listdir(tmp_path) == []
    with files.stage(file, lambda handle: handle.write(b"x")):
        assert not file.exists()
    assert file.read_bytes() == b"x"


def test_only_what_a_kill_left_behind_is_removed(tmp_path):
    """The stray is made by a process that dies while it writes."""
    program = (
        "import os, pathlib; from bacs import files\n"
        f"files.stage(pathlib.Path({str(tmp_path / 'a.npy')!r}), lambda handle: os._exit(9)).__enter__()"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 9
    (stray,) = tmp_path.iterdir()
    assert files.is_stray(stray)
    others = {".hidden", "a.tmp", ".a.tmp", ".a.12x.tmp"}
    for name in others:
        (tmp_path / name).write_text("")
    files.remove_strays(tmp_path)
    assert set(os.listdir(tmp_path)) == others


def test_a_lock_names_its_owner_and_is_given_back(tmp_path):
    held = files.lock(tmp_path / "new" / ".lock", "it is used")
    again = files.lock(tmp_path / "new" / ".lock", "it is used")
    with held, pytest.raises(RunError, match=rf"^it is used by another process \(pid {os.getpid()}\)$"), again:
        pytest.fail("it was held twice")
    with files.lock(tmp_path / "new" / ".lock", "it is used"):
        pass
    assert os.listdir(tmp_path / "new") == []


def test_outputs_are_tried_where_they_would_go(tmp_path):
    files.check_writable("out", tmp_path / "new" / "deep" / "a.csv")
    files.check_folder("out", tmp_path / "new")
    assert os.listdir(tmp_path) == []
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match=r"^out must be a folder, .*file is a file$"):
        files.check_folder("out", tmp_path / "file")
    with pytest.raises(RunError, match=r"^out .*file/a.csv cannot be written: .*file: Not a directory$"):
        files.check_writable("out", tmp_path / "file" / "a.csv")


def test_a_seal_shows_every_change_and_no_other_order():
    table = {"b": (1, 2.5), "a": {"c": [None, "x"], "d": True}}
    made = seal(table)
    assert is_sealed(made)
    assert is_sealed(json.loads(json.dumps(dict(reversed(made.items())))))
    for change in ({"b": [1, 2.6]}, {"a": {"c": [None, "x"]}}, {"e": 1}, {"sha256": "0" * 64}):
        assert not is_sealed(made | change)
    assert not is_sealed({key: value for key, value in made.items() if key != "sha256"})


@pytest.mark.parametrize("content", [b"{", b"\xff", b"[" * 100_000, b"1" * 5000, b""])
def test_what_is_no_json_is_a_value_error(tmp_path, content):
    (tmp_path / "a.json").write_bytes(content)
    with pytest.raises(ValueError):
        read_json(tmp_path / "a.json")


def test_a_file_that_is_too_large_is_not_read(tmp_path):
    with (tmp_path / "a.json").open("wb") as file:
        file.truncate(LARGEST_JSON + 1)
    with pytest.raises(ValueError, match="bytes are too many"):
        read_json(tmp_path / "a.json")
