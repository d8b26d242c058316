"""Links and anchors of all pages lead somewhere, in the repository and in the site, which has every page.

What MkDocs itself would say needs MkDocs: `make docs` stops at its first warning.
"""

import json
import posixpath
import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SITE = runpy.run_path(str(ROOT / "docs" / "site.py"))
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md")), *NOTEBOOKS]
LINK = re.compile(r"\]\((?!https?://|data:)([^)#\s]*)(?:#([^)\s]+))?\)")
RELATIVE = [str(page.relative_to(ROOT)) for page in PAGES]


def text_of(page):
    """Markdown without what stands in code fences."""
    text = page.read_text()
    if page.suffix == ".ipynb":
        cells = json.loads(text)["cells"]
        text = "\n\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    return re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)


def anchors_of(page):
    """The anchors of a page's headings, as GitHub and the site both make them."""
    headings = re.findall(r"^#+ (.+)$", text_of(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-") for heading in headings}


def test_the_pages_are_found():
    assert len(PAGES) > 35


@pytest.mark.parametrize("name", RELATIVE)
def test_links_and_their_anchors_lead_somewhere(name):
    page = ROOT / name
    for link, anchor in LINK.findall(text_of(page)):
        target = (page.parent / link).resolve() if link else page
        assert target.exists(), link
        if anchor:
            assert anchor in anchors_of(target), f"{link}#{anchor}"


@pytest.mark.parametrize("name", RELATIVE)
def test_the_site_has_what_a_page_links_to(name):
    own = SITE["place_in_site"](name)
    rewritten = SITE["with_site_links"](text_of(ROOT / name), name)
    elsewhere = SITE["pages_from_elsewhere"]()
    for link, _ in LINK.findall(rewritten):
        place = posixpath.normpath(posixpath.join(posixpath.dirname(own), link)) if link else own
        assert place in elsewhere or (ROOT / "docs" / place).exists(), link


def test_the_navigation_has_every_page_once():
    text = (ROOT / "mkdocs.yml").read_text()
    listed = re.findall(r"- (?:.*: )?(\S+\.md)$", text[text.index("\nnav:") :], re.MULTILINE)
    expected = [SITE["place_in_site"](name) for name in RELATIVE]
    expected += [place for place in SITE["pages_from_elsewhere"]() if place not in expected]
    assert sorted(listed) == sorted(expected)


def test_nothing_is_fetched_from_elsewhere():
    text = (ROOT / "mkdocs.yml").read_text()
    assert "font: false" in text
    assert "http" not in text
    assert "url(" not in (ROOT / "docs" / "site.css").read_text()


def test_a_notebook_becomes_a_page():
    picture = {"output_type": "display_data", "data": {"image/png": "AAAA\n", "text/plain": ["<Figure>"]}}
    said = {"output_type": "stream", "text": ["0.5\n"]}
    cells = [
        {"cell_type": "markdown", "source": ["# Title\n", "text"]},
        {"cell_type": "code", "source": ["print(0.5)"], "outputs": [said, picture]},
    ]
    assert SITE["page_of_notebook"]({"cells": cells}) == (
        "# Title\ntext\n\n```python\nprint(0.5)\n```\n\n```text\n0.5\n```\n\n![](data:image/png;base64,AAAA)\n"
    )


def test_a_link_that_the_site_cannot_have_is_said(caplog):
    text = "[records](../results/demo/records.json)"
    assert SITE["with_site_links"](text, "docs/adapt.md") == text
    assert "docs/adapt.md links to ../results/demo/records.json" in caplog.text
