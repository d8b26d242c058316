"""Freezing, resuming, resetting, saving; what the page and the metrics are told."""

import json
import socket

import numpy as np
import torch
from prometheus_client.parser import text_string_to_metric_families

import bacs
from bacs.parameters import read
from bacs.serve import display
from bacs.serve.display import Display
from serving import Running, encoded, multipart, pixels, served_ensemble

BATCHES = [pixels(8, seed) for seed in range(6)]


def confidences(told):
    return [row["confidence"] for row in told["predictions"]]


def weights(running):
    return [read(member.model) for member in running.service.worker.stream.members]


def unchanged(before, after):
    return all(
        torch.equal(own[name], value) for own, old in zip(after, before, strict=True) for name, value in old.items()
    )


def test_frozen_it_predicts_as_it_stands_and_resumed_it_goes_on():
    alone = bacs.stream(served_ensemble(), "bacs", learning_rate=0.1)
    with Running(bacs.stream(served_ensemble(), "bacs", learning_rate=0.1)) as running:
        for batch in BATCHES[:2]:
            running.predict(batch)
            alone.step(batch)
        assert running.control("freeze")["frozen"] is True
        before = weights(running)
        told = running.predict(BATCHES[2])
        assert (told["state"]["frozen"], told["state"]["step"]) == (True, 2)
        assert unchanged(before, weights(running))
        assert running.control("resume")["frozen"] is False
        expected = alone.step_predictive(BATCHES[2]).probabilities.max(dim=-1).values
        # The same weights and statistics meet the batch twice: the frozen answer is that of the step to come.
        np.testing.assert_allclose(confidences(told), expected.numpy(), atol=1e-6)
        np.testing.assert_allclose(confidences(running.predict(BATCHES[2])), expected.numpy(), atol=1e-6)
        assert not unchanged(before, weights(running))
        assert [event["what"] for event in running.service.display.snapshot()["decisions"]] == [
            {"frozen": [False, True]},
            {"frozen": [True, False]},
        ]


def test_frozen_from_the_start_it_is_the_ensemble_as_it_came():
    with Running(bacs.stream(served_ensemble(), "auto"), frozen=True) as running:
        told = running.predict(BATCHES[0])
    expected = served_ensemble().predict(BATCHES[0]).max(dim=-1).values
    np.testing.assert_allclose(confidences(told), expected.numpy(), atol=1e-6)


def test_frozen_under_running_statistics_moves_none():
    stream = bacs.stream(served_ensemble(), "bn", statistics="running")
    with Running(stream) as running:
        running.predict(BATCHES[0])
        running.control("freeze")
        answers = [confidences(running.predict(BATCHES[1])) for _ in range(2)]
        assert answers[0] == answers[1]


def test_reset_is_the_start_again():
    with Running(bacs.stream(served_ensemble(), "bacs", learning_rate=0.1)) as running:
        first = [confidences(running.predict(batch)) for batch in BATCHES[:3]]
        assert running.control("reset")["step"] == 0
        assert [confidences(running.predict(batch)) for batch in BATCHES[:3]] == first


def test_save_says_whether_it_went_well(tmp_path):
    with Running(bacs.stream(served_ensemble(), "bacs"), state=tmp_path / "state") as running:
        running.predict(BATCHES[0])
        assert running.control("save")["saved"] is True
        assert bacs.load(tmp_path / "state").steps == 1


def test_a_stream_that_diverged_goes_home_and_answers():
    stream = bacs.stream(served_ensemble(), "bacs")
    with Running(stream) as running:
        running.predict(BATCHES[0])
        with torch.no_grad():
            next(iter(stream.members[0].model.parameters())).fill_(float("nan"))
        expected = bacs.stream(served_ensemble(), "bacs").step_predictive(BATCHES[1]).probabilities.max(dim=-1).values
        np.testing.assert_allclose(confidences(running.predict(BATCHES[1])), expected.numpy(), atol=1e-6)
        running.settle()
        decision = running.service.display.snapshot()["decisions"][-1]
        assert decision["reason"] == "a member's outputs stopped being finite"


def test_pictures_are_shown_and_then_forgotten_for_privacy():
    with Running(bacs.stream(served_ensemble(), "vanilla")) as running:
        running.predict(BATCHES[0])
        running.settle()
        shown = running.service.display.snapshot()["pictures"]
        assert len(shown) == 8
        status, headers, told = running.ask("GET", f"/pictures/{shown[0]['number']}")
        assert (status, headers["content-type"], told[:4]) == (200, "image/png", b"\x89PNG")
        assert running.control("pictures/false")["shows_pictures"] is False
        assert running.ask("GET", f"/pictures/{shown[0]['number']}")[0] == 404
        running.predict(BATCHES[1])
        running.settle()
        assert running.service.display.snapshot()["pictures"] == []
        running.control("pictures/true")
        running.predict(BATCHES[1])
        running.settle()
        assert len(running.service.display.snapshot()["pictures"]) == 8


