"""Who may come in: without the token nothing but health answers, and other sites' pages can do nothing."""

import json

import pytest

import bacs
from bacs.serve import control, page, plain, protocol
from bacs.serve.access import Access, access_for
from serving import BEARER, TOKEN, Running, encoded, pixels, served_ensemble

OPEN = {"/v2/health/live", "/v2/health/ready"}
PICTURE = encoded(pixels(1)[0])
AS_PNG = {"Content-Type": "image/png"}


@pytest.fixture(scope="module")
def locked():
    with Running(bacs.stream(served_ensemble(), "vanilla"), required=True) as running:
        yield running


@pytest.fixture(scope="module")
def unlocked():
    with Running(bacs.stream(served_ensemble(), "vanilla")) as running:
        yield running


def routes_of(running):
    """(method, path) of every route, with values in place of parameters."""
    values = {"{model}": "small", "{number}": "1", "{shown}": "true"}
    routers = [part.routes(running.service) for part in (control, page, plain, protocol)]
    found = {("GET", "/docs"), ("GET", "/openapi.json")}
    for route in (route for router in routers for route in router.routes):
        path = route.path
        for name, value in values.items():
            path = path.replace(name, value)
        found |= {(method, path) for method in route.methods}
    return sorted(found)


def test_no_route_but_health_answers_without_the_token(locked):
    routes = routes_of(locked)
    assert len(routes) == 26
    cookie = {"Cookie": f"{locked.service.access.cookie[0]}=x"}
    wrong = {"Authorization": "Bearer wrong"}, {"Authorization": f"Basic {TOKEN}"}, cookie
    for method, path in routes:
        body = PICTURE if method == "POST" else None
        for headers in ({}, *wrong):
            status, _, told = locked.ask(method, path, body, AS_PNG | headers)
            assert status == (200 if path in OPEN else 401), (method, path)
            assert TOKEN.encode() not in told


def test_every_route_answers_with_the_token(locked):
    expected = {"/pictures/1": {200, 404}}
    expected |= {f"/v2/models/small/{version}infer": {400} for version in ("", "versions/1/")}
    for method, path in routes_of(locked):
        if path in ("/events", "/login"):  # has no end; takes no header
            continue
        status, _, told = locked.ask(method, path, PICTURE if path == "/predict" else None, AS_PNG | BEARER)
        assert status in expected.get(path, {200}), (method, path, told)


def test_unknown_paths_need_the_token_too(locked):
    assert locked.ask("GET", "/nothing")[0] == 401
    assert locked.ask("GET", "/nothing", headers=BEARER)[0] == 404


def test_a_browser_gets_a_form_and_with_the_token_a_cookie(locked):
    status, headers, told = locked.ask("GET", "/")
    assert (status, headers["content-type"]) == (401, "text/html; charset=utf-8")
    assert b'action="/login"' in told
    wrong = locked.ask("POST", "/login", "token=wrong", {"Content-Type": "application/x-www-form-urlencoded"})
    assert wrong[0] == 401
    assert "set-cookie" not in wrong[1]
    status, headers, _ = locked.ask("POST", "/login", f"token={TOKEN}")
    assert (status, headers["location"]) == (303, "/")
    cookie, *attributes = headers["set-cookie"].split("; ")
    assert {"HttpOnly", "SameSite=strict", "Path=/"} <= set(attributes)
    assert TOKEN not in cookie
    assert locked.ask("GET", "/", headers={"Cookie": cookie})[0] == 200
    assert locked.ask("POST", "/control/freeze", headers={"Cookie": cookie})[0] == 200
    assert locked.ask("POST", "/control/resume", headers={"Cookie": cookie})[0] == 200


def test_a_login_without_end_is_not_read(locked):
    assert locked.ask("POST", "/login", b"token=" + b"x" * 5000)[0] == 401


