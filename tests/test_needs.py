"""What becomes of tests that need more than is installed: left out in one line, or a failure, and never a skip."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
SAMPLE = """
import pytest

def test_plain():
    pass

@pytest.mark.slow
def test_long():
    pass

@pytest.mark.needs("no_such_library")
@pytest.mark.parametrize("number", [1, 2])
def test_missing(number):
    pass

@pytest.mark.needs("pytest")
def test_there():
    pass
"""
SKIPS = """
import pytest

def test_plain():
    pass

def test_skipped():
    pytest.skip("no")
"""


@pytest.fixture
def run(tmp_path):
    """Runs a file of tests under our rules: exit code and output."""

    def call(text, *options):
        file = tmp_path / "test_sample.py"
        file.write_text(text)
        there = os.environ | {"PYTHONPATH": os.pathsep.join([str(TESTS), str(TESTS.parent / "tools")])}
        there["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # ours alone
        command = [sys.executable, "-m", "pytest", "-q", "-p", "needs", "-p", "no:cacheprovider", *options, str(file)]
        done = subprocess.run(command, cwd=tmp_path, env=there, capture_output=True, text=True)
        assert done.stdout, done.stderr
        return done.returncode, done.stdout

    return call


def test_the_quick_run_says_in_one_line_what_it_leaves_out(run):
    code, out = run(SAMPLE, "-m", "not slow and not needs")
    assert code == 0
    (line,) = [line for line in out.splitlines() if "left out" in line]
    assert line == "left out, for make test-all: tests that need minutes (1), no_such_library (2), pytest (1)"


def test_in_the_whole_run_what_is_missing_fails_and_nothing_is_left_out(run):
    code, out = run(SAMPLE)
    assert code == 1
    assert "3 passed" in out
    assert "2 errors" in out
    assert "needs no_such_library: `make test-all` installs it" in out
    assert "left out" not in out


def test_a_skip_fails_the_run(run):
    code, out = run(SKIPS)
    assert code == 1
    assert "1 passed, 1 skipped" in out
    assert "a test was skipped, which fails the run" in out
