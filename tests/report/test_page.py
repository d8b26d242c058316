"""The page: what is in it, and how it behaves in a real browser."""

import re
from html.parser import HTMLParser

import pytest

from bacs.report.records import read
from bacs.report.write import write
from chromium import Page
from sweep_records import make_record, write_sweep

VOID = {"meta", "link", "input", "br"}
in_chromium = pytest.mark.needs("chromium")


@pytest.fixture(scope="module")
def page_file(sweep_folder, tmp_path_factory):
    return write([read(sweep_folder)], tmp_path_factory.mktemp("report")).page


class Elements(HTMLParser):
    """Every start tag with its attributes; fails on tags that are not closed in order."""

    def __init__(self, text):
        super().__init__()
        self.found, self.open = [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_the_page_is_well_formed_and_every_id_is_one_of_a_kind(page_file):
    elements = Elements(page_file.read_text())
    assert elements.open == []
    ids = [attributes["id"] for _, attributes in elements.found if "id" in attributes]
    assert len(ids) > 100
    assert len(set(ids)) == len(ids)
    links = [a["href"] for tag, a in elements.found if tag == "a"]
    assert len(links) == 2
    assert {link.removeprefix("#") for link in links} <= set(ids)


def test_what_the_figures_refer_to_is_in_them(page_file):
    text = page_file.read_text()
    ids = set(re.findall(r'\bid="([^"]+)"', text))
    referred = set(re.findall(r'href="#([^"]+)"', text)) | set(re.findall(r"url\(#([^)]+)\)", text))
    assert len(referred) > 20
    assert referred <= ids


def test_tables_can_be_read_aloud(page_file):
    elements = Elements(page_file.read_text()).found
    tables = [tag for tag, _ in elements if tag == "table"]
    assert len(tables) >= 10
    assert [tag for tag, _ in elements].count("caption") == len(tables)
    assert all(attributes.get("scope") for tag, attributes in elements if tag == "th")
    pictures = [attributes for tag, attributes in elements if tag == "svg" and attributes.get("role") == "img"]
    assert len(pictures) == 22
    assert all(attributes["aria-labelledby"] for attributes in pictures)


def test_nothing_in_a_record_becomes_markup(tmp_path):
    nasty = "<script>alert(1)</script>\"&'"
    records = [make_record(shift, nasty) for shift in ("a", "b")] + [make_record("a", "bacs", settings={nasty: nasty})]
    records += [make_record("b", "bacs", error=nasty)]
    text = write([read(write_sweep(tmp_path / "sweep", records, title=nasty))], tmp_path / "out").page.read_text()
    assert text.count("<script>") == 1  # the page's own
    assert text.count("alert(1)") > 5
    assert "<script>alert" not in text


def test_several_sweeps_share_a_page(tmp_path):
    first = write_sweep(tmp_path / "one" / "cifar10-c", [make_record("cifar10-c/fog/5", "bacs")])
    other = write_sweep(tmp_path / "two" / "cifar10-c", [make_record("svhn->mnist", "bacs")], title="Digits")
    report = write([read(first), read(other)], tmp_path / "out")
    text = report.page.read_text()
    assert Elements(text).open == []
    assert "Results of 2 sweeps" in text
    assert '<h2 class="sweep-title">Digits</h2>' in text
    assert (tmp_path / "out" / "cifar10-c" / "tables" / "cifar10-c-offline.md").exists()
    assert (tmp_path / "out" / "cifar10-c-2" / "tables" / "svhn-to-mnist-offline.md").exists()


def test_without_jinja_the_message_says_how_to_get_it(monkeypatch):
    from bacs.errors import RunError
    from bacs.report.page import page

    monkeypatch.setitem(__import__("sys").modules, "jinja2", None)
    with pytest.raises(RunError, match=r"pip install 'bacs\[report\]'"):
        page([])


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with Page(tmp_path_factory.mktemp("profile")) as page:
        yield page


@pytest.fixture
def opened(browser, page_file):
    browser.width(1100)
    browser.scheme("light")
    browser.open(page_file)
    return browser


COLUMN = """(index) => [...document.querySelectorAll("table")[0].tBodies].map(
    (body) => [...body.rows].map((row) => row.cells[index].textContent))"""
HEADING = 'document.querySelectorAll("table")[0].querySelectorAll("thead button")'


def column(page, index):
    return page.value(f"({COLUMN})({index})")


@in_chromium
def test_the_page_asks_for_nothing_and_complains_of_nothing(opened, page_file):
    assert [url for url in opened.requests if not url.startswith("data:")] == [page_file.as_uri()]
    assert opened.errors == []
    assert opened.value("document.querySelectorAll('figure svg').length") == 22


@in_chromium
def test_a_click_on_a_heading_sorts_each_block(opened):
    paper = column(opened, 0)
    opened.value(f"{HEADING}[2].click()")  # method, Acc, NLL
    assert opened.value(f"{HEADING}[2].closest('th').getAttribute('aria-sort')") == "ascending"
    numbers = column(opened, 2)
    assert [len(block) for block in numbers] == [7, 7]
    assert all(block == sorted(block, key=float) for block in numbers)
    assert column(opened, 0) != paper
    opened.value(f"{HEADING}[2].click()")
    assert all(block == sorted(block, key=float, reverse=True) for block in column(opened, 2))
    opened.value(f"{HEADING}[2].click()")
    assert column(opened, 0) == paper
    assert opened.value("document.querySelectorAll('[aria-sort]').length") == 0


@in_chromium
def test_sorting_puts_gaps_last_and_texts_by_letter(opened):
    opened.value(f"{HEADING}[5].click()")  # the paper's Acc
    assert all("–" not in block[: len(block) - block.count("–")] for block in column(opened, 5))
    opened.value(f"{HEADING}[0].click()")
    letters = [[label[0].lower() for label in block] for block in column(opened, 0)]
    assert all(block == sorted(block) for block in letters)
    assert opened.value("document.querySelectorAll('[aria-sort]').length") == 1


@in_chromium
def test_sorting_works_from_the_keyboard(opened):
    opened.value(f"{HEADING}[1].focus()")
    opened.press("Enter")
    assert opened.value(f"{HEADING}[1].closest('th').getAttribute('aria-sort')") == "ascending"


@in_chromium
def test_the_filter_hides_rows_and_columns_of_a_method(opened):
    # Chromium calls parts of figures visible whatever their style says.
    shown = """[...document.querySelectorAll('main [data-method=tent]')].filter(
        (e) => e.checkVisibility() && !e.closest('[hidden]')).length"""
    opened.value("document.querySelectorAll('details').forEach((details) => (details.open = true))")
    assert opened.value(shown) > 20
    others = opened.value(shown.replace("tent", "bacs"))
    opened.value("document.querySelector('.filter input[value=tent]').click()")
    assert opened.value(shown) == 0
    assert opened.value(shown.replace("tent", "bacs")) == others
    assert opened.value("document.querySelector('.filter output').textContent") == "4 of 5 shown"
    # Headings and cells go together; in a header of two rows the first heading spans both.
    counts = """[...document.querySelectorAll('table')].map((table) => {
        const shown = (row) => [...row.cells].filter((cell) => cell.checkVisibility()).length;
        const body = [...table.tBodies].flatMap((body) => [...body.rows]).filter((row) => !row.hidden);
        return [shown(table.tHead.rows[table.tHead.rows.length - 1]) + table.tHead.rows.length - 1, shown(body[0])];
    })"""
    rows = opened.value(counts)
    assert len(rows) > 10
    assert all(headings == cells for headings, cells in rows)
    opened.value("document.querySelector('.filter input[value=tent]').click()")
    assert opened.value(shown) > 20


@in_chromium
def test_the_filter_acts_on_every_figure(opened):
    parts = """(method) => [...document.querySelectorAll('figure svg')].map((picture) =>
        [...picture.querySelectorAll(`[data-method=${method}]`)].filter((part) => part.getClientRects().length
            && part.getBoundingClientRect().height > 0).length)"""
    of_tent, of_bacs = (opened.value(f"({parts})('{method}')") for method in ("tent", "bacs"))
    assert len(of_tent) == 22
    assert min(of_tent) >= 2  # the points and their name
    opened.value("document.querySelector('.filter input[value=tent]').click()")
    assert opened.value(f"({parts})('tent')") == [0] * 22
    assert opened.value(f"({parts})('bacs')") == of_bacs
    words = """[...document.querySelectorAll('figure svg text')].filter(
        (text) => text.getBoundingClientRect().width).map((text) => text.textContent)"""
    assert not any("TENT" in text for text in opened.value(words))
    opened.value("document.querySelector('.filter input[value=tent]').click()")
    assert opened.value(f"({parts})('tent')") == of_tent


@in_chromium
def test_marks_of_other_methods_stay_when_the_first_that_uses_them_goes(opened):
    # A mark is defined where it is first used; the other figures' parts refer to it.
    drawn = """[...document.querySelectorAll('figure svg [data-method=bacs] use')].filter(
        (mark) => mark.getBoundingClientRect().width > 0).length"""
    before = opened.value(drawn)
    assert before > 20
    opened.value("document.querySelector('.filter input[value=vanilla]').click()")
    assert opened.value(drawn) == before
    opened.value("document.querySelector('.filter input[value=vanilla]').click()")


@in_chromium
def test_headings_say_which_way_is_better(opened):
    headings = """[...document.querySelectorAll('table')[0].querySelectorAll('thead button')].map(
        (button) => [button.firstChild.textContent.trim(), button.querySelector('.better')?.ariaLabel ?? ''])"""
    found = opened.value(headings)
    assert found[:3] == [["Method", ""], ["Acc", "higher is better"], ["NLL", "lower is better"]]
    assert len(found) == 9
    titles = opened.value("[...document.querySelectorAll('caption')].map((caption) => caption.textContent)")
    by_corruption = [title for title in titles if "by corruption" in title]
    assert len(by_corruption) == 8
    assert all(title.endswith("is better") for title in by_corruption)


CUT = """[...document.querySelectorAll('.scroll')].filter((box) => box.checkVisibility()).map((box) => [
    box.scrollWidth > box.clientWidth + 1,
    box.previousElementSibling.matches('.cue') && box.previousElementSibling.checkVisibility(),
    getComputedStyle(box).maskImage !== 'none'])"""


@in_chromium
@pytest.mark.parametrize("pixels", [390, 1100])
def test_what_lies_beyond_the_edge_of_its_box_is_announced(opened, pixels):
    opened.width(pixels)
    opened.value("document.querySelectorAll('details').forEach((details) => (details.open = true))")
    opened.wait_for(f"{CUT}.every(([cut, words, fades]) => cut === words && cut === fades)")
    boxes = opened.value(CUT)
    assert len(boxes) > 30
    assert any(cut for cut, _, _ in boxes)
    assert not all(cut for cut, _, _ in boxes)


@in_chromium
def test_the_edge_stops_fading_at_the_end_of_the_box(opened):
    opened.width(390)
    box = "document.querySelector('.scroll')"
    opened.wait_for(f"{box}.classList.contains('cut')")
    opened.value(f"({box}.scrollLeft = 10000)")
    opened.wait_for(f"!{box}.classList.contains('cut')")
    assert opened.value(f"{box}.previousElementSibling.checkVisibility()")


@in_chromium
def test_no_method_stands_alone_in_the_last_row_of_the_filter_on_a_telephone(opened):
    opened.width(390)
    heights = opened.value("[...document.querySelectorAll('.filter label')].map((label) => label.offsetTop)")
    assert len(heights) == 5
    assert heights.count(max(heights)) == 2


@in_chromium
def test_figures_of_half_the_width_need_no_scrolling_on_a_telephone(opened):
    opened.width(390)
    half = "[...document.querySelectorAll('figure.half .scroll')].map((box) => box.scrollWidth - box.clientWidth)"
    rest = opened.value(half)
    assert len(rest) == 20
    assert max(rest) <= 1


@in_chromium
@pytest.mark.parametrize("pixels", [320, 375, 768, 1100])
def test_nothing_is_wider_than_the_screen(opened, pixels):
    opened.width(pixels)
    opened.value("document.querySelectorAll('details').forEach((details) => (details.open = true))")
    assert opened.value("document.documentElement.scrollWidth") <= pixels
    if pixels == 375:
        assert opened.value(
            "[...document.querySelectorAll('.scroll')].some((box) => box.scrollWidth > box.clientWidth)"
        )


@in_chromium
def test_on_paper_it_is_dark_on_white_and_no_wider_than_a_page(opened):
    opened.width(718)  # A4 between margins of a centimetre
    opened.scheme("dark", media="print")
    assert opened.value("document.documentElement.scrollWidth") <= 718
    assert opened.value("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert not opened.value("document.querySelector('.filter').checkVisibility()")
    opened.scheme("light")


def luminance(colour):
    channels = [int(number) / 255 for number in re.findall(r"\d+", colour)[:3]]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@in_chromium
def test_light_and_dark_are_both_readable(opened):
    backgrounds = []
    for scheme in ("light", "dark"):
        opened.scheme(scheme)
        background = luminance(opened.value("getComputedStyle(document.body).backgroundColor"))
        backgrounds.append(background)
        for selector in ("body", ".note", "td.paper", "nav a", "figure svg text"):
            name = "fill" if "svg" in selector else "color"
            ink = luminance(opened.value(f"getComputedStyle(document.querySelector('{selector}')).{name}"))
            contrast = (max(ink, background) + 0.05) / (min(ink, background) + 0.05)
            assert contrast >= 4.5, f"{selector} in {scheme}"
    assert backgrounds[0] > 0.8
    assert backgrounds[1] < 0.05
