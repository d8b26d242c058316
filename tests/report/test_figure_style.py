"""What all figures have in common."""

import pytest

from bacs.errors import RunError
from bacs.report import figure_style


def test_without_matplotlib_the_message_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "matplotlib.figure", None)
    with pytest.raises(RunError, match=r"pip install 'bacs\[report\]'"):
        figure_style.new_figure()
