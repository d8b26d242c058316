"""`bacs completion`: what a shell needs to complete verbs and flags."""

from typing import Annotated, Literal

import tyro


def completion(shell: Annotated[Literal["bash", "zsh", "tcsh"], tyro.conf.Positional]) -> None:
    """Print the completion of a shell for this command.

    Example: bacs completion bash > ~/.local/share/bash-completion/completions/bacs

    Args:
        shell: bash, zsh or tcsh.
    """
    from bacs.cli import VERBS, function_of

    verbs = {verb: function_of(verb) for verb in VERBS}
    tyro.extras.subcommand_cli_from_dict(verbs, prog="bacs", args=["--tyro-print-completion", shell])
