"""The paper's tables as data, and which of them stands beside a comparison of ours."""

import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from bacs.corruptions import TEST
from bacs.metrics import Score

MEMBERS = 10

Key = tuple[str, str, int | float]  # method, kind, epochs


@dataclass(frozen=True)
class PaperTable:
    """One half or whole of a table: scores as printed, by method, kind and epochs (0 where nothing is adapted)."""

    number: int
    data: str
    protocol: str
    severities: tuple[int, ...]
    images: int
    network: str
    published: bool | None
    scores: Mapping[Key, Mapping[str, str]]

    @property
    def cells(self) -> frozenset[tuple[str | None, int | None]]:
        """The corruptions and severities that its means are over."""
        if not self.severities:
            return frozenset({(None, None)})
        return frozenset((corruption, severity) for corruption in TEST for severity in self.severities)

    def best(self, name: str, score: Score) -> float:
        """The best figure of a column, as printed."""
        return score.best([float(scores[name]) for scores in self.scores.values()])


@cache
def tables() -> tuple[PaperTable, ...]:
    """Every table of the paper that has figures in it."""
    text = (files("bacs.report") / "paper.toml").read_text(encoding="utf-8")
    return tuple(
        PaperTable(
            number=entry["table"],
            data=entry["data"],
            protocol=entry["protocol"],
            severities=tuple(entry["severities"]),
            images=entry["images"],
            network=entry["network"],
            published=entry.get("published"),
            scores={
                (method, kind, epochs): dict(zip(entry["scores"], values, strict=True))
                for method, kind, epochs, *values in entry["rows"]
            },
        )
        for entry in tomllib.loads(text)["tables"]
    )


def beside(
    data: str,
    protocol: str,
    cells: Collection[tuple[str | None, int | None]],
    *,
    published: bool,
    score: str = "accuracy",
) -> PaperTable | None:
    """The paper's table of the same data, protocol, corruptions and severities; None if it has none.

    Of ImageNet-C the paper has two: of the published files, and of images made anew. The one like ours is taken.
    """
    fitting = [
        table
        for table in tables()
        if (table.data, table.protocol) == (data, protocol)
        and table.cells == set(cells)
        and all(score in scores for scores in table.scores.values())
    ]
    return min(fitting, key=lambda table: table.published is not published, default=None)
