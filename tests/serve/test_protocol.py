"""The Open Inference Protocol v2, spoken by an independent client and by hand."""

import json
import struct

import numpy as np
import pytest
import tritonclient.http as triton
from tritonclient.utils import InferenceServerException

import bacs
from serving import Running, pixels, served_ensemble


@pytest.fixture(scope="module")
def running():
    with Running(bacs.stream(served_ensemble(), "vanilla")) as running:
        yield running


@pytest.fixture
def client(running):
    client = triton.InferenceServerClient(f"127.0.0.1:{running.port}")
    yield client
    client.close()


def asked(images, kind, binary):
    tensor = triton.InferInput("images", list(images.shape), kind)
    tensor.set_data_from_numpy(images, binary_data=binary)
    return tensor


def test_the_client_finds_health_and_metadata(client):
    assert client.is_server_live()
    assert client.is_server_ready()
    assert client.is_model_ready("small")
    assert not client.is_model_ready("another")
    assert client.get_server_metadata()["extensions"] == ["binary_tensor_data"]
    told = client.get_model_metadata("small", "1")
    assert told["inputs"] == [{"name": "images", "datatype": "UINT8", "shape": [-1, 12, 12, 3]}]
    assert told["outputs"][0] == {"name": "probabilities", "datatype": "FP32", "shape": [-1, 5]}


@pytest.mark.parametrize("binary_in", [True, False])
@pytest.mark.parametrize("binary_out", [True, False])
def test_the_client_gets_the_predictions_of_a_stream(client, binary_in, binary_out):
    images = pixels(8, seed=3)
    expected = bacs.stream(served_ensemble(), "vanilla").step_predictive(images).probabilities.numpy()
    names = ["probabilities", "class_index", "abstain"]
    outputs = [triton.InferRequestedOutput(name, binary_data=binary_out) for name in names]
    told = client.infer("small", [asked(images, "UINT8", binary_in)], outputs=outputs, request_id="seven")
    np.testing.assert_allclose(told.as_numpy("probabilities"), expected, atol=1e-6, rtol=0)
    np.testing.assert_array_equal(told.as_numpy("class_index"), expected.argmax(axis=1))
    assert told.as_numpy("abstain").dtype == bool
    assert told.get_response()["id"] == "seven"


def test_without_a_wish_all_outputs_come(client):
    told = client.infer("small", [asked(pixels(2), "UINT8", True)]).get_response()
    names = {output["name"] for output in told["outputs"]}
    assert names == {
        *("probabilities", "class_index", "confidence", "predictive_entropy", "expected_entropy"),
        *("mutual_information", "agreement", "abstain"),
    }


@pytest.mark.parametrize("method", ["bacs", "auto"])
def test_floats_adapt_as_a_stream_does(method):
    alone = bacs.stream(served_ensemble(), method)
    generator = np.random.default_rng(0)
    batches = [generator.normal(size=(8, 3, 12, 12)).astype(np.float32) for _ in range(4)]
    with Running(bacs.stream(served_ensemble(), method)) as running:
        client = triton.InferenceServerClient(f"127.0.0.1:{running.port}")
        for batch in batches:
            told = client.infer("small", [asked(batch, "FP32", True)])
            expected = alone.step_predictive(batch).probabilities.numpy()
            np.testing.assert_allclose(told.as_numpy("probabilities"), expected, atol=1e-6, rtol=0)
        client.close()


def test_the_client_hears_why_it_was_refused(client):
    with pytest.raises(InferenceServerException, match="there is no such model"):
        client.infer("another", [asked(pixels(2), "UINT8", True)])
    with pytest.raises(InferenceServerException, match="at most 8 images, got 9"):
        client.infer("small", [asked(pixels(9), "UINT8", True)])
    with pytest.raises(InferenceServerException, match="outputs must be among probabilities"):
        client.infer("small", [asked(pixels(2), "UINT8", True)], outputs=[triton.InferRequestedOutput("logits")])


