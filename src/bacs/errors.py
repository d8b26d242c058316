"""The errors a caller may want to catch.

BacsError
├── CheckpointError      a saved ensemble or stream is missing, damaged, foreign or does not fit
├── DataError            a data set, image file or download is missing, damaged or not as described
├── DivergenceError      a model's outputs stopped being finite while it was adapted or trained
├── RecipeError          a recipe has an unknown key or an impossible value
└── RunError             a run, sweep or job could not start or go on

A wrong argument is a plain ValueError or TypeError: it is a mistake in the calling code, not a
condition to recover from.
"""


class BacsError(Exception):
    """Base of every error that bacs raises on purpose, apart from ValueError and TypeError."""


class CheckpointError(BacsError):
    """A saved ensemble or stream is missing, damaged, foreign or does not fit."""


class DataError(BacsError):
    """A data set, image file or download is missing, damaged or not as described."""


class DivergenceError(BacsError):
    """A model's outputs stopped being finite while it was adapted or trained."""


class RecipeError(BacsError):
    """A recipe has an unknown key or an impossible value."""


class RunError(BacsError):
    """A run, sweep or job could not start or go on."""


def unknown_name(argument: str, value: object, known: "list[str] | tuple[str, ...]") -> ValueError:
    """The error for a name outside a catalogue, with the nearest known name.

    >>> str(unknown_name("method", "bax", ["bacs", "tent"]))
    "method must be one of bacs, tent; got 'bax' (did you mean 'bacs'?)"
    """
    return ValueError(f"{argument} must be one of {', '.join(known)}; got {value!r}{did_you_mean(value, known)}")


def did_you_mean(name: object, known: "list[str] | tuple[str, ...]") -> str:
    """A hint at the known name that was probably meant, or nothing."""
    from difflib import get_close_matches

    lowered = {each.lower(): each for each in known}
    near = get_close_matches(str(name).lower(), list(lowered), n=1, cutoff=0.5)
    return f" (did you mean {lowered[near[0]]!r}?)" if near else ""


def one_line(error: BaseException) -> str:
    """What an error of another library says, in one line: its first, or the name of its kind."""
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
