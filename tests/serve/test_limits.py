"""Clients that ask for too much, send too slowly or leave: they hear so, and the others are served."""

import json
import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Event

import pytest

import bacs
from bacs.serve.limits import Limits
from serving import PATIENCE, Running, encoded, multipart, pixels, served_ensemble, wait_until

PICTURE = encoded(pixels(1)[0])
AS_PNG = {"Content-Type": "image/png"}
HEAD = b"POST /predict HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: image/png\r\n"


def stream():
    return bacs.stream(served_ensemble(), "vanilla")


def connected(running):
    return socket.create_connection(("127.0.0.1", running.port), timeout=PATIENCE)


def held_up(running, monkeypatch):
    """Lets the worker wait before its next batch until the event that is returned is set, and says when it does."""
    waits, go = Event(), Event()
    own = running.service.worker._predict

    def late(batch):
        waits.set()
        assert go.wait(PATIENCE)
        return own(batch)

    monkeypatch.setattr(running.service.worker, "_predict", late)
    return waits, go


def test_a_gigabyte_that_is_announced_is_refused_unread():
    with Running(stream()) as running, connected(running) as client:
        client.sendall(HEAD + b"Content-Length: 1073741824\r\n\r\n")
        answer = client.recv(4096)
        assert answer.startswith(b"HTTP/1.1 413 ")
        assert b"connection: close" in answer.lower()
        assert running.predict(pixels(2))


def test_a_body_without_a_length_is_read_up_to_the_limit():
    with Running(stream(), limits=Limits(max_body_bytes=1000)) as running, connected(running) as client:
        client.sendall(HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + b"400\r\n" + b"x" * 1024 + b"\r\n")
        assert client.recv(4096).startswith(b"HTTP/1.1 413 ")
        assert running.predict(pixels(1))


def test_bodies_are_limited_together():
    limits = Limits(max_body_bytes=1000, max_held_bytes=1750)
    with Running(stream(), limits=limits) as running, connected(running) as first, connected(running) as second:
        first.sendall(HEAD + b"Content-Length: 1000\r\n\r\n" + b"x" * 900)
        wait_until(lambda: running.service.intake.bytes == 900)
        second.sendall(HEAD + b"Content-Length: 1000\r\n\r\n" + b"x" * 900)
        assert second.recv(4096).startswith(b"HTTP/1.1 429 ")
        assert running.predict(pixels(1))
    assert running.service.intake.bytes == 0


def test_a_slow_sender_is_told_to_hurry_and_others_are_served():
    with Running(stream(), limits=Limits(max_seconds=1.0)) as running, connected(running) as slow:
        slow.sendall(HEAD + b"Content-Length: 1000\r\n\r\nx")
        assert running.predict(pixels(2))
        assert slow.recv(4096).startswith(b"HTTP/1.1 408 ")


def test_headers_without_end_are_cut_off():
    with Running(stream(), limits=Limits(max_seconds=1.0)) as running, connected(running) as slow:
        slow.sendall(b"POST /predict HTTP/1.1\r\nHost:")
        assert running.predict(pixels(2))
        with suppress(ConnectionResetError):
            assert slow.recv(4096) == b""


def test_connections_beyond_the_limit_are_closed():
    with Running(stream(), limits=Limits(max_connections=2)) as running:
        with connected(running), connected(running), connected(running) as third, suppress(ConnectionResetError):
            assert third.recv(10) == b""
        wait_until(lambda: not running.server.server_state.connections)
        assert running.predict(pixels(2))


def test_a_full_queue_says_when_to_come_again(monkeypatch):
    with Running(stream(), limits=Limits(max_queue=8)) as running, ThreadPoolExecutor(2) as pool:
        waits, go = held_up(running, monkeypatch)
        served = [pool.submit(running.predict, pixels(8))]
        assert waits.wait(PATIENCE)
        served.append(pool.submit(running.predict, pixels(8)))
        wait_until(lambda: running.service.queue.images == 8)
        status, headers, told = running.ask("POST", "/predict", PICTURE, AS_PNG)
        assert (status, json.loads(told)) == (429, {"error": "the service is busy"})
        assert 1 <= int(headers["retry-after"]) <= 60
        go.set()
        assert [len(one.result()["predictions"]) for one in served] == [8, 8]
        assert running.predict(pixels(1))


def test_requests_beyond_the_limit_are_refused():
    with Running(stream(), limits=Limits(max_requests=1)) as running, connected(running) as slow:
        slow.sendall(HEAD + b"Content-Length: 1000\r\n\r\nx")
        wait_until(lambda: running.service.intake.requests == 1)
        assert running.ask("POST", "/predict", PICTURE, AS_PNG)[0] == 429


def test_who_waits_too_long_is_told_and_its_place_is_free_again(monkeypatch):
    with Running(stream(), limits=Limits(max_seconds=1.0)) as running, ThreadPoolExecutor(1) as pool:
        waits, go = held_up(running, monkeypatch)
        first = pool.submit(running.ask, "POST", "/predict", *multipart([PICTURE]))
        assert waits.wait(PATIENCE)
        status, headers, _ = running.ask("POST", "/predict", PICTURE, AS_PNG)
        assert (status, "retry-after" in headers) == (503, True)
        assert running.service.queue.images == 0
        assert first.result()[0] == 503
        go.set()
        assert running.predict(pixels(1))
        assert running.service.worker.stream.steps == 2  # what was given up before its turn was never stepped


def test_clients_that_vanish_hold_nobody_up(monkeypatch):
    with Running(stream()) as running:
        waits, go = held_up(running, monkeypatch)
        for part in (0, len(PICTURE) // 2, len(PICTURE)):
            client = connected(running)
            client.sendall(HEAD + f"Content-Length: {len(PICTURE)}\r\n\r\n".encode() + PICTURE[:part])
            if part == len(PICTURE):
                assert waits.wait(PATIENCE)
            client.close()
        go.set()
        assert running.predict(pixels(2))
        wait_until(lambda: running.service.intake.requests == 0)
    assert running.service.intake.bytes == 0


def test_pages_beyond_the_limit_are_refused():
    with Running(stream(), limits=Limits(max_watchers=1)) as running, connected(running) as first:
        first.sendall(b"GET /events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        assert first.recv(4096).startswith(b"HTTP/1.1 200 ")
        wait_until(lambda: running.service.display.watchers == 1)
        assert running.ask("GET", "/events")[0] == 429


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({"max_seconds": 0}, "max_seconds must be > 0, got 0"),
        ({"max_queue": 7}, "max_queue must hold a batch at least, 8 images, got 7"),
        ({"max_held_bytes": 5}, "max_held_bytes must be max_body_bytes at least, got 5"),
    ],
)
def test_impossible_limits_are_named(limits, message):
    with pytest.raises(ValueError, match=message):
        Limits(**limits).check(8)