@pytest.mark.parametrize("action", ["freeze", "resume", "reset", "save", "pictures/false"])
def test_control_needs_the_token_always(unlocked, action):
    assert unlocked.ask("GET", "/status")[0] == 200
    assert unlocked.ask("POST", f"/control/{action}")[0] == 401
    assert unlocked.ask("POST", f"/control/{action}", headers=BEARER)[0] == 200
    assert unlocked.ask("GET", f"/control/{action}", headers=BEARER)[0] == 405


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://elsewhere.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_pages_of_other_sites_can_neither_control_nor_predict(unlocked, headers):
    cookie = {"Cookie": "=".join(unlocked.service.access.cookie)}
    assert unlocked.ask("POST", "/control/freeze", headers=cookie | headers)[0] == 403
    assert unlocked.ask("POST", "/predict", PICTURE, AS_PNG | headers)[0] == 403
    assert unlocked.service.worker.frozen is False


def test_the_own_page_can(unlocked):
    headers = {"Origin": f"http://127.0.0.1:{unlocked.port}", "Sec-Fetch-Site": "same-origin"}
    cookie = {"Cookie": "=".join(unlocked.service.access.cookie)}
    assert unlocked.ask("POST", "/control/resume", headers=cookie | headers)[0] == 200
    assert unlocked.ask("POST", "/predict", PICTURE, AS_PNG | headers)[0] == 200


def test_a_link_from_elsewhere_may_lead_to_the_page_alone(unlocked):
    headers = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
    assert unlocked.ask("GET", "/", headers=headers)[0] == 200
    assert unlocked.ask("GET", "/status", headers=headers)[0] == 403


@pytest.mark.parametrize("host", ["elsewhere.example", "127.0.0.1.elsewhere.example", "[", ""])
def test_a_name_that_others_gave_to_this_machine_is_refused(unlocked, host):
    assert unlocked.ask("GET", "/status", headers={"Host": host})[0] == 421


def test_no_answer_can_be_framed_guessed_or_kept(unlocked):
    _, headers, _ = unlocked.ask("GET", "/")
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cache-control"] == "no-store"
    assert "default-src 'none'" in headers["content-security-policy"]
    assert "access-control-allow-origin" not in headers
    assert "server" not in headers


def test_a_preflight_of_another_site_is_not_granted(unlocked):
    headers = {"Origin": "http://elsewhere.example", "Access-Control-Request-Method": "POST"}
    status, told, _ = unlocked.ask("OPTIONS", "/control/freeze", headers=headers)
    assert status >= 400
    assert "access-control-allow-origin" not in told


def test_errors_tell_nothing_of_the_machine(unlocked, monkeypatch):
    def broken(*_):
        raise RuntimeError("/secret/path of the machine")

    monkeypatch.setattr(unlocked.service.worker, "_predict", broken)
    status, _, told = unlocked.ask("POST", "/predict", PICTURE, AS_PNG)
    assert (status, json.loads(told)) == (500, {"error": "the service could not answer"})
    monkeypatch.undo()
    assert unlocked.ask("POST", "/predict", PICTURE, AS_PNG)[0] == 200


class TestAccess:
    def test_this_machine_needs_no_token_but_for_control(self):
        for host in ("127.0.0.1", "::1", "localhost", "127.8.8.8"):
            access, made_up = access_for(host, None, no_token=False)
            assert (access.required, made_up, len(access.token) >= 32) == (False, True, True)
            assert host in access.hosts

    @pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.7", "machine.example"])
    def test_other_addresses_need_a_token_or_the_word_that_there_is_none(self, host, tmp_path):
        with pytest.raises(ValueError, match=r"can be reached by others: token_file .*\bno_token\b"):
            access_for(host, None, no_token=False)
        assert access_for(host, None, no_token=True)[0].required is False
        (tmp_path / "token").write_text(f"{TOKEN}\n")
        assert access_for(host, tmp_path / "token", no_token=False) == (Access(TOKEN, True, None), False)

    @pytest.mark.parametrize("text", ["", "short", "two words of many letters", "ümlaut-ümlaut-ümlaut"])
    def test_a_token_is_one_long_word(self, tmp_path, text):
        (tmp_path / "token").write_text(text)
        with pytest.raises(ValueError, match="one word of 16 ASCII characters"):
            access_for("127.0.0.1", tmp_path / "token", no_token=False)

    def test_a_token_file_that_is_missing_or_contradicted_is_named(self, tmp_path):
        with pytest.raises(ValueError, match="cannot be read: No such file"):
            access_for("127.0.0.1", tmp_path / "token", no_token=False)
        with pytest.raises(ValueError, match="no_token must be left out"):
            access_for("127.0.0.1", tmp_path / "token", no_token=True)
