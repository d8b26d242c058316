"""From a recipe to its cells."""

from bacs.benchmark.cell import Cell
from bacs.benchmark.recipe import Recipe
from bacs.methods.catalogue import METHODS


def plan(recipe: Recipe) -> list[Cell]:
    """Every cell of a recipe, shift by shift, none twice.

    Only methods that adapt have epochs, and only offline: online, one pass is all there is. Without batch statistics
    (vanilla) predictions know nothing of the protocol, and the first one stands for all.
    """
    cells = []
    for shift in recipe.shift_names():
        for method in recipe.methods:
            for protocol in recipe.protocols if METHODS[method].knows_protocol else recipe.protocols[:1]:
                for epochs in recipe.epochs_of(method) if protocol == "offline" else (1,):
                    settings = recipe.settings_of(method)
                    cells.append(Cell(shift, method, protocol, epochs, settings, recipe.seed, recipe.limit))
    return cells
