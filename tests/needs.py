"""What becomes of tests that need more than `make test` has installed.

Such a test says so: `@pytest.mark.needs("chromium")`. `make test` leaves it out, `make test-all` installs what it
needs. No test skips: it would pass in silence where it never ran.
"""

from collections import Counter
from importlib.util import find_spec

import pytest
from install_programs import PROGRAMS, find


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    for name in needs_of(item):
        if (find(name) if name in PROGRAMS else find_spec(name)) is None:
            pytest.fail(f"needs {name}: `make test-all` installs it, `make test` leaves this test out", pytrace=False)


def needs_of(item):
    return [name for mark in item.iter_markers("needs") for name in mark.args]


def pytest_sessionfinish(session):
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter.stats.get("skipped") and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter):
    stats = terminalreporter.stats
    left_out = Counter()
    for item in stats.get("deselected", []):
        left_out.update([*needs_of(item), *(["minutes"] if item.get_closest_marker("slow") else [])])
    if left_out:
        told = ", ".join(f"{name} ({count})" for name, count in sorted(left_out.items()))
        terminalreporter.write_line(f"left out, for make test-all: tests that need {told}")
    if stats.get("skipped"):
        terminalreporter.write_line("a test was skipped, which fails the run: mark it with what it needs", red=True)
