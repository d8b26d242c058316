"""A choice as a figure: what the probe showed under every share of batch statistics."""

from typing import TYPE_CHECKING

from bacs.control.choose import Choice
from bacs.report.figures import INK, colour, new_figure, plain

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def choice_plot(choice: Choice) -> "Figure":
    """Agreement and score against the share r, with what was chosen; counted classes below them."""
    if not choice.candidates:
        raise ValueError(f"the choice has no candidates to draw: {choice.reasons[0]}")
    figure = new_figure(figsize=(5.2, 4.6))
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=(3, 1.4))
    shares = [row.batch_weight for row in choice.candidates]
    upper.plot(shares, [row.agreement for row in choice.candidates], "o--", color=INK, label="agreement", linewidth=1)
    scores = [row.score for row in choice.candidates]
    upper.plot(shares, scores, "o-", color=colour("auto"), label="score: agreement less collapse", linewidth=1.6)
    for axes in (upper, lower):
        axes.axvline(choice.batch_weight, color=colour("auto"), alpha=0.35, linewidth=6, zorder=0)
    upper.set_ylabel("share of images")
    upper.set_title(f"chosen: r = {choice.batch_weight:g}" + (", and weights" if choice.adapts else ""))
    upper.legend(frameon=False, fontsize=8.5, labelcolor=INK)
    lower.plot(shares, [row.counted_classes for row in choice.candidates], "s-", color=colour("bn"), linewidth=1.2)
    lower.set_ylim(bottom=0)
    lower.set(xlabel="share r of batch statistics", ylabel="counted classes")
    for axes in (upper, lower):
        plain(axes)
    return figure
