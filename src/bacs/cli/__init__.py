"""The command `bacs`: one file per verb, and one place that turns errors into exit codes.

0: done. 1: it failed (a BacsError: a file, a disk, data, divergence). 2: you asked for something impossible. 3: done
and written, but for a part that was named. 130: stopped by Ctrl-C.
A verb is imported when it is called, so that help and typing errors are answered at once.
"""

import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

import bacs
from bacs.errors import BacsError, unknown_name

INCOMPLETE = 3
"""The exit code for what was done but for a part: pictures that could not be read, cells that failed."""

VERBS = {
    "demo": "Train a small ensemble, shift its test images, and compare every method of the paper.",
    "train": "Train the members of an ensemble by a recipe.",
    "posterior": "Give trained checkpoints a posterior, or make an ensemble of one.",
    "adapt": "Adapt an ensemble to unlabelled pictures and write what it predicts for each.",
    "serve": "Serve an ensemble that adapts to what it is shown, with a page to watch it.",
    "sweep": "Run every method of a recipe on every shift.",
    "tune": "Choose settings of a method on the validation corruptions.",
    "report": "Make the paper's tables and figures, and a page to look at, from the records of sweeps.",
    "corrupt": "Write a corrupted copy of a data set in the published layout.",
    "info": "Say what a saved ensemble, stream or run holds.",
    "recipes": "List the recipes that come with bacs, or show one.",
    "completion": "Print the completion of a shell for this command.",
}
"""Each is a function of the same name in a module of the same name."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one verb; returns the exit code. Set BACS_DEBUG=1 to see where an error came from."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        if words[:1] in (["--version"], ["-V"]):
            print(f"bacs {bacs.__version__}")
            return 0
        if words[:1] == ["help"] and words[1:]:
            return run(words[1], ["--help"])
        if words[:1] in (["--help"], ["-h"], ["help"]):
            print(overview())
            return 0
        if not words:
            print(overview(), file=sys.stderr)
            return 2
        return run(words[0], words[1:])
    except (BacsError, ValueError, TypeError) as error:
        if os.environ.get("BACS_DEBUG"):
            raise
        print(f"bacs: {error}", file=sys.stderr)
        return 1 if isinstance(error, BacsError) else 2
    except BrokenPipeError:  # the reader of our output has seen enough, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:  # a disk that fills, a folder that closes: no mistake of the program, so no traceback
        if os.environ.get("BACS_DEBUG"):
            raise
        place = "" if error.filename is None else f"{error.filename}: "
        print(f"bacs: {place}{error.strerror or error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("bacs: stopped", file=sys.stderr)
        return 130


def run(verb: str, arguments: Sequence[str]) -> int:
    """The exit code of one verb."""
    function = function_of(verb)
    import tyro

    from bacs.cli.arguments import ARGUMENTS

    with ARGUMENTS:
        code = tyro.cli(function, prog=f"bacs {verb}", args=arguments)
    return code if isinstance(code, int) else 0


def function_of(verb: str) -> Callable[..., Any]:
    if verb.startswith("-"):
        raise unknown_name("the first word", verb, ["--help", "--version", "a verb"])
    if verb not in VERBS:
        raise unknown_name("verb", verb, list(VERBS))
    return getattr(import_module(f"bacs.cli.{verb}"), verb)


def overview() -> str:
    """What `bacs --help` shows."""
    lines = [f"  {verb:<12} {text}" for verb, text in VERBS.items()]
    return "\n".join(
        [
            "usage: bacs VERB ...      bacs VERB --help tells the rest, with an example",
            "",
            "Bayesian test-time adaptation for PyTorch classifiers. Begin with: bacs demo",
            "",
            *lines,
            "",
            "  --version    Print the version.",
            "",
            "Exit codes: 0 done, 1 it failed, 2 asked for something impossible, 3 done but for a part that was named.",
            "BACS_DATA names the folder of data sets; BACS_DEBUG=1 shows where an error came from.",
        ]
    )
