"""Installs the programs that `make test-all` needs and this machine has not: a browser, LaTeX, curl, a C++ compiler.

They come from Debian's packages. Whoever may not install them, or has another system, is told what is missing.
"""

import os
import shutil
import subprocess
import sys

# Program -> (other names of it, Debian's packages). Without a font Chromium draws nothing; booktabs is in -recommended.
PROGRAMS = {
    "chromium": (("chromium-browser", "google-chrome"), ("chromium", "fonts-dejavu-core")),
    "pdflatex": ((), ("texlive-latex-base", "texlive-latex-recommended")),
    "curl": ((), ("curl",)),
    "g++": ((), ("g++",)),
}


def find(program: str) -> str | None:
    """Where a program is, by any of its names; None if it is not on the path."""
    others, _ = PROGRAMS[program]
    return next(filter(None, map(shutil.which, (program, *others))), None)


def find_missing() -> list[str]:
    """The programs that are not on the path."""
    return [program for program in PROGRAMS if find(program) is None]


def choose_prefix() -> list[str] | None:
    """What to write before apt-get: nothing as root, sudo where it asks for no password; None if it cannot be used."""
    if shutil.which("apt-get") is None:
        return None
    if os.geteuid() == 0:
        return []
    allowed = shutil.which("sudo") and subprocess.run(["sudo", "-n", "true"], capture_output=True).returncode == 0
    return ["sudo", "-n", "--preserve-env=DEBIAN_FRONTEND"] if allowed else None


def main() -> int:
    missing = find_missing()
    if not missing:
        return 0
    packages = [package for name in missing for package in PROGRAMS[name][1]]
    told = f"{', '.join(missing)} from Debian's packages {' '.join(packages)}"
    prefix = choose_prefix()
    if prefix is None:
        print(f"apt-get may not be used here; please install {told}", file=sys.stderr)
        return 1
    print(f"installing {told}", flush=True)
    quiet = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    subprocess.run([*prefix, "apt-get", "update", "--quiet=2"], env=quiet)  # fails where one of many sources is away
    install = [*prefix, "apt-get", "install", "--yes", "--quiet=2", "--no-install-recommends", *packages]
    if subprocess.run(install, stdout=subprocess.DEVNULL, env=quiet).returncode:
        print(f"apt-get could not install {' '.join(packages)}", file=sys.stderr)
        return 1
    if still := find_missing():
        print(f"installed, but not on the path: {', '.join(still)}", file=sys.stderr)
    return 1 if still else 0


if __name__ == "__main__":
    sys.exit(main())
