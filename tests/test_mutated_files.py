"""Damaged files of every kind end in bacs's own errors, or mean what they did: see `benchmarks/mutate_files.py`."""

import random

import pytest
from file_kinds import kinds
from mutate_files import outcome

EACH = 4


@pytest.fixture(scope="module")
def all_kinds(tmp_path_factory):
    return kinds(tmp_path_factory.mktemp("files") / "good")


def test_every_kind_is_refused_or_read_and_nothing_else(all_kinds):
    assert len(all_kinds) >= 60
    faults, words = [], set()
    for kind in all_kinds:
        good = kind.read()
        assert kind.read() == good
        for number in range(EACH):
            word, text = outcome(kind, number, 7, good)
            words.add(word)
            if word not in ("refused", "same", "changed"):
                faults.append((kind.name, number, word, text))
        assert kind.read() == good  # and the good file is back in its place
    assert faults == []
    assert words == {"refused", "same", "changed"}


def test_what_escapes_and_what_changes_in_silence_is_seen(all_kinds):
    """The test above can fail: a reader that raises something else, and one that looks at no checksum."""
    kind = next(kind for kind in all_kinds if kind.name == "manifest")

    def stumbling():
        raise KeyError("members")

    assert outcome(kind._replace(read=stumbling), 0, 7, "good")[0] == "escaped"
    assert outcome(kind._replace(read=lambda: random.random()), 0, 7, "good")[0] == "silent"
