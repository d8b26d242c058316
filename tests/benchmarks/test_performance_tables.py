"""The tables of docs/performance.md are those of the records, and figures of `--quick` never get there."""

import runpy
from pathlib import Path

ROOT = Path(__file__).parents[2]
TABLES = runpy.run_path(str(ROOT / "benchmarks" / "performance_tables.py"))


def record(quick):
    machine = {"processor": "Abacus", "cores": 2, "flags": ["avx2"], "torch": "2.13.0"}
    about = {"quick": quick, "date": "2026-01-02", "load_before": 0.1}
    found = {"median": 1.234, "least": 1.1, "greatest": 1.456}
    row = {"width": 16, "images": 1280} | dict.fromkeys(("offline", "online", "online_of_offline"), found)
    return {"machine": machine, "parts": {"protocols": about | {"rows": [row]}}}


def test_the_page_is_what_the_records_make_of_it():
    page = (ROOT / "docs" / "performance.md").read_text()
    assert len(TABLES["TABLES"]) == 11
    assert TABLES["filled"](page, TABLES["suite_records"]()) == page


def test_a_record_becomes_a_table_under_its_machine():
    lines = TABLES["text_of"]("protocols", {"abacus.json": record(quick=False)})
    assert lines[0] == "`abacus.json`: Abacus, 2 cores (avx2), torch 2.13.0; 2026-01-02, load before 0.1."
    cell = "1.23 (1.10 to 1.46)"
    assert lines[-1] == f"| 16 | 1280 | {cell} | {cell} | {cell} |"


def test_quick_figures_and_missing_parts_are_said_to_be_missing():
    for name, records in (("protocols", {"abacus.json": record(quick=True)}), ("steps", {"a": record(quick=False)})):
        (line,) = TABLES["text_of"](name, records)
        assert line.startswith(f"No record yet: `python -m benchmarks {name} ")


def test_a_cheap_way_is_within_noise_only_if_neither_score_is_worse_by_two_deviations():
    def row(name, cost, accuracy, nll):
        return {"name": name, "members": 5, "cost": cost, "accuracy": accuracy, "nll": nll, "brier": 0.4, "ece": 0.1}

    rows = [
        row("BACS", 20, 0.700, 0.900),
        row("as good", 4, 0.681, 0.919),
        row("better", 3, 0.750, 0.800),
        row("less accurate", 2, 0.679, 0.900),
        row("less honest", 1, 0.700, 0.921),
    ]
    lines = TABLES["less_work_rows"]({"noise": {"accuracy": 0.01, "nll": 0.01}, "rows": rows})
    assert [(line[0], line[-1]) for line in lines] == [
        ("less honest", ""),
        ("less accurate", ""),
        ("better", "yes"),
        ("as good", "yes"),
        ("BACS", "yes"),
    ]
