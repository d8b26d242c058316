"""What MkDocs does beside its own work: pages from files outside of docs/, notebooks, and formulas as MathML.

Links are written so that they work in the repository; here they become those of the site. Formulas are translated while
the site is built, so that a reader's browser needs no script and no network for them.
"""

import html
import json
import logging
import posixpath
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "LICENSE": "license.md",
}
LINK = re.compile(r"(\]\()(?!https?://|mailto:|data:|#)([^)#\s]+)(#[^)\s]*)?(\))")
FORMULA = re.compile(r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>', re.DOTALL)
THIN = '<mspace width="0.17em" />'
logger = logging.getLogger("mkdocs.hooks")


def place_in_site(file: str) -> str | None:
    """Where the site has a file of the repository; None if it has not."""
    if file in PAGES:
        return PAGES[file]
    if file.startswith("examples/"):
        return file.removesuffix(".py") + ".md"
    if file.startswith("docs/"):
        return file.removeprefix("docs/").replace(".ipynb", ".md")
    return None


def with_site_links(text: str, source: str) -> str:
    """A page of the repository with the site's links."""
    own = place_in_site(source)
    assert own is not None

    def rewrite(match: re.Match[str]) -> str:
        before, link, anchor, after = match.groups()
        target = place_in_site(posixpath.normpath(posixpath.join(posixpath.dirname(source), link)))
        if target is None:
            logger.warning("%s links to %s, which the site does not have", source, link)
            return match[0]
        return before + posixpath.relpath(target, posixpath.dirname(own) or ".") + (anchor or "") + after

    return LINK.sub(rewrite, text)


def page_of_notebook(notebook: dict) -> str:
    """The cells of a notebook one below the other, each with what it printed and drew."""
    parts = []
    for cell in notebook["cells"]:
        text = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(text)
            continue
        parts.append(f"```python\n{text}\n```")
        printed = "".join("".join(output.get("text", "")) for output in cell["outputs"])
        shown = [output["data"] for output in cell["outputs"] if "data" in output]
        said = [printed, *("".join(data["text/plain"]) for data in shown if "image/png" not in data)]
        parts += [f"```text\n{text.rstrip()}\n```" for text in said if text]
        pictures = ["".join(data["image/png"]).strip() for data in shown if "image/png" in data]
        parts += [f"![](data:image/png;base64,{picture})" for picture in pictures]
    return "\n\n".join(parts) + "\n"


def page_of_example(file: Path) -> str:
    """A program as a page."""
    return f"# {file.name}\n\n```python\n{file.read_text()}```\n"


def pages_from_elsewhere() -> dict[str, str]:
    """Place in the site -> Markdown, of what MkDocs does not find by itself."""
    pages = {}
    for file, place in PAGES.items():
        text = (ROOT / file).read_text()
        pages[place] = with_site_links(text, file) if file.endswith(".md") else f"# Licence\n\n```text\n{text}```\n"
    for file in sorted((ROOT / "examples").glob("*.py")):
        pages[f"examples/{file.stem}.md"] = page_of_example(file)
    for file in sorted((ROOT / "docs" / "notebooks").glob("*.ipynb")):
        text = page_of_notebook(json.loads(file.read_text()))
        pages[f"notebooks/{file.stem}.md"] = with_site_links(text, f"docs/notebooks/{file.name}")
    return pages


def with_mathml(page: str) -> str:
    """The formulas of a page as MathML, which browsers draw by themselves."""
    from latex2mathml.converter import convert

    def translate(match: re.Match[str]) -> str:
        formula = convert(html.unescape(match[2]), display="inline" if match[1] == "span" else "block")
        # TeX sets named functions apart by a thin space, which the converter leaves out.
        return re.sub(r"<mi>(log|exp)</mi>", rf"{THIN}\g<0>{THIN}", formula)

    return FORMULA.sub(translate, page)


def on_files(files, config):
    from mkdocs.structure.files import File

    for place, text in pages_from_elsewhere().items():
        files.append(File.generated(config, place, content=text))
    return files


def on_page_markdown(markdown, page, config, files):
    if page.is_homepage:
        page.meta["hide"] = ["navigation"]  # its table of contents is enough, and the picture gets the room
    return markdown if page.file.generated_by else with_site_links(markdown, f"docs/{page.file.src_uri}")


def on_page_content(html, page, config, files):
    return with_mathml(html)
