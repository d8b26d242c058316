"""From a recipe to its cells."""

from typing import Any

from bacs.benchmark.cell import STREAMED, STRUNG, Cell, tag_of
from bacs.benchmark.recipe import Recipe
from bacs.methods.catalogue import METHODS
from bacs.methods.settings import OF_STREAMS


def plan(recipe: Recipe) -> list[Cell]:
    """Every cell of a recipe, shift by shift and then stream by stream, none twice.

    Only methods that adapt have epochs, and only offline: otherwise one pass is all there is. Without batch statistics
    (vanilla) predictions know nothing of the protocol: of a shift the first one stands for all. Variants that only
    streams can tell apart have no offline cell.
    """
    cells = []
    protocols = [protocol for protocol in recipe.protocols if protocol not in STREAMED]
    for shift in recipe.shift_names() if protocols else ():
        for method, own in recipe.rows():
            for protocol in protocols if METHODS[method].knows_protocol or own else protocols[:1]:
                if protocol == "offline" and own and own.keys() <= set(OF_STREAMS):
                    continue
                for epochs in recipe.epochs_of(method) if protocol == "offline" else (1,):
                    cells.append(_cell(recipe, shift, method, own, protocol, epochs))
    for protocol in recipe.protocols:
        for name, shifts in recipe.sequences(protocol).items() if protocol in STRUNG else ():
            for method, own in recipe.rows():
                how = {"sequence": tuple(shifts), "window": recipe.window}
                cells.append(_cell(recipe, name, method, own, protocol, **how))
        for name, world in recipe.worlds().items() if protocol == "world" else ():
            met = tuple(f"{recipe.data}/{part.segment.name}" for part in world.parts())
            for method, own in recipe.rows():
                how = {"sequence": met, "window": recipe.window, "world": world}
                cells.append(_cell(recipe, name, method, own, protocol, **how))
    return cells


def _cell(
    recipe: Recipe,
    shift: str,
    method: str,
    own: dict[str, Any],
    protocol: str,
    epochs: int | float = 1,
    **streamed: Any,
) -> Cell:
    settings = recipe.settings_of(method, own, protocol=protocol)
    common = {"seed": recipe.seed, "limit": recipe.limit, "tag": tag_of(own)}
    return Cell(shift, method, protocol, epochs, settings, **common, **streamed)
