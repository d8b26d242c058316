"""`compile=True`: the same numbers, compiled once for all members, and a clear word where it cannot be done."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import bacs
from bacs.adaptation import forward
from small import small_member

IMAGES = torch.randn(40, 3, 16, 16, generator=torch.Generator().manual_seed(0))

pytestmark = pytest.mark.filterwarnings("ignore:.torch.jit.script_method:DeprecationWarning")  # torch's own
needs_compiler = pytest.mark.needs("g++")  # torch.compile calls it


@pytest.fixture(params=["aot_eager", pytest.param("inductor", marks=needs_compiler)])
def graphs(request, monkeypatch):
    """The graphs that were compiled so far, with each backend."""
    compiled = []

    def count(graph, inputs):
        compiled.append(graph)
        return torch._dynamo.lookup_backend(request.param)(graph, inputs)

    call = torch.compile(lambda model, inputs: model(inputs), backend=count)
    monkeypatch.setattr(forward, "_compiled_call", lambda: call)
    return compiled


@pytest.fixture
def ensemble():
    return bacs.Ensemble([small_member(seed) for seed in (0, 1, 2)])


def test_compiled_steps_lead_where_plain_ones_lead(ensemble, graphs):
    plain = bacs.adapt(ensemble, IMAGES, "bacs", batch_size=20).predict(IMAGES)
    compiled = bacs.adapt(ensemble, IMAGES, "bacs", batch_size=20, compile=True).predict(IMAGES)
    torch.testing.assert_close(compiled, plain, atol=1e-5, rtol=0)
    assert len(graphs) == 1  # three members, two batches


def test_mixed_statistics_compile_too():
    """In a process of its own: the checks of shapes, which only tests have, cannot be compiled."""
    code = (
        "import torch, bacs\n"
        "from bacs.adaptation import forward\n"
        "from small import small_member\n"
        "call = torch.compile(lambda model, inputs: model(inputs), backend='aot_eager', fullgraph=True)\n"
        "forward._compiled_call = lambda: call\n"
        "ensemble, images = bacs.Ensemble([small_member(seed) for seed in (0, 1)]), torch.randn(40, 3, 16, 16)\n"
        "for choice in ({'batch_weight': 0.5}, {'statistics': 'running'}):\n"
        "    plain, compiled = (bacs.stream(ensemble, 'bacs', compile=each, **choice) for each in (False, True))\n"
        "    for batch in images.split(20):\n"
        "        torch.testing.assert_close(compiled.step(batch), plain.step(batch), atol=1e-5, rtol=0)\n"
    )
    tests = str(Path(__file__).parents[1])
    subprocess.run([sys.executable, "-c", code], check=True, env=os.environ | {"PYTHONPATH": tests})


@pytest.mark.parametrize("graphs", ["aot_eager"], indirect=True)
def test_compiled_streams_predict_what_plain_ones_predict(ensemble, graphs):
    plain, compiled = bacs.stream(ensemble, "bacs"), bacs.stream(ensemble, "bacs", compile=True)
    for batch in IMAGES.split(20):
        torch.testing.assert_close(compiled.step(batch), plain.step(batch), atol=1e-5, rtol=0)
    assert len(graphs) == 1


def test_a_failure_to_compile_says_the_way_out(ensemble, monkeypatch):
    def broken(graph, inputs):
        raise RuntimeError("no compiler here")

    call = torch.compile(lambda model, inputs: model(inputs), backend=broken)
    monkeypatch.setattr(forward, "_compiled_call", lambda: call)
    with pytest.raises(RuntimeError, match=r"torch.compile failed on ResNet26.*no compiler here.*compile=False"):
        bacs.adapt(ensemble, IMAGES, "bacs", compile=True)
