import json
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import tyro
from PIL import Image

from bacs.cli import main
from bacs.cli.corrupt import corrupt
from bacs.corruptions import corrupt as corrupt_images
from bacs.errors import DataError


@pytest.fixture
def images(tmp_path):
    pixels = np.random.default_rng(0).integers(0, 256, (12, 32, 32, 3), dtype=np.uint8)
    np.savez(tmp_path / "photos.npz", images=pixels, labels=np.arange(12) % 3)
    return pixels


def run(*arguments: object) -> int:
    return tyro.cli(corrupt, args=[str(argument) for argument in arguments])


def test_writes_and_resumes_a_copy(tmp_path, images, capsys):
    arguments = (tmp_path / "photos.npz", "--out", tmp_path / "out", "--corruptions", "contrast", "brightness")
    arguments += ("--severities", 2, 5, "--seed", 4, "--limit", 10)
    assert run(*arguments) == 0
    assert "corruptions written: 2, there already: 0" in capsys.readouterr().out
    stacked = np.load(tmp_path / "out" / "contrast.npy")
    np.testing.assert_array_equal(stacked[10:], corrupt_images(images[:10], "contrast", 5, seed=4))
    (tmp_path / "out" / "contrast.npy").unlink()
    assert run(*arguments, "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert told == {"out": str(tmp_path / "out"), "images": 10, "written": ["contrast"], "kept": ["brightness"]}


def test_help_has_an_example(capsys):
    with pytest.raises(SystemExit) as left:
        run("--help")
    assert left.value.code == 0
    assert "bacs corrupt cifar10 --out" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (("--corruptions", "fogg"), ValueError, r"corruptions must be one of .*did you mean 'fog'"),
        (("--severities", "6"), ValueError, r"severities must be different numbers 1..5, got \(6,\)"),
        (("--severities", "2", "2"), ValueError, "severities must be different numbers"),
        (("--limit", "0"), ValueError, "limit must be >= 1, got 0"),
    ],
)
def test_impossible_wishes(tmp_path, images, arguments, error, message):
    with pytest.raises(error, match=message):
        run(tmp_path / "photos.npz", "--out", tmp_path / "out", *arguments)
    assert not (tmp_path / "out").exists()


def test_a_call_that_failed_does_not_block_the_corrected_one(tmp_path, capsys):
    (tmp_path / "site").mkdir()
    for number, size in enumerate([(32, 32), (32, 32), (40, 36)]):
        Image.new("RGB", size).save(tmp_path / "site" / f"{number}.png")
    arguments = ("corrupt", tmp_path / "site", "--out", tmp_path / "out", "--corruptions", "contrast")
    assert main([str(word) for word in arguments]) == 1
    assert "2.png: 40 x 36 pixels, expected 32 x 32" in capsys.readouterr().err
    assert main([str(word) for word in (*arguments, "--size", 130, "--severities", 3)]) == 0
    assert len(list((tmp_path / "out" / "contrast" / "3").iterdir())) == 3


def test_out_is_a_folder(tmp_path, images, capsys):
    arguments = ("corrupt", tmp_path / "photos.npz", "--out", tmp_path / "photos.npz")
    assert main([str(word) for word in arguments]) == 2
    assert "photos.npz is a file" in capsys.readouterr().err


def test_missing_data(tmp_path):
    with pytest.raises(DataError, match="is neither a data set"):
        run(tmp_path / "nothing.npz", "--out", tmp_path / "out")
    with pytest.raises(DataError, match="cifar10: put test_batch"):
        run("cifar10", "--data-dir", tmp_path, "--out", tmp_path / "out")


def test_a_killed_run_leaves_no_half_file(tmp_path):
    np.save(tmp_path / "many.npy", np.zeros((4000, 32, 32, 3), np.uint8))
    program = "import sys, tyro; from bacs.cli.corrupt import corrupt; tyro.cli(corrupt)"
    command = [sys.executable, "-c", program, str(tmp_path / "many.npy"), "--out", str(tmp_path / "out")]
    process = subprocess.Popen([*command, "--corruptions", "gaussian_noise", "shot_noise"], stderr=subprocess.DEVNULL)
    while not list((tmp_path / "out").glob(".*.npy.*.tmp")) and process.poll() is None:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    for path in (tmp_path / "out").glob("[!.]*.npy"):
        assert np.load(path, mmap_mode="r").shape == (20000, 32, 32, 3)
    finished = {path.stem for path in (tmp_path / "out").glob("[!.]*.npy")}
    assert finished <= {"gaussian_noise"}
