"""`bacs recipes`: those that come with bacs."""

from typing import Annotated

import tyro

from bacs import toml
from bacs.cli.arguments import takes
from bacs.errors import RecipeError, did_you_mean


def recipes(name: Annotated[str | None, tyro.conf.Positional, takes("NAME")] = None) -> None:
    """List the recipes that come with bacs, or show one.

    Example: bacs recipes cifar10-c-small

    The results of the paper and a small twin of each. Train, sweep and tune take them by name; to
    change one, write it to a file: bacs recipes cifar10-small > mine.toml

    Args:
        name: The one to show; all names by default.
    """
    known = toml.shipped_recipes()
    if name is not None:
        if name not in known:
            raise RecipeError(
                f"{name}: there is no such recipe{did_you_mean(name, list(known))}; bacs recipes lists them"
            )
        print(known[name].read_text(), end="")
        return
    verbs = {name: toml.verb_of(toml.read(file)) for name, file in known.items()}
    for verb in toml.MARKS.values():
        print(f"bacs {verb}")
        print("\n".join(f"  {name}" for name in known if verbs[name] == verb))
