"""All tables and figures of one comparison, in the order in which they are read."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from bacs.metrics import SCORES
from bacs.report import calibration, corruption_tables, gain_figures, gains, over_time, paper, score_figures
from bacs.report.comparison import Comparison, stem
from bacs.report.decisions import decisions_table
from bacs.report.main_table import settings_table, summary_table
from bacs.report.names import quantity
from bacs.report.tables import ReportTable

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Picture(NamedTuple):
    """A figure that is drawn when it is needed; `name` is the stem of its files."""

    name: str
    caption: str
    draw: Callable[[], "Figure"]
    wide: bool = True


class ChapterPart(NamedTuple):
    """Tables and figures under one heading; `numbers` are tables for looking up what a figure shows.

    The tables of a `folded` part wait behind its figures until a reader of the page asks for them. The `note` stands
    below the heading.
    """

    heading: str
    tables: tuple[ReportTable, ...] = ()
    pictures: tuple[Picture, ...] = ()
    numbers: tuple[ReportTable, ...] = ()
    folded: bool = False
    note: str = ""


@dataclass(frozen=True)
class Chapter:
    """One data set under one protocol."""

    name: str
    title: str
    summary: ReportTable
    parts: tuple[ChapterPart, ...]

    @property
    def tables(self) -> list[ReportTable]:
        return [table for part in self.parts for table in part.tables]

    @property
    def numbers(self) -> list[ReportTable]:
        return [table for part in self.parts for table in part.numbers]

    @property
    def pictures(self) -> list[Picture]:
        return [picture for part in self.parts for picture in part.pictures]


def chapter(comparison: Comparison) -> Chapter:
    """The chapter of a comparison; parts that its records cannot fill are left out."""
    summary = summary_table(comparison)
    parts = (
        ChapterPart("Scores", (summary, *_tables_like_the_paper(comparison)), _scatter(comparison)),
        _over_time(comparison),
        _decisions(comparison),
        _gains(comparison),
        ChapterPart("Differences", _tables(gains.differences_table(comparison))),
        _by_corruption(comparison),
        _by_severity(comparison),
        ChapterPart("Mean corruption error", _tables(corruption_tables.mce_table(comparison))),
        _calibration(comparison),
        ChapterPart("Settings", (settings_table(comparison, f"{stem(comparison)}-settings"),), folded=True),
    )
    filled = tuple(part for part in parts if part.tables or part.pictures or part.numbers)
    return Chapter(stem(comparison), comparison.name, summary, filled)


def _tables_like_the_paper(comparison: Comparison) -> list[ReportTable]:
    """The means over the severities that a table of the paper has, where there are more of them here."""
    found = []
    for severities in {table.severities for table in paper.tables() if table.data == comparison.data}:
        if severities and set(severities) < set(comparison.severities):
            part = comparison.at_severities(severities)
            if part.common and paper.paper_table(part):
                name = f"{stem(comparison)}-severity-{'-'.join(map(str, severities))}"
                found.append(summary_table(part)._replace(name=name))
    return found


def _scatter(comparison: Comparison) -> tuple[Picture, ...]:
    if not comparison.common:
        return ()
    caption = (
        "Accuracy against NLL, one point per row of the table above. Filled: ensembles; hollow: single models. "
        "The best place is the lower right."
    )
    name = f"{stem(comparison)}-accuracy-nll"
    return (Picture(name, caption, partial(score_figures.accuracy_against_nll, comparison)),)


def _over_time(comparison: Comparison) -> ChapterPart:
    streams = over_time.streams(comparison)
    pictures = tuple(
        Picture(
            over_time.name_of(comparison, shift),
            over_time.caption(comparison, shift),
            partial(over_time.over_time, comparison, shift),
        )
        for shift in streams
    )
    return ChapterPart(
        "Over time", (), pictures, tuple(over_time.windows_table(comparison, shift) for shift in streams)
    )


def _decisions(comparison: Comparison) -> ChapterPart:
    found = (
        decisions_table(comparison, shift, f"{over_time.name_of(comparison, shift)}-decisions")
        for shift in over_time.streams(comparison)
    )
    return ChapterPart("Decisions", tuple(table for table in found if table.lines))


def _gains(comparison: Comparison) -> ChapterPart:
    base = gains.baseline(comparison.entries)
    heading = f"Gains over {base.label}"
    if not gains.has_gains(comparison):
        return ChapterPart(heading)
    pictures = tuple(
        Picture(
            f"{stem(comparison)}-gains-{name}",
            f"{score.label} of each row minus that of {base.label}; {score.direction}.",
            partial(gain_figures.gains_plot, comparison, name),
            wide=False,
        )
        for name, score in SCORES.items()
    )
    note = f"{gains.interval_note(comparison)} {gain_figures.HOW_TO_READ}"
    return ChapterPart(heading, (), pictures, (gains.gains_table(comparison),), note=note)


def _by_corruption(comparison: Comparison) -> ChapterPart:
    tables = tuple(corruption_tables.corruption_tables(comparison))
    if len(comparison.corruptions) < 2 or not gains.has_gains(comparison):
        return ChapterPart("By corruption", tables, folded=bool(tables))
    base = gains.baseline(comparison.entries)
    pictures = tuple(
        Picture(
            f"{stem(comparison)}-by-corruption-{kind}-{name}",
            f"{SCORES[name].label} of {spoken} minus that of {base.label}, whose own stands at the right; "
            f"{SCORES[name].direction}.",
            partial(gain_figures.corruption_plot, comparison, kind, name),
            wide=False,
        )
        for kind, spoken in reversed(corruption_tables.kind_names(comparison))
        for name in corruption_tables.BY_CORRUPTION
    )
    over = "" if len(comparison.severities) == 1 else "Means over severities. "
    lacking = "" if comparison.common == comparison.shifts else " Shifts that a row lacks are left out."
    return ChapterPart(
        "By corruption", tables, pictures, folded=True, note=f"{over}{gain_figures.HOW_TO_READ}{lacking}"
    )


def _by_severity(comparison: Comparison) -> ChapterPart:
    table = corruption_tables.severity_table(comparison)
    if table is None:
        return ChapterPart("By severity")
    pictures = tuple(
        Picture(
            f"{stem(comparison)}-by-severity-{kind}",
            f"Spread over {quantity(len(comparison.corruptions), 'corruption')} at each severity, {spoken}: boxes from "
            "25 to 75 %, a line at the median, a white dot at the mean, whiskers to the minimum and the maximum.",
            partial(score_figures.severity_boxes, comparison, kind),
        )
        for kind, spoken in reversed(corruption_tables.kind_names(comparison))
    )
    return ChapterPart("By severity", (table,), pictures, tuple(corruption_tables.spread_tables(comparison)))


def _calibration(comparison: Comparison) -> ChapterPart:
    pictures = []
    reliability, risk = calibration.reliability_curves(comparison), calibration.risk_curves(comparison)
    over = f", mean over {quantity(len(comparison.common), 'shift')}" if len(comparison.common) > 1 else ""
    if reliability:
        caption = f"Accuracy against confidence in bins of equal count{over}. Below the diagonal: too sure of itself."
        draw = partial(calibration.reliability_diagram, reliability, comparison.methods)
        pictures.append(Picture(f"{stem(comparison)}-reliability", caption, draw, wide=False))
    if risk:
        caption = f"Error among the most confident share of predictions{over}. Lower is better."
        draw = partial(calibration.risk_coverage_plot, risk, comparison.methods)
        pictures.append(Picture(f"{stem(comparison)}-risk-coverage", caption, draw, wide=False))
    numbers = (*_tables(calibration.reliability_table(comparison)), *_tables(calibration.risk_table(comparison)))
    return ChapterPart("Calibration and abstention", (), tuple(pictures), numbers)


def _tables(table: ReportTable | None) -> tuple[ReportTable, ...]:
    return () if table is None else (table,)
