"""What is released: a wheel that works outside the clone with nothing but what it declares, and true words about it."""

import os
import re
import signal
import subprocess
import sys
import time
import tomllib
import venv
import zipfile
from importlib import metadata
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import bacs

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
PATIENCE = 600  # seconds until a small network is trained, on a machine that is busy with other things


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """A wheel made of the source archive, as releases are; with the tools that are installed, hence without network."""
    out = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    (file,) = out.glob("*.whl")
    assert file.name == f"bacs-{bacs.__version__}-py3-none-any.whl"
    assert (out / f"bacs-{bacs.__version__}.tar.gz").exists()
    return file


@pytest.mark.slow
def test_the_wheel_holds_every_file_of_the_package(wheel):
    with zipfile.ZipFile(wheel) as archive:
        held = {name for name in archive.namelist() if name.startswith("bacs/")}
    source = ROOT / "src"
    files = {file.relative_to(source).as_posix() for file in (source / "bacs").rglob("*") if file.is_file()}
    assert held == {name for name in files if "__pycache__" not in name}
    assert {"bacs/py.typed", "bacs/serve/page.html", "bacs/recipes/cifar10.toml"} < held


@pytest.mark.slow
def test_the_demo_begins_in_an_environment_with_only_what_the_wheel_declares(wheel, tmp_path):
    programs = tmp_path / "empty" / "bin"
    venv.create(programs.parent, with_pip=False, symlinks=True)
    install = [sys.executable, "-m", "pip", "--python", str(programs / "python"), "install", "--quiet"]
    subprocess.run([*install, "--no-index", "--no-deps", str(wheel)], check=True)
    (site,) = programs.parent.glob("lib/python*/site-packages")
    link_dependencies(site)
    there = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | {"OMP_NUM_THREADS": "1"}

    def call(*words):
        return subprocess.run(words, cwd=tmp_path, env=there, capture_output=True, text=True, check=True).stdout

    assert call(programs / "python", "-c", "import bacs; print(bacs.__file__)").startswith(str(site))
    assert call(programs / "bacs", "--version").split()[-1] == bacs.__version__
    assert "cifar10-c-small" in call(programs / "bacs", "recipes")
    with subprocess.Popen(
        [programs / "bacs", "demo"],
        cwd=tmp_path,
        env=there,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    ) as demo:
        until = time.monotonic() + PATIENCE
        while demo.poll() is None and not list(tmp_path.glob("bacs-demo/ensemble/member-*/bacs.json")):
            assert time.monotonic() < until, "no network was trained"
            time.sleep(0.1)
        assert demo.poll() is None, demo.stdout.read().decode()
        os.killpg(demo.pid, signal.SIGKILL)
    assert re.search(r"finished members +[1-5] of 5", call(programs / "bacs", "info", "bacs-demo/ensemble"))


def link_dependencies(site):
    """Links what the wheel declares, and what that needs in turn, from this environment into an empty one."""
    (installed,) = metadata.distributions(path=[str(site)])
    waiting, linked = list(installed.requires), set()
    while waiting:
        requirement = Requirement(waiting.pop())
        name = canonicalize_name(requirement.name)
        if name in linked or (requirement.marker and not requirement.marker.evaluate({"extra": ""})):
            continue
        linked.add(name)
        distribution = metadata.distribution(name)
        waiting += distribution.requires or []
        for top in {file.parts[0] for file in distribution.files} - {"..", "__pycache__"}:
            if not (site / top).exists():
                (site / top).symlink_to(distribution.locate_file(top))
    assert {"torch", "numpy", "scipy"} <= linked
    assert not {"matplotlib", "pytest", "fastapi"} & linked


def test_versions_agree():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["version"] == bacs.__version__
    assert re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)[1] == bacs.__version__
    assert citation["license"] == PROJECT["license"]
    assert citation["keywords"] == PROJECT["keywords"]


def test_the_oldest_python_is_the_first_that_is_classified():
    versions = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))
    assert PROJECT["requires-python"] == f">={versions[0]}"


def test_what_is_installed_here_is_what_is_promised():
    pins = dict(line.split("==") for line in (ROOT / "constraints.txt").read_text().splitlines() if "==" in line)
    pins = {canonicalize_name(name): version for name, version in pins.items()}
    extras = [each for extra in PROJECT["optional-dependencies"].values() for each in extra]
    requirements = [Requirement(each) for each in PROJECT["dependencies"] + extras if not each.startswith("bacs[")]
    assert len(requirements) > 20
    for requirement in requirements:
        assert requirement.specifier.contains(pins[canonicalize_name(requirement.name)]), requirement
