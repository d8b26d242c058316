"""The live page in a real browser: it follows the service, needs nothing else, and its buttons work by keyboard."""

import re

import pytest

import bacs
from bacs.serve.page import read_asset
from chromium import Page
from serving import TOKEN, Running, pixels, served_ensemble

in_chromium = pytest.mark.needs("chromium")
CONNECTED = "document.getElementById('state').textContent !== 'connecting'"


def test_the_page_names_no_other_place():
    for name in ("page.html", "page.css", "page.js", "charts.js", "login.html"):
        addresses = re.findall(r"https?://[^\"'\s)]+", read_asset(name))
        assert set(addresses) <= {"http://www.w3.org/2000/svg"}, name  # the name of SVG, which nobody fetches


def test_every_element_that_the_script_asks_for_is_there():
    ids = re.findall(r'\bid="([^"]+)"', read_asset("page.html"))
    asked = set(re.findall(r'\bat\("([^"]+)"\)', read_asset("page.js")))
    assert len(asked) > 15
    assert asked <= set(ids)
    assert len(ids) == len(set(ids))


@pytest.fixture(scope="module")
def running():
    with Running(bacs.stream(served_ensemble(), "bacs")) as running:
        for seed in range(3):
            running.predict(pixels(8, seed))
        yield running


@pytest.fixture(scope="module")
def opened_browser(tmp_path_factory):
    with Page(tmp_path_factory.mktemp("profile")) as page:
        yield page


@pytest.fixture
def browser(opened_browser):
    opened_browser.call("Network.clearBrowserCookies")
    return opened_browser


def visit(browser, running):
    browser.visit(f"http://127.0.0.1:{running.port}/")
    browser.wait_for(CONNECTED)


def text(browser, name):
    return browser.value(f"document.getElementById('{name}').innerText")


def press_on(browser, name, key="Enter"):
    """As a keyboard does it: focus, then the key."""
    browser.value(f"document.getElementById('{name}').focus()")
    assert browser.value("document.activeElement.id") == name
    browser.press(key)


@in_chromium
def test_the_page_shows_what_the_service_saw(browser, running):
    visit(browser, running)
    assert text(browser, "name") == "small"
    assert text(browser, "state") == "adapting"
    assert "Estimated accuracy" in text(browser, "tiles")
    assert browser.value("document.querySelectorAll('#charts svg[role=img]').length") == 8
    assert browser.value("document.querySelectorAll('#charts polyline').length") == 11
    assert "%" in browser.value("document.querySelector('#charts svg').getAttribute('aria-label')")
    assert browser.value("document.querySelectorAll('#pictures img').length") == 12
    browser.wait_for("[...document.querySelectorAll('#pictures img')].every(image => image.naturalWidth === 12)")
    assert "ant" in text(browser, "classes").split()
    host = f"http://127.0.0.1:{running.port}/"
    assert {address.startswith((host, "data:")) for address in browser.requests} == {True}
    assert browser.errors == []


@in_chromium
def test_the_page_goes_on_with_the_service(browser, running):
    visit(browser, running)
    before = browser.value("document.getElementById('tiles').innerText")
    running.predict(pixels(8, 7))
    browser.wait_for(f"document.getElementById('tiles').innerText !== {before!r}")


@in_chromium
def test_buttons_are_locked_until_the_token_is_given_and_then_work_by_keyboard(browser, running):
    visit(browser, running)
    assert browser.value("document.getElementById('freeze').disabled") is True
    press_on(browser, "unlock")
    browser.wait_for("document.getElementById('login').open")
    browser.value(f"document.getElementById('token').value = {TOKEN!r}")
    press_on(browser, "token")  # sends the form
    browser.wait_for("document.getElementById('freeze')?.disabled === false")
    browser.wait_for("performance.getEntriesByType('paint').length > 0")  # until then Chromium drops what is pressed
    press_on(browser, "freeze")
    browser.wait_for("document.getElementById('state').textContent === 'frozen'")
    assert running.service.worker.frozen is True
    browser.wait_for("document.getElementById('said').textContent.startsWith('Frozen')")
    press_on(browser, "freeze", "Space")
    browser.wait_for("document.getElementById('state').textContent === 'adapting'")
    assert browser.value("document.querySelectorAll('#decisions li').length") == 2
    press_on(browser, "pictures-switch")
    browser.wait_for("document.querySelectorAll('#pictures img').length === 0")
    press_on(browser, "reset")
    browser.wait_for("document.getElementById('sure').open")
    browser.press("Enter")  # the first button keeps what is there
    browser.wait_for("!document.getElementById('sure').open")
    assert running.service.worker.stream.steps > 0
    press_on(browser, "reset")
    browser.wait_for("document.getElementById('sure').open")
    browser.value("document.querySelector('#sure .strong').focus()")
    browser.press("Enter")
    browser.wait_for("document.getElementById('said').textContent.startsWith('Back to')")
    assert running.service.worker.stream.steps == 0
    assert browser.errors == []


@in_chromium
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_in_light_and_dark(browser, running, scheme):
    browser.scheme(scheme)
    visit(browser, running)
    luminance = """(name => {
        const canvas = document.createElement('canvas').getContext('2d');
        canvas.fillStyle = getComputedStyle(document.body)[name];
        canvas.fillRect(0, 0, 1, 1);
        const parts = [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3).map(
            v => v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4);
        return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
    })"""
    ink, paper = (browser.value(f"{luminance}('{name}')") for name in ("color", "backgroundColor"))
    assert (ink < paper) == (scheme == "light")
    assert (max(ink, paper) + 0.05) / (min(ink, paper) + 0.05) >= 7  # WCAG's contrast, level AAA


@in_chromium
@pytest.mark.parametrize("width", [320, 390, 1280])
def test_nothing_overflows_at_any_width(browser, running, width):
    browser.width(width)
    visit(browser, running)
    browser.wait_for("document.querySelectorAll('#charts svg').length === 8")
    assert browser.value("document.documentElement.scrollWidth") <= width
    browser.width(1280)


@in_chromium
def test_everything_that_can_be_pressed_has_a_name_and_a_size(browser, running):
    visit(browser, running)
    found = browser.value(
        "[...document.querySelectorAll('button, a, input')].filter(e => e.checkVisibility() && !e.matches('.skip'))"
        ".map(e => [e.innerText || e.labels?.[0]?.innerText, e.getBoundingClientRect().height])"
    )
    assert len(found) >= 7
    assert all(name and height >= 16 for name, height in found)
    assert browser.value("document.documentElement.lang") == "en"
    assert browser.value("[...document.querySelectorAll('section')].every(s => s.getAttribute('aria-labelledby'))")


@in_chromium
def test_a_locked_service_shows_the_form_and_then_the_page(browser):
    with Running(bacs.stream(served_ensemble(), "vanilla"), required=True) as locked:
        browser.visit(f"http://127.0.0.1:{locked.port}/")
        assert browser.value("document.querySelector('h1').textContent") == "This service asks for its token"
        browser.value("document.getElementById('token').value = 'wrong'")
        press_on(browser, "token")
        browser.wait_for("document.querySelector('[role=alert]')?.textContent === 'That is not the token.'")
        browser.value(f"document.getElementById('token').value = {TOKEN!r}")
        press_on(browser, "token")
        browser.wait_for("document.getElementById('state')?.textContent === 'adapting'")


@in_chromium
def test_a_service_that_ends_is_missed(browser):
    with Running(bacs.stream(served_ensemble(), "vanilla")) as short:
        visit(browser, short)
    browser.wait_for("document.getElementById('state').textContent === 'not connected'")
