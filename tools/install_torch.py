"""Installs torch, or what is built with it, at the version of a constraints file: `install_torch.py torch`.

pip's own choice on Linux is a build with several gigabytes of CUDA libraries, which nothing can use without a GPU.
Without one in sight, PyTorch's index of CPU builds is offered to pip beside its own. A build from there is called
`2.13.0+cpu`, which pip takes for newer than `2.13.0`. Where the index is silent, pip takes what it is set up with.

TORCH=default in the environment leaves the choice to pip. What is installed already stays, and asks no network.
"""

import os
import subprocess
import sys
import threading
import urllib.request
from importlib import metadata
from pathlib import Path

CPU_BUILDS = "https://download.pytorch.org/whl/cpu"
PATIENCE = 4.0  # seconds
CONSTRAINTS = Path(__file__).parents[1] / "constraints.txt"


def read_version(name: str, constraints: Path) -> str:
    """The version that a constraints file pins a package to."""
    for line in constraints.read_text().splitlines():
        if line.startswith(f"{name}=="):
            return line.split()[0].removeprefix(f"{name}==")
    raise SystemExit(f"{constraints} has no line {name}==VERSION")


def is_installed(name: str, version: str) -> bool:
    """Whether this environment has the version, of whatever build."""
    try:
        return metadata.version(name).split("+")[0] == version
    except metadata.PackageNotFoundError:
        return False


def sees_gpu() -> bool:
    """Whether the driver's own tool finds a GPU."""
    try:
        return subprocess.run(["nvidia-smi"], capture_output=True, timeout=60).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def answers(address: str, patience: float = PATIENCE) -> bool:
    """Whether an address answers in time.

    A thread waits for it, since the timeout of a request does not hold while a name is looked up.
    """
    answered = threading.Event()

    def ask() -> None:
        try:
            with urllib.request.urlopen(urllib.request.Request(address, method="HEAD"), timeout=patience):
                answered.set()
        except (OSError, ValueError):
            pass

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    thread.join(patience)
    return answered.is_set()


def choose_options(name: str, index: str = CPU_BUILDS) -> list[str]:
    """What to tell pip beside the name: the index of CPU builds, or nothing."""
    if os.environ.get("TORCH") == "default" or sees_gpu() or not answers(f"{index}/{name}/"):
        return []
    return ["--extra-index-url", index]


def main(name: str, constraints: Path = CONSTRAINTS) -> int:
    version = read_version(name, constraints)
    if is_installed(name, version):
        return 0
    # Alone and without dependencies, so that no other requirement makes pip choose another build.
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    return subprocess.run([*command, *choose_options(name), f"{name}=={version}"]).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], *map(Path, sys.argv[2:])))
