"""The plain protocol: what is answered is what `bacs.stream` says of the same batches."""

import json
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import bacs
from bacs.agreement import per_image
from bacs.predictive import mutual_information, predictive_entropy
from serving import Limits, Running, encoded, multipart, pixels, served_ensemble

BATCHES = [pixels(8, seed) for seed in range(6)]


@pytest.mark.parametrize("method", ["auto", "bacs", "vanilla"])
def test_pictures_get_the_predictions_of_a_stream_on_the_same_batches(method):
    alone = bacs.stream(served_ensemble(), method)
    with Running(bacs.stream(served_ensemble(), method)) as running:
        for step, batch in enumerate(BATCHES, start=1):
            expected = alone.step_predictive(batch)
            told = running.predict(batch)
            rows = told["predictions"]
            assert told["state"]["step"] == step
            top = expected.probabilities.max(dim=-1)
            assert [row["class_index"] for row in rows] == top.indices.tolist()
            for name, values in {
                "confidence": top.values,
                "predictive_entropy": predictive_entropy(expected),
                "expected_entropy": expected.expected_entropy,
                "mutual_information": mutual_information(expected),
                "agreement": per_image(expected.labels),
            }.items():
                np.testing.assert_allclose([row[name] for row in rows], values.numpy(), atol=1e-6, rtol=0)
            assert [row["class_name"] for row in rows] == [["ant", "bee", "cat", "dog", "elk"][i] for i in top.indices]
            assert all(row["abstain"] == (row["confidence"] < row["threshold"]) for row in rows)


def test_requests_share_batches_and_each_gets_its_own_answer():
    images = pixels(8)
    expected = bacs.stream(served_ensemble(), "vanilla").step(images).max(dim=-1)
    with Running(bacs.stream(served_ensemble(), "vanilla"), delay=30.0) as running, ThreadPoolExecutor(8) as pool:
        told = list(pool.map(lambda image: running.predict(image[None]), images))
        assert running.service.worker.stream.steps == 1  # eight requests of one picture were one full batch
    assert [one["predictions"][0]["class_index"] for one in told] == expected.indices.tolist()
    confidences = [one["predictions"][0]["confidence"] for one in told]
    np.testing.assert_allclose(confidences, expected.values.numpy(), atol=1e-6)


def test_coverage_sets_how_often_it_abstains():
    with Running(bacs.stream(served_ensemble(), "vanilla"), coverage=0.5) as running:
        rows = running.predict(pixels(8))["predictions"]
    confidences = sorted(row["confidence"] for row in rows)
    assert {row["threshold"] for row in rows} == {confidences[4]}
    assert sum(row["abstain"] for row in rows) == 4


def test_an_accuracy_that_nobody_reaches_makes_it_abstain_always():
    with Running(bacs.stream(served_ensemble(), "vanilla"), accuracy=0.999999) as running:
        assert all(row["abstain"] for row in running.predict(pixels(8))["predictions"])


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP"])
def test_a_raw_picture_is_one_prediction(kind):
    image = pixels(1, size=40)[0]
    with Running(bacs.stream(served_ensemble(), "vanilla")) as running:
        for header in (f"image/{kind.lower()}", "application/octet-stream"):
            status, _, told = running.ask("POST", "/predict", encoded(image, kind), {"Content-Type": header})
            assert status == 200
            assert len(json.loads(told)["predictions"]) == 1


def test_one_network_has_no_agreement():
    with Running(bacs.stream(served_ensemble(1), "vanilla")) as running:
        assert {row["agreement"] for row in running.predict(pixels(2))["predictions"]} == {None}


@pytest.fixture(scope="module")
def running():
    limits = Limits(max_pixels=10_000, max_body_bytes=100_000)
    with Running(bacs.stream(served_ensemble(), "vanilla"), limits=limits) as running:
        yield running


PICTURE = encoded(pixels(1)[0])
REFUSED = {
    "text": (b"no picture", "picture 1: not a JPEG, PNG or WEBP picture", 422),
    "empty": (b"", "picture 1: empty", 422),
    "truncated": (encoded(pixels(1, size=64)[0])[:4000], "picture 1: damaged", 422),
    "of another format": (encoded(pixels(1)[0], "GIF"), "picture 1: not a JPEG, PNG or WEBP picture", 422),
    "too many pixels": (encoded(pixels(1, size=101)[0]), "at most 10000 pixels are allowed, got 101 x 101", 413),
    "a pickle": (b"\x80\x04\x95\x0b\x00\x00\x00\x00\x00\x00\x00", "not a JPEG, PNG or WEBP picture", 422),
    "a path": (b"/etc/passwd", "not a JPEG, PNG or WEBP picture", 422),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_no_picture_is_refused_in_one_line(running, case):
    body, reason, code = REFUSED[case]
    status, _, told = running.ask("POST", "/predict", body, {"Content-Type": "image/png"})
    assert status == code
    assert reason in json.loads(told)["error"]
    assert running.predict(pixels(2))["predictions"]


def test_forms_without_pictures_or_with_too_many_are_refused(running):
    for parts, code, reason in (
        ([], 422, "no picture"),
        ([PICTURE] * 9, 413, "at most 8 pictures"),
        ([PICTURE, b"x"], 422, "picture 2: not a JPEG, PNG or WEBP picture"),
    ):
        status, _, told = running.ask("POST", "/predict", *multipart(parts))
        assert (status, reason in json.loads(told)["error"]) == (code, True)


@pytest.mark.parametrize(
    ("kind", "code"),
    [("text/plain", 415), ("", 415), ("multipart/form-data", 422), ("multipart/form-data; boundary=x", 422)],
)
def test_other_kinds_of_bodies_are_refused(running, kind, code):
    assert running.ask("POST", "/predict", PICTURE, {"Content-Type": kind})[0] == code


def test_compressed_bodies_are_refused(running):
    headers = {"Content-Type": "image/png", "Content-Encoding": "gzip"}
    assert running.ask("POST", "/predict", PICTURE, headers)[0] == 415


def test_a_model_without_preprocessing_says_where_tensors_go(ensemble):
    with Running(bacs.stream(ensemble, "vanilla")) as running:
        status, _, told = running.ask("POST", "/predict", PICTURE, {"Content-Type": "image/png"})
    assert status == 422
    assert "/v2/models/small/infer" in json.loads(told)["error"]
