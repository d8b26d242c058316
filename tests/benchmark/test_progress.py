"""Progress: shares of the work, whoever does it, and time left."""

import io

import pytest
from rich.console import Console

from bacs.benchmark import Cell
from bacs.benchmark.progress import SweepProgress, heartbeat, progress_file, show_progress

LONG = Cell("mnist", "bacs", "offline", 5, {})  # 5 * 3 + 1 = 16 forward passes
SHORT = Cell("mnist", "bn", "offline", 0, {})


def quiet():
    return Console(file=io.StringIO(), width=200)


def test_a_cell_at_work_counts_with_the_share_that_is_done(tmp_path):
    progress = SweepProgress(tmp_path, [LONG, SHORT], quiet())
    assert progress.done() == 0
    assert progress.text() == "0/2 cells"
    with heartbeat(tmp_path, LONG, images=10, members=2) as beat:  # 10 * 2 * (5 + 1) images go by
        beat(30)
        assert progress.done() == pytest.approx(16 / 17 * 30 / 120)
    assert not progress_file(tmp_path, LONG).exists()
    progress.finish(LONG, None)
    assert progress.done() == pytest.approx(16 / 17)
    progress.finish(SHORT, "DataError: gone")
    assert (progress.done(), progress.text()) == (1, "2/2 cells, 1 failed")


def test_a_stream_counts_with_all_its_shifts(tmp_path):
    stream = Cell("x-c/continual/5", "bn", "continual", 1, {}, sequence=("a", "b", "c"))
    progress = SweepProgress(tmp_path, [stream, SHORT], quiet())
    with heartbeat(tmp_path, stream, images=3 * 10, members=2) as beat:
        beat(15)
        assert progress.done() == pytest.approx(3 / 4 * 15 / 60)
    progress.finish(stream, None)
    assert progress.done() == pytest.approx(3 / 4)


def test_time_left_follows_from_the_work_done_so_far(tmp_path, monkeypatch):
    progress = SweepProgress(tmp_path, [LONG, SHORT, Cell("mnist", "vanilla", "offline", 0, {})], quiet())
    monkeypatch.setattr("bacs.benchmark.progress.time.monotonic", lambda: progress.began + 3200)
    progress.finish(LONG, None)
    assert progress.text() == "1/3 cells  6:40 left"  # 16 passes took 3200 s, 2 are left


def test_a_terminal_has_one_bar(tmp_path):
    console = Console(file=io.StringIO(), force_terminal=True, width=120)
    with show_progress(tmp_path, [LONG, SHORT], console) as progress:
        progress.finish(LONG, None)
        progress.finish(SHORT, None)
    shown = console.file.getvalue()
    assert "100 %  2/2 cells" in shown
    assert "mnist bacs" not in shown
