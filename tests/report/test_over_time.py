"""Streams in a report: the table, the figure over time and its numbers."""

import numpy as np
import pytest

from bacs.corruptions import TEST
from bacs.errors import RunError
from bacs.report import over_time
from bacs.report.comparison import comparisons
from bacs.report.contents import chapter
from bacs.report.figure_style import inline_svg
from bacs.report.formats import latex
from bacs.report.records import read
from bacs.report.write import write
from sweep_records import make_record, make_stream_record, write_sweep

METHODS = ("vanilla", "bn", "bacs")


def comparison_of(**options):
    (comparison,) = comparisons([make_stream_record(method, **options) for method in METHODS])
    return comparison


def figure_of(comparison):
    (shift,) = over_time.streams(comparison)
    return over_time.over_time(comparison, shift)


def test_a_line_shows_the_windows_of_a_row_where_they_were():
    (axes,) = figure_of(comparison_of()).axes
    lines = {line.get_label(): line for line in axes.lines}
    bacs = make_stream_record("bacs")
    np.testing.assert_allclose(lines["BACS"].get_xdata(), [125, 375, 625, 875])
    np.testing.assert_allclose(
        lines["BACS"].get_ydata(), [100 * window["ensemble"]["accuracy"] for window in bacs["windows"]]
    )
    assert {"Vanilla Ensemble", "Ensemble BN Adapt", "BACS"} <= set(lines)
    assert axes.get_xlim() == (0, 1000)


def test_a_thin_line_and_a_name_stand_where_a_corruption_begins():
    (axes,) = figure_of(comparison_of(corruptions=("fog", "motion_blur", "snow"))).axes
    assert [(text.get_text(), text.xy[0]) for text in axes.texts] == [("fog", 0), ("motion blur", 500), ("snow", 1000)]
    begins = [line.get_xdata()[0] for line in axes.lines if list(line.get_ydata()) == [0, 1]]
    assert begins == [500, 1000]


def test_a_gradual_stream_shows_its_severities():
    above, below = figure_of(comparison_of(protocol="gradual", window=500)).axes
    assert [text.xy[0] for text in above.texts] == [0, 9 * 500]
    (stairs,) = below.patches
    values, edges, _ = stairs.get_data()
    assert list(values) == [1, 2, 3, 4, 5, 4, 3, 2, 1] * 2
    assert list(edges) == [500 * place for place in range(19)]


def test_names_do_not_run_into_one_another():
    figure = figure_of(comparison_of(corruptions=TEST))
    figure.draw_without_rendering()
    boxes = [text.get_window_extent() for text in figure.axes[0].texts]
    starts = [box.x0 for box in boxes]
    height = 8.5 * figure.dpi / 72
    # Slanted lines of text that are parallel: what counts is how far they are apart across.
    apart = np.diff(starts) * np.sin(np.radians(38))
    assert len(boxes) == 15
    assert apart.min() > height
    right = max(box.x1 for box in boxes)
    assert right <= figure.bbox.x1


def test_every_number_of_the_figure_is_in_its_table():
    made = chapter(comparison_of())
    (part,) = [part for part in made.parts if part.heading == "Over time"]
    (picture,), (table,) = part.pictures, part.numbers
    assert picture.name == table.name == "cifar10-c-continual-over-time"
    assert "at severity 5" in picture.caption
    assert [line.label for line in table.lines] == [
        "1–250: fog, severity 5",
        "251–500: fog, severity 5",
        "501–750: snow, severity 5",
        "751–1000: snow, severity 5",
    ]
    drawn = {line.get_label(): line.get_ydata() for line in picture.draw().axes[0].lines}
    for index, column in enumerate(table.columns):
        np.testing.assert_allclose([line.cells[index].value for line in table.lines], drawn[column.heading])


def test_the_table_of_a_stream_says_what_it_is_of():
    summary = chapter(comparison_of()).summary
    assert summary.title == "CIFAR-10-C, continual, 2 corruptions one after the other at severity 5"
    (note,) = summary.notes
    assert note.startswith("500 images per shift; 2 shifts in one stream; 3 members; seed 0. ")
    assert {column.group for column in summary.columns} == {""}  # the paper has no such table
    gradual = chapter(comparison_of(protocol="gradual"))
    assert gradual.summary.title == "CIFAR-10-C, gradual, 2 corruptions one after the other"
    assert "Below: its severity." in gradual.pictures[1].caption


def test_streams_at_several_severities_have_a_figure_each():
    other = {"shift": "cifar10-c/continual/3", "severity": 3}
    records = [make_stream_record(method, **changes) for method in METHODS for changes in ({}, other)]
    (comparison,) = comparisons(records)
    made = chapter(comparison)
    names = [picture.name for picture in made.pictures if "over-time" in picture.name]
    assert names == ["cifar10-c-continual-over-time-3", "cifar10-c-continual-over-time-5"]
    assert made.summary.title == ("CIFAR-10-C, continual, 2 corruptions one after the other, mean over 2 severities")
    assert "By severity" not in [part.heading for part in made.parts]


