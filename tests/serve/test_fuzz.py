"""Damaged and invented requests: no status of 500 or above, no traceback, and the process lives."""

import json

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from serve_mutations import attack

import bacs
from serving import BEARER, Running, pixels, served_ensemble

with Running(bacs.stream(served_ensemble(), "bacs")) as described:
    schema = schemathesis.openapi.from_dict(json.loads(described.ask("GET", "/openapi.json")[2]))


@pytest.fixture(scope="module")
def running():
    with Running(bacs.stream(served_ensemble(), "bacs")) as running:
        yield running


def test_mutated_requests_of_both_protocols_do_no_harm(running):
    counts, faults = attack(running.port, "small", 12, requests=300, seed=0, patience=0.2)
    assert faults == []
    assert counts[200] > 5
    assert sum(counts[status] for status in (400, 413, 415, 422)) > 50
    assert running.predict(pixels(2))


@schema.parametrize()
@settings(max_examples=8, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
def test_what_the_description_allows_is_answered(case, running):
    answer = case.call(base_url=f"http://127.0.0.1:{running.port}", headers=BEARER)
    assert answer.status_code < 500
    assert "Traceback" not in answer.text