DATA = {"name": "images", "shape": [1, 2], "datatype": "FP32"}
REFUSED = {
    "no JSON": (b"{", 400, "not JSON"),
    "no object": (b"[]", 400, "JSON object"),
    "nested without end": (b"[" * 100_000, 400, "not JSON"),
    "no inputs": ({}, 400, "inputs must be a list of one tensor"),
    "another input": ({"inputs": [{**DATA, "name": "x"}]}, 400, "must be named 'images'"),
    "a negative shape": ({"inputs": [{**DATA, "shape": [1, -2], "data": [1]}]}, 400, "shape must be"),
    "no shape": ({"inputs": [{**DATA, "shape": 3, "data": [1]}]}, 400, "shape must be"),
    "an unknown type": ({"inputs": [{**DATA, "datatype": "BYTES", "data": ["a"]}]}, 400, "datatype must be"),
    "too few numbers": ({"inputs": [{**DATA, "data": [1]}]}, 400, "data must hold 2 numbers"),
    "words": ({"inputs": [{**DATA, "data": ["a", "b"]}]}, 400, "numbers of the datatype"),
    "ragged lists": ({"inputs": [{**DATA, "data": [[1], [2, 3]]}]}, 400, "nested by shape"),
    "beyond the type": ({"inputs": [{**DATA, "datatype": "UINT8", "data": [1, 256]}]}, 400, "numbers of the datatype"),
    "not finite": (
        b'{"inputs": [{"name": "images", "shape": [1, 2], "datatype": "FP32", "data": [1, NaN]}]}',
        422,
        "finite",
    ),
    "beyond float32": ({"inputs": [{**DATA, "datatype": "FP64", "data": [1, 1e300]}]}, 422, "finite"),
    "another shape than the model's": (
        {"inputs": [{**DATA, "data": [1, 2]}]},
        422,
        "does not take images of this shape",
    ),
    "a number as id": ({"id": 3, "inputs": [{**DATA, "data": [1, 2]}]}, 400, "id must be a string"),
    "outputs that are none": ({"inputs": [{**DATA, "data": [1, 2]}], "outputs": [1]}, 400, "outputs must be a list"),
    "a gigabyte by shape": ({"inputs": [{**DATA, "shape": [1, 2**40], "data": [1]}]}, 400, "data must hold"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_malformed_requests_are_refused_in_one_line_and_others_are_served(running, case):
    body, code, reason = REFUSED[case]
    body = body if isinstance(body, bytes) else json.dumps(body).encode()
    status, _, told = running.ask("POST", "/v2/models/small/infer", body, {"Content-Type": "application/json"})
    assert (status, reason in json.loads(told)["error"]) == (code, True), told
    assert running.predict(pixels(2))["predictions"]


@pytest.mark.parametrize("length", ["x", "-1", "999999", "9" * 50, ""])
def test_a_wrong_length_of_the_header_is_refused(running, length):
    headers = {"Inference-Header-Content-Length": length}
    assert running.ask("POST", "/v2/models/small/infer", b"{}", headers)[0] == 400


def test_binary_data_must_have_the_announced_size(running):
    head = {"inputs": [{"name": "images", "shape": [1, 2], "datatype": "FP32", "parameters": {"binary_data_size": 8}}]}
    text = json.dumps(head).encode()
    headers = {"Inference-Header-Content-Length": str(len(text))}
    status, _, told = running.ask("POST", "/v2/models/small/infer", text + struct.pack("<f", 1.0), headers)
    assert status == 400
    assert "binary_data_size" in json.loads(told)["error"]


def test_images_that_no_member_survives_are_refused_and_the_stream_stays():
    """Finite floats whose logits overflow: neither the others of a batch nor what was adapted may suffer."""
    alone = bacs.stream(served_ensemble(), "bacs")
    poison = np.full((2, 3, 12, 12), 3e38, np.float32)
    batches = [np.random.default_rng(seed).normal(size=(8, 3, 12, 12)).astype(np.float32) for seed in range(2)]
    with Running(bacs.stream(served_ensemble(), "bacs")) as running:
        client = triton.InferenceServerClient(f"127.0.0.1:{running.port}")
        client.infer("small", [asked(batches[0], "FP32", True)])
        with pytest.raises(InferenceServerException, match="no finite prediction|does not take images"):
            client.infer("small", [asked(poison, "FP32", True)])
        told = client.infer("small", [asked(batches[1], "FP32", True)]).as_numpy("probabilities")
        client.close()
        assert running.service.worker.stream.history == []
    alone.step(batches[0])
    np.testing.assert_allclose(told, alone.step(batches[1]).numpy(), atol=1e-6, rtol=0)
