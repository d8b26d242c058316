"""The notebooks run from top to bottom, and what is stored below their cells is what they print."""

import json
import re
from pathlib import Path

import matplotlib.pyplot
import pytest

NOTEBOOKS = sorted((Path(__file__).parents[1] / "docs" / "notebooks").glob("*.ipynb"))
NUMBER = re.compile(r"\d+\.?\d*(?:e-?\d+)?")


def code_cells(file):
    return [cell for cell in json.loads(file.read_text())["cells"] if cell["cell_type"] == "code"]


def printed(cell):
    return "".join("".join(output.get("text", "")) for output in cell["outputs"] if output["output_type"] == "stream")


def test_the_notebooks_are_found():
    assert [file.stem for file in NOTEBOOKS] == ["checkpoint", "five-minutes"]


@pytest.mark.parametrize("file", NOTEBOOKS, ids=lambda file: file.stem)
def test_a_notebook_prints_what_it_shows(file, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("tempfile.mkdtemp", lambda: str(tmp_path))
    names, shown = {"__name__": "__main__"}, ""
    with matplotlib.rc_context({"backend": "Agg"}):
        for cell in code_cells(file):
            exec(compile("".join(cell["source"]), file.name, "exec"), names)
            shown += printed(cell)
        matplotlib.pyplot.close("all")
    found = capsys.readouterr().out
    assert NUMBER.sub("#", found) == NUMBER.sub("#", shown)
    # Networks that were trained for seconds differ from one processor to another; what they show does not.
    assert [float(n) for n in NUMBER.findall(found)] == pytest.approx(
        [float(n) for n in NUMBER.findall(shown)], rel=0.5, abs=0.1
    )


@pytest.mark.parametrize("file", NOTEBOOKS, ids=lambda file: file.stem)
def test_a_stored_notebook_was_run_in_order_and_without_an_error(file):
    cells = code_cells(file)
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    assert all(output["output_type"] != "error" for cell in cells for output in cell["outputs"])
