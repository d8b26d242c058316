"""Imports point one way: a module may import from its own layer's package and from layers below it."""

import ast
import subprocess
import sys
from pathlib import Path

import bacs

ROOT = Path(bacs.__file__).parent
LAYERS = [
    {"errors", "types"},
    {"parameters", "inputs", "layout", "preprocessing", "toml", "locks", "writable"},
    {"threads", "objectives", "metrics", "predictive", "posteriors", "models", "corruptions", "checkpoints", "engine"},
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


def imported_names(file):
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            module = node.module.split(".")
            if module == ["bacs"]:
                yield from (alias.name for alias in node.names)
            elif module[0] == "bacs":
                yield module[1]
        elif isinstance(node, ast.Import):
            yield from (a.name.split(".")[1] for a in node.names if a.name.startswith("bacs."))


def test_every_import_points_down():
    files = [file for file in ROOT.rglob("*.py") if file.parent != ROOT or file.name != "__init__.py"]
    assert len(files) > 25
    wrong = []
    for file in files:
        own = file.relative_to(ROOT).parts[0].removesuffix(".py")
        assert own in LEVEL, f"{file} belongs to no layer"
        for name in imported_names(file):
            if name != own and LEVEL.get(name, -1) >= LEVEL[own]:
                wrong.append(f"{file.relative_to(ROOT)} imports {name}")
    assert wrong == []


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
