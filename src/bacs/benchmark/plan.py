"""From a recipe to its cells."""

from bacs.benchmark.cell import STREAMED, STRUNG, Cell
from bacs.benchmark.recipe import Recipe
from bacs.methods.catalogue import METHODS


def plan(recipe: Recipe) -> list[Cell]:
    """Every cell of a recipe, shift by shift and then stream by stream, none twice.

    Only methods that adapt have epochs, and only offline: otherwise one pass is all there is. Without batch statistics
    (vanilla) predictions know nothing of the protocol: of a shift the first one stands for all.
    """
    cells = []
    protocols = [protocol for protocol in recipe.protocols if protocol not in STREAMED]
    for shift in recipe.shift_names() if protocols else ():
        for method in recipe.methods:
            for protocol in protocols if METHODS[method].knows_protocol else protocols[:1]:
                for epochs in recipe.epochs_of(method) if protocol == "offline" else (1,):
                    settings = recipe.settings_of(method)
                    cells.append(Cell(shift, method, protocol, epochs, settings, recipe.seed, recipe.limit))
    for protocol in recipe.protocols:
        for name, shifts in recipe.sequences(protocol).items() if protocol in STRUNG else ():
            for method in recipe.methods:
                how = {"sequence": tuple(shifts), "window": recipe.window}
                settings = recipe.settings_of(method)
                cells.append(Cell(name, method, protocol, 1, settings, recipe.seed, recipe.limit, **how))
        for name, world in recipe.worlds().items() if protocol == "world" else ():
            met = tuple(f"{recipe.data}/{part.segment.name}" for part in world.parts())
            for method in recipe.methods:
                how = {"sequence": met, "window": recipe.window, "world": world}
                settings = recipe.settings_of(method)
                cells.append(Cell(name, method, protocol, 1, settings, recipe.seed, recipe.limit, **how))
    return cells
