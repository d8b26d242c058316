"""The command `bacs`: one file a verb, and one place that turns errors into exit codes.

0: done. 1: it failed (a BacsError: a file, a disk, data, divergence). 2: you asked for something impossible.
"""

import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

import tyro

from bacs.cli.adapt import adapt
from bacs.cli.corrupt import corrupt
from bacs.cli.demo import demo
from bacs.cli.posterior import posterior
from bacs.cli.report import report
from bacs.cli.sweep import sweep
from bacs.cli.train import train
from bacs.cli.tune import tune
from bacs.errors import BacsError

VERBS: dict[str, Callable[..., Any]] = {
    "demo": demo,
    "train": train,
    "posterior": posterior,
    "adapt": adapt,
    "sweep": sweep,
    "tune": tune,
    "report": report,
    "corrupt": corrupt,
}

DESCRIPTION = """Bayesian test-time adaptation for PyTorch classifiers.

Begin with: bacs demo"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one verb; returns the exit code. Set BACS_DEBUG=1 to see where an error came from."""
    try:
        code = tyro.extras.subcommand_cli_from_dict(VERBS, prog="bacs", description=DESCRIPTION, args=arguments)
        return code if isinstance(code, int) else 0
    except (BacsError, ValueError, TypeError) as error:
        if os.environ.get("BACS_DEBUG"):
            raise
        print(f"bacs: {error}", file=sys.stderr)
        return 1 if isinstance(error, BacsError) else 2
    except KeyboardInterrupt:
        print("bacs: stopped", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader of our output has seen enough, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
