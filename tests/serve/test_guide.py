"""Every curl command of docs/serve.md and of the README's section works as printed, against a service."""

import re
import shlex
import subprocess
from pathlib import Path

import pytest
from pages import with_table
from serve_table import markdown, read_records

import bacs
from serving import TOKEN, Running, served_ensemble

ROOT = Path(__file__).parents[2]
SECTION = (ROOT / "README.md").read_text().split("## Serve it")[1].split("\n## ")[0]
TEXTS = {"docs/serve.md": (ROOT / "docs" / "serve.md").read_text(), "README.md": SECTION}
COMMANDS = [(page, line) for page, text in TEXTS.items() for line in re.findall(r"^curl .*$", text, re.MULTILINE)]


@pytest.fixture(scope="module")
def running():
    with Running(bacs.stream(served_ensemble(), "auto"), name="cifar10") as running:
        yield running


def test_the_commands_are_found():
    assert len(COMMANDS) == 14


@pytest.mark.needs("curl")
@pytest.mark.parametrize(("page", "command"), COMMANDS)
def test_the_command_works(page, command, running):
    words = shlex.split(command.replace("127.0.0.1:8000", f"127.0.0.1:{running.port}"), comments=True)
    words = [word.replace("$TOKEN", TOKEN) for word in words]
    words += ["--fail", "--silent", "--noproxy", "*"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True)
    assert done.returncode == 0, done.stderr
    if "/predict" in command:
        assert b'"class_name":' in done.stdout


def test_the_picture_is_the_first_ankle_boot_that_ships():
    import numpy as np
    from PIL import Image

    from bacs.data import load

    shipped = load("fashion-mnist-part", "test")
    first = int(np.flatnonzero(np.asarray(shipped.labels) == 9)[0])
    with Image.open(ROOT / "docs" / "figures" / "ankle-boot.png") as picture:
        np.testing.assert_array_equal(np.asarray(picture), np.asarray(shipped.images[first])[..., 0])


def test_the_table_is_the_records():
    page = TEXTS["docs/serve.md"]
    records = read_records()
    assert [record["failed"] for record in records.values()] == [0, 0]
    assert with_table(page, "serve load", markdown(records)) == page
