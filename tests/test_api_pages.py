"""Every public name has its entry in docs/api, with an example that gives what it says."""

import doctest
import inspect
import re
from importlib import import_module
from pathlib import Path

import pytest

import bacs

PAGES = sorted((Path(__file__).parents[1] / "docs" / "api").glob("*.md"))
ENTRY = re.compile(r"^::: (\S+)\n((?:    .*\n)*)", re.MULTILINE)


def public_names():
    """What `import bacs` promises: its own names, and those of its modules that are not among them."""
    names = []
    for name in bacs.__all__:
        thing = getattr(bacs, name)
        if not inspect.ismodule(thing):
            names.append(f"bacs.{name}")
            continue
        own = getattr(thing, "__all__", None) or [
            each
            for each, value in vars(thing).items()
            if not each.startswith("_")
            and (inspect.isfunction(value) or inspect.isclass(value))
            and value.__module__ == thing.__name__
        ]
        names += [f"bacs.{name}.{each}" for each in own if getattr(thing, each) is not getattr(bacs, each, None)]
    return names


def entries():
    """Shown name -> (the path that the entry is made from, the text below it), over all pages."""
    found = {}
    for page in PAGES:
        text = page.read_text()
        for match in ENTRY.finditer(text):
            heading = re.search(r"heading: (\S+)", match[2])
            found[heading[1] if heading else match[1]] = match[1], text[match.end() :].partition("\n::: ")[0]
    return found


def resolved(path):
    """The object at a path. A module goes before a function of its name, as it does for who reads the source."""
    parts = path.split(".")
    for count in range(len(parts), 0, -1):
        try:
            thing = import_module(".".join(parts[:count]))
        except ModuleNotFoundError:
            continue
        for part in parts[count:]:
            thing = getattr(thing, part)
        return thing
    raise AssertionError(path)


def promised(name):
    """The object behind a name as users write it."""
    thing = bacs
    for part in name.split(".")[1:]:
        thing = getattr(thing, part)
    return thing


def test_every_public_name_has_an_entry():
    names = public_names()
    assert len(names) > 100
    assert sorted(set(names) - entries().keys()) == []


@pytest.mark.parametrize("name", sorted(entries()))
def test_an_entry_is_of_the_object_that_it_names(name):
    path, _ = entries()[name]
    thing = inspect.unwrap(promised(name))
    assert inspect.unwrap(resolved(path)) is thing
    home = getattr(thing, "__module__", "")
    if home.endswith(f".{name.rpartition('.')[2]}"):  # read as text, its package's name for it is that of the module
        assert path == f"{home}.{thing.__name__}"


@pytest.mark.parametrize("name", public_names())
def test_every_public_name_has_an_example(name):
    _, text = entries()[name]
    examples = "".join(re.findall(r"```pycon\n(.*?)```", text, re.DOTALL))
    assert re.search(rf"\b{name.rpartition('.')[2]}\b", examples)


@pytest.fixture(scope="module")
def shared_names():
    """What the first page says that all examples share."""
    (text,) = re.findall(r"```python\n(.*?)```", (PAGES[0].parent / "index.md").read_text(), re.DOTALL)
    names = {}
    exec(compile(text, "docs/api/index.md", "exec"), names)
    return names


@pytest.mark.parametrize("page", [page for page in PAGES if page.name != "index.md"], ids=lambda page: page.stem)
def test_the_examples_give_what_they_say(page, shared_names, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = "".join(re.findall(r"```pycon\n(.*?)```", page.read_text(), re.DOTALL))
    examples = doctest.DocTestParser().get_doctest(text, dict(shared_names), page.name, str(page), 0)
    assert len(examples.examples) >= 3
    report = []
    failed, _ = doctest.DocTestRunner(verbose=False).run(examples, out=report.append)
    assert failed == 0, "".join(report)
