"""Imports point one way: a module may import from its own layer's package and from layers below it."""

import ast
import subprocess
import sys
from pathlib import Path

import bacs

ROOT = Path(bacs.__file__).parent
LAYERS = [
    {"errors", "types", "schema"},
    {"files", "parameters", "inputs", "layout", "preprocessing", "toml"},
    {
        "threads",
        "objectives",
        "metrics",
        "predictive",
        "posteriors",
        "models",
        "corruptions",
        "checkpoints",
        "engine",
        "progress",
    },
    {"agreement"},
    {"temperature"},
    {"data", "adaptation", "architecture"},
    {"ensemble"},
    {"methods", "training"},
    {"control"},
    {"drivers"},
    {"pretrained", "predictions"},
    {"benchmark"},
    {"report"},
    {"serve"},
    {"cli"},
    {"__main__"},
]
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}


FILES = sorted(file for file in ROOT.rglob("*.py") if file != ROOT / "__init__.py")

OF_THE_PACKAGE = {"__version__"}
"""What a module may take from `bacs` itself: that file imports nothing before it is asked to."""


def imported_names(file):
    """What a file imports of bacs, each by the name of the module or package right below it; nothing is passed over."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file} has a relative import"
            module = (node.module or "").split(".")
            if module == ["bacs"]:
                yield from (home_of(alias.name) for alias in node.names)
            elif module[0] == "bacs":
                yield module[1]
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name == "bacs":
                    yield from used_of_bacs(file)
                elif alias.name.startswith("bacs."):
                    yield alias.name.split(".")[1]


def used_of_bacs(file):
    """The names that a file takes from `bacs` by attribute, as in `bacs.__version__`."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "bacs":
            yield home_of(node.attr)


def home_of(name):
    """Where a name of `bacs` comes from: one that is looked up when it is used, or a module."""
    return bacs._HOME_OF.get(name, f"bacs.{name}").split(".")[1]


def test_every_file_is_in_a_layer():
    modules = {file.relative_to(ROOT).parts[0].removesuffix(".py") for file in FILES}
    folders = {place.name for place in ROOT.iterdir() if place.is_dir() and any(place.rglob("*.py"))}
    assert modules == set(LEVEL)  # no layer of something that is not there, and nothing outside of all layers
    assert folders <= modules
    assert len(LEVEL) == sum(len(names) for names in LAYERS)


def test_every_import_points_down():
    wrong, looked_at = [], 0
    for file in FILES:
        own = file.relative_to(ROOT).parts[0].removesuffix(".py")
        for name in imported_names(file):
            looked_at += 1
            if name in OF_THE_PACKAGE or name == own:
                continue
            if name not in LEVEL:
                wrong.append(f"{file.relative_to(ROOT)} imports {name}, which is in no layer")
            elif LEVEL[name] >= LEVEL[own]:
                wrong.append(f"{file.relative_to(ROOT)} imports {name}")
    assert wrong == []
    # Every file but a few that need nothing of bacs has an import that was looked at.
    assert looked_at > 3 * len(FILES)


def test_an_import_that_points_up_or_nowhere_is_seen(tmp_path):
    file = tmp_path / "sample.py"
    for text, names in (
        ("from bacs.cli import main", {"cli"}),
        ("from bacs import cli as c, nowhere", {"cli", "nowhere"}),
        ("import bacs.cli.adapt", {"cli"}),
        ("import bacs\nbacs.load('x')", {"drivers"}),
        ("def late():\n    from bacs.serve.app import run", {"serve"}),
        ("import bacsy\nfrom torch import nn", set()),
    ):
        file.write_text(text)
        assert set(imported_names(file)) == names


def test_adaptation_imports_neither_posteriors_nor_methods():
    files = list((ROOT / "adaptation").glob("*.py"))
    assert len(files) >= 4
    for file in files:
        assert not {"posteriors", "methods", "ensemble"} & set(imported_names(file)), file


def test_importing_has_no_effect_on_the_caller():
    code = (
        "import os, logging, random, numpy, torch\n"
        "before = (dict(os.environ), torch.get_rng_state().tolist(), numpy.random.get_state()[1].tolist(), "
        "torch.get_num_threads(), len(logging.getLogger().handlers))\n"
        "import bacs\n"
        "after = (dict(os.environ), torch.get_rng_state().tolist(), numpy.random.get_state()[1].tolist(), "
        "torch.get_num_threads(), len(logging.getLogger().handlers))\n"
        "assert before == after\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_public_names_are_these():
    assert set(bacs.__all__) == {
        *("METHODS", "Architecture", "BacsError", "Ensemble", "Evaluation", "Member", "Method", "Preprocessing"),
        *(
            "Statistics",
            "Stream",
            "adapt",
            "agreement",
            "calibrate",
            "choose",
            "corruptions",
            "data",
            "evaluate",
            "load",
        ),
        *("metrics", "models", "objectives", "posteriors", "predict_table", "predictions", "pretrained", "stream"),
        *("temperature", "training"),
    }
    assert all(hasattr(bacs, name) for name in bacs.__all__)
