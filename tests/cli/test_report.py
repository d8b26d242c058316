"""`bacs report` as a person and a program meet it."""

import json
import os
from pathlib import Path

import pytest

from bacs import cli
from sweep_records import make_failed, make_record, make_records, write_sweep
from tiny import tiny_ensemble


@pytest.fixture
def folder(tmp_path):
    records = make_records(corruptions=("fog", "snow"), methods=("vanilla", "bacs"))
    return write_sweep(tmp_path / "results" / "small", [*records, make_failed(method="tent")])


def test_the_report_lies_in_the_folder_and_its_table_on_the_terminal(folder, capsys):
    assert cli.main(["report", str(folder)]) == 0
    shown = capsys.readouterr().out
    assert "CIFAR-10-C, offline, mean over 2 corruptions at severity 5" in shown
    assert "Vanilla Ensemble" in shown
    assert "failed: cifar10-c/fog/5 tent offline: DataError: fog.npy is missing" in shown
    assert f"page: {folder / 'report' / 'page.html'}" in shown
    written = {str(file.relative_to(folder / "report")) for file in (folder / "report").rglob("*") if file.is_file()}
    assert {"page.html", "tables.md", "figures/cifar10-c-offline-accuracy-nll.svg"} <= written
    for ending in ("md", "tex", "csv"):
        assert f"tables/cifar10-c-offline.{ending}" in written
    assert "DataError: fog.npy is missing" in (folder / "report" / "tables.md").read_text()
    assert "DataError: fog.npy is missing" in (folder / "report" / "page.html").read_text()


def test_sixty_columns_cut_no_number(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "60")
    records = make_records(methods=("bn", "bacs-no-posterior")) + make_records(
        methods=("bacs-no-posterior",), epochs=10
    )
    assert cli.main(["report", str(write_sweep(tmp_path / "sweep", records))]) == 0
    shown = capsys.readouterr().out
    assert "…" not in shown
    table = [line for line in shown.splitlines() if "│" in line]
    assert max(map(len, table)) <= 60
    numbers = [line.split("│")[1:] for line in table if line.split("│")[1].strip()]
    assert len(numbers) == 6
    assert all(len(cell.strip()) in (5, 6) for row in numbers for cell in row)  # 69.58, 0.9400


def test_a_part_of_the_cells_is_not_taken_for_the_whole(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    tiny_ensemble().save("run")
    Path("recipe.toml").write_text(
        'data = "fashion-mnist-part-c"\ncorruptions = ["fog"]\nmethods = ["vanilla", "bn", "bacs"]\nlimit = 8\n'
    )
    assert cli.main(["sweep", "recipe.toml", "--run", "run", "--out", "out", "--workers", "1"]) == 0
    assert cli.main(["report", "out"]) == 0
    assert "no record" not in capsys.readouterr().out
    assert "Missing cells" not in Path("out/report/page.html").read_text()
    for method in ("bn", "bacs"):
        next(Path("out/records").glob(f"*--{method}--*")).unlink()
    assert cli.main(["report", "out"]) == 0
    said = "2 of 3 cells have no record yet, the same bacs sweep goes on with them: fashion-mnist-part-c/fog/5 bn"
    assert said in capsys.readouterr().out
    assert said in Path("out/report/tables.md").read_text()
    assert said in Path("out/report/page.html").read_text()
    assert cli.main(["report", "out", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["sweeps"][0]["missing"]) == 2


def test_a_run_of_one_member_has_each_row_once(tmp_path, capsys):
    records = make_records(corruptions=("fog", "snow"), severities=(1, 5), methods=("vanilla", "bn", "bacs"), members=1)
    folder = write_sweep(tmp_path / "one", records)
    assert cli.main(["report", str(folder), "--json"]) == 0
    (told,) = json.loads(capsys.readouterr().out)["sweeps"][0]["tables"]
    assert [row["label"] for row in told["rows"]] == ["Vanilla", "BN Adapt", "BACS (MAP)"]
    page = (folder / "report" / "page.html").read_text()
    assert "Ensemble" not in page
    assert "reliability" in page


def test_json_has_files_scores_and_failures_and_no_infinity(tmp_path, capsys):
    record = make_record("svhn->mnist")
    record["ensemble"]["nll"] = "inf"
    folder = write_sweep(tmp_path / "sweep", [record, make_failed(method="tent")])
    assert cli.main(["report", str(folder), "--out", str(tmp_path / "out"), "--json"]) == 0
    out = capsys.readouterr().out
    assert "Infinity" not in out  # many programs cannot read it
    found = json.loads(out)
    assert all(os.path.exists(file) for file in [found["page"], *found["files"]])
    assert not (folder / "report").exists()
    (sweep,) = found["sweeps"]
    assert sweep["failed"][0]["error"] == "DataError: fog.npy is missing"
    (table,) = sweep["tables"]
    single, ensemble = table["rows"]
    assert (single["label"], single["method"], single["kind"]) == ("BACS (MAP)", "bacs", "single")
    assert single["Acc"] == pytest.approx(100 * record["single"]["accuracy"])
    assert ensemble["NLL"] == "inf"
    assert ensemble["paper Acc"] == 84.14


def test_several_folders_make_one_page_where_they_meet(folder, tmp_path, capsys):
    other = write_sweep(tmp_path / "results" / "digits", [make_record("svhn->mnist")], title="Digits")
    assert cli.main(["report", str(folder), str(other)]) == 0
    page = tmp_path / "results" / "report" / "page.html"
    assert "Digits" in page.read_text()
    assert "Digits" in capsys.readouterr().out
    assert (tmp_path / "results" / "report" / "digits" / "tables" / "svhn-to-mnist-offline.csv").exists()


def test_no_folder_and_no_sweep_are_said_in_a_line(tmp_path, capsys):
    assert cli.main(["report", str(tmp_path / "nothing")]) == 1
    assert (
        capsys.readouterr().err == f"bacs: {tmp_path}/nothing is not the folder of a sweep: there is no such folder\n"
    )
    assert cli.main(["report"]) == 2
    assert "folders must name at least one" in capsys.readouterr().err


def test_a_folder_that_cannot_be_written_is_named(folder, tmp_path, capsys):
    (tmp_path / "taken").write_text("a file")
    assert cli.main(["report", str(folder), "--out", str(tmp_path / "taken")]) == 1
    assert "out must be a folder" in capsys.readouterr().err
