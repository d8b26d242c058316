"""The Python snippets of docs/temperature.md and docs/auto.md run as printed."""

import re
from pathlib import Path

import pytest

import bacs

DOCS = Path(__file__).parents[1] / "docs"


@pytest.mark.parametrize(("page", "count"), [("temperature", 2), ("auto", 1)])
def test_snippets_run(page, count, ensemble, images, capsys):
    snippets = re.findall(r"```python\n(.*?)```", (DOCS / f"{page}.md").read_text(), re.DOTALL)
    names = {"bacs": bacs, "ensemble": ensemble, "images": images}
    for snippet in snippets:
        exec(compile(snippet, f"docs/{page}.md", "exec"), names)
    assert len(snippets) == count
    assert names["adapted"].adaptation is not None
    if "method" in names:
        assert bacs.adapt(ensemble, images, names["method"]).adaptation["method"] == "custom"