def test_other_protocols_and_streams_keep_apart():
    records = [
        make_stream_record("bacs"),
        make_stream_record("bacs", protocol="gradual"),
        make_stream_record("vanilla"),
        make_record("cifar10-c/fog/5", "vanilla"),
        make_record("cifar10-c/fog/5", "bacs", "online"),
        make_record("cifar10-c/fog/5", "bacs"),
    ]
    found = {each.protocol: [entry.method for entry in each.of_kind("single")] for each in comparisons(records)}
    assert list(found.items()) == [
        ("offline", ["vanilla", "bacs"]),
        ("online", ["vanilla", "bacs"]),
        ("continual", ["vanilla", "bacs"]),
        ("gradual", ["bacs"]),
    ]
    assert all(len(each.common) == 1 for each in comparisons(records))
    assert over_time.streams(comparisons(records)[0]) == []


def test_the_figure_is_on_the_page_and_in_the_folder(tmp_path):
    folder = write_sweep(tmp_path / "sweep", [make_stream_record(method) for method in METHODS])
    report = write([read(folder)], tmp_path / "out")
    written = {file.relative_to(tmp_path / "out").as_posix() for file in report.files}
    name = "cifar10-c-continual-over-time"
    assert {f"figures/{name}.svg", f"figures/{name}.png", f"tables/{name}.csv"} <= written
    page = report.page.read_text()
    assert "<h3>Over time</h3>" in page
    assert f'id="sweep-{name}-title"' in page
    assert "<dt>Images per shift</dt><dd>500</dd>" in page


def test_the_figure_takes_the_ink_of_its_surroundings():
    text = inline_svg(figure_of(comparison_of(protocol="gradual", window=500)), "time", "Over time")
    assert "#000000" not in text
    assert "currentColor" in text
    assert ">snow<" in text


EVENTS = [
    {"step": 2, "what": {"batch_weight": [1.0, 0.5]}, "reason": "members agree less"},
    {"image": 700, "what": "returns half of the way", "reason": "12 deviations from home"},
]


def deciding(**options):
    records = [make_stream_record(method, **options) for method in METHODS]
    records.append(make_stream_record("auto", events=EVENTS, **options))
    (comparison,) = comparisons(records)
    return comparison


def test_decisions_are_marked_on_the_axis_of_time():
    (axes,) = figure_of(deciding()).axes
    (marks,) = [line for line in axes.lines if line.get_marker() == "^" and line.get_gid() == "method-auto"]
    assert list(marks.get_xdata()) == [2 * 128, 700]  # a step is a batch of the record's size
    assert max(marks.get_ydata()) < 0.1  # of the height: at the axis
    numbers = [(text.get_text(), text.get_position()[0]) for text in axes.texts if text.get_gid() == "method-auto"]
    assert numbers == [("1", 256), ("2", 700), ("Auto Ensemble", 1.005)]  # and beside the axis, whose they are
    assert axes.get_xlim() == (0, 1000)


def test_the_words_to_the_marks_are_listed_below():
    made = chapter(deciding())
    headings = [part.heading for part in made.parts]
    assert headings.index("Decisions") == headings.index("Over time") + 1
    (table,) = next(part for part in made.parts if part.heading == "Decisions").tables
    assert table.name == "cifar10-c-continual-over-time-decisions"
    assert [(line.label, line.method) for line in table.lines] == [
        ("Auto Ensemble 1", "auto"),
        ("Auto Ensemble 2", "auto"),
    ]
    assert [[cell.text for cell in line.cells] for line in table.lines] == [
        ["256", "batch weight: 1 → 0.5", "members agree less"],
        ["700", "returns half of the way", "12 deviations from home"],
    ]
    assert r"{@{}lrp{0.35\linewidth}p{0.35\linewidth}@{}}" in latex(table)  # sentences fold
    (picture,) = [picture for picture in made.pictures if "over-time" in picture.name]
    assert "Triangles on the axis: decisions, listed below." in picture.caption


def test_an_event_that_names_no_moment_is_said(tmp_path):
    folder = write_sweep(tmp_path / "sweep", [make_stream_record("auto", events=[{"what": "resets"}])])
    with pytest.raises(RunError, match="each of its events must have an image or a step"):
        read(folder)


def test_streams_that_decide_nothing_have_no_such_part():
    made = chapter(comparison_of())
    assert "Decisions" not in [part.heading for part in made.parts]
    assert "Triangles" not in " ".join(picture.caption for picture in made.pictures)


def test_marks_of_two_rows_do_not_cover_each_other():
    records = [make_stream_record(method, events=EVENTS) for method in ("bacs", "auto")]
    (comparison,) = comparisons(records)
    (axes,) = figure_of(comparison).axes
    heights = {line.get_gid(): line.get_ydata()[0] for line in axes.lines if line.get_marker() == "^"}
    assert len(set(heights.values())) == 2


def test_many_decisions_are_marked_without_numbers():
    events = [{"image": 10 * number, "what": "resets", "reason": ""} for number in range(60)]
    (comparison,) = comparisons([make_stream_record("auto", events=events)])
    (axes,) = figure_of(comparison).axes
    assert [text.get_text() for text in axes.texts if text.get_gid()] == ["Auto Ensemble"]
    assert sum(len(line.get_xdata()) for line in axes.lines if line.get_marker() == "^") == 60