def test_the_figures_are_those_of_the_last_images():
    with Running(bacs.stream(served_ensemble(), "vanilla")) as running:
        running.predict(BATCHES[0])
        running.settle()
        row = json.loads(running.ask("GET", "/status")[2])["rows"][-1]
    predictive = served_ensemble().predictive(BATCHES[0])
    figures = bacs.agreement.observe(predictive)
    estimate = bacs.agreement.estimate(figures, 8, 2)
    expected = {"estimate": estimate.ensemble, "low": estimate.low, "high": estimate.high, "moved": 0.0}
    expected |= {name: getattr(figures, name) for name in ("agreement", "confidence", "effective_classes")}
    np.testing.assert_allclose([row[name] for name in expected], list(expected.values()), atol=1e-6)
    assert row["classes"] == predictive.probabilities.argmax(dim=-1).bincount(minlength=5).tolist()
    assert (row["batch_weight"], row["learning_rate"]) == (0.0, 0.0)


def test_prometheus_reads_the_metrics():
    with Running(bacs.stream(served_ensemble(), "bacs")) as running:
        for batch in BATCHES[:2]:
            running.predict(batch)
        running.settle()
        running.ask("GET", "/nothing/of/the/kind")
        text = running.ask("GET", "/metrics")[2].decode()
    samples = {(s.name, *s.labels.values()): s.value for f in text_string_to_metric_families(text) for s in f.samples}
    assert samples["bacs_images_total",] == 16
    assert samples["bacs_requests_total", "/predict", "200"] == 2
    assert samples["bacs_requests_total", "other", "404"] == 1
    assert samples["bacs_batch_images_count",] == 2
    assert 0 < samples["bacs_agreement",] <= 1


def test_events_follow_the_service():
    with Running(bacs.stream(served_ensemble(), "vanilla")) as running:
        client = socket.create_connection(("127.0.0.1", running.port))
        client.sendall(b"GET /events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        lines = client.makefile("rb")

        def event():
            line = next(line for line in lines if line.startswith(b"data: "))
            return json.loads(line.removeprefix(b"data: "))

        assert event()["rows"] == []
        running.predict(BATCHES[0])
        while not (told := event())["rows"]:
            pass
        assert (told["now"]["name"], told["rows"][0]["step"], told["now"]["admitted"]) == ("small", 1, False)
    assert lines.read().endswith(b"0\r\n\r\n")  # the end of the service ends the events in good order
    lines.close()
    client.close()


def test_a_long_past_stays_in_less_detail(monkeypatch):
    monkeypatch.setattr(display, "ROWS", 10)
    shown = Display()
    for step in range(100):
        shown.add_row({"step": step})
    steps = [row["step"] for row in shown.snapshot()["rows"]]
    assert len(steps) <= 10
    assert steps[0] == 0
    assert steps[-1] == 99
    assert steps == sorted(set(steps))


def test_several_forms_at_once_are_served_one_after_another():
    """Pictures of two sizes where the checkpoint names none: no batch could hold both."""
    ensemble = served_ensemble()
    fit = bacs.Preprocessing((0.5,) * 3, (0.25,) * 3)
    members = [bacs.Member(m.model, m.posterior, fit, m.architecture) for m in ensemble.members]
    with Running(bacs.stream(bacs.Ensemble(members), "vanilla")) as running:
        assert len(running.predict(pixels(2))["predictions"]) == 2
        assert len(running.predict(pixels(2, size=16))["predictions"]) == 2
        mixed = multipart([encoded(pixels(1)[0]), encoded(pixels(1, size=16)[0])])
        status, _, told = running.ask("POST", "/predict", *mixed)
    assert status == 422
    assert "one size" in json.loads(told)["error"]


def test_health_tells_ready_from_alive():
    """Without the thread that owns the stream nothing can be answered, though the process is there."""
    with Running(bacs.stream(served_ensemble(), "vanilla")) as running:
        assert running.ask("GET", "/v2/health/ready")[0] == 200
        running.service.queue.close()
        running.service.worker.join()
        assert running.ask("GET", "/v2/health/live")[0] == 200
        assert running.ask("GET", "/v2/health/ready")[0] == 503
        status, headers, _ = running.ask("POST", "/predict", *multipart([encoded(pixels(1)[0])]))
        assert (status, headers["retry-after"]) == (503, "10")
