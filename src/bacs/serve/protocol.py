"""The Open Inference Protocol, version 2, over REST: health, metadata and infer, with binary tensors."""

from functools import partial
from importlib.metadata import version
from typing import Any

import numpy as np
from fastapi import APIRouter, Request
from starlette.responses import JSONResponse, Response

from bacs.serve import answers, tensors
from bacs.serve.answers import Answer
from bacs.serve.plain import BINARY, ERRORS
from bacs.serve.queue import Views
from bacs.serve.refusal import Refused
from bacs.serve.service import Service
from bacs.serve.stepping import geometries

VERSION = "1"
HEADER = "Inference-Header-Content-Length"
OUTPUTS = {
    "probabilities": "FP32",
    "class_index": "INT64",
    "confidence": "FP32",
    "predictive_entropy": "FP32",
    "expected_entropy": "FP32",
    "mutual_information": "FP32",
    "agreement": "FP32",
    "abstain": "BOOL",
}
TENSOR = {
    "type": "object",
    "required": ["name", "shape", "datatype"],
    "properties": {
        "name": {"const": tensors.INPUT},
        "shape": {"type": "array", "items": {"type": "integer", "minimum": 1}},
        "datatype": {"enum": list(tensors.DATATYPES)},
        "data": {"type": "array"},
    },
}
FIELDS = {
    "id": {"type": "string"},
    "inputs": {"type": "array", "minItems": 1, "maxItems": 1, "items": TENSOR},
    "outputs": {"type": "array", "items": {"type": "object"}},
}
JSON = {"schema": {"type": "object", "required": ["inputs"], "properties": FIELDS}}
REQUEST = {"required": True, "content": {"application/json": JSON, "application/octet-stream": BINARY}}


def routes(service: Service) -> APIRouter:
    """Everything below /v2."""
    router = APIRouter(prefix="/v2", tags=["Open Inference Protocol v2"], responses=ERRORS)
    known = [name for name in OUTPUTS if name != "agreement" or len(service.ensemble) > 1]

    def check(model: str, number: str = VERSION) -> None:
        if model != service.name or number != VERSION:
            raise Refused(404, "there is no such model")

    @router.get("/health/live")
    async def live() -> dict[str, bool]:
        """Whether the process answers."""
        return {"live": True}

    @router.get("/health/ready", responses={503: {"description": "not ready"}})
    async def ready() -> JSONResponse:
        """Whether it can take requests: the stream's thread lives, and nobody asked it to end."""
        return JSONResponse({"ready": service.ready}, 200 if service.ready else 503)

    @router.get("")
    async def server() -> dict[str, Any]:
        return {"name": "bacs", "version": version("bacs"), "extensions": ["binary_tensor_data"]}

    @router.get("/models/{model}")
    @router.get("/models/{model}/versions/{number}")
    async def metadata(model: str, number: str = VERSION) -> dict[str, Any]:
        check(model, number)
        classes = -1 if service.ensemble.class_names is None else len(service.ensemble.class_names)
        found = [(name, OUTPUTS[name], [-1, classes] if name == "probabilities" else [-1]) for name in known]
        return {
            "name": service.name,
            "versions": [VERSION],
            "platform": "bacs",
            "inputs": tensors.describe_tensors([(tensors.INPUT, *_input(service))]),
            "outputs": tensors.describe_tensors(found),
        }

    @router.get("/models/{model}/ready")
    @router.get("/models/{model}/versions/{number}/ready")
    async def model_ready(model: str, number: str = VERSION) -> JSONResponse:
        check(model, number)
        return JSONResponse({"name": service.name, "ready": service.ready}, 200 if service.ready else 503)

    @router.post("/models/{model}/infer", openapi_extra={"requestBody": REQUEST})
    @router.post("/models/{model}/versions/{number}/infer", openapi_extra={"requestBody": REQUEST})
    async def infer(request: Request, model: str, number: str = VERSION) -> Response:
        """Predictions for a tensor of images: uint8 pixels NHWC, or floats as the model takes them."""
        check(model, number)
        async with service.intake.body(request) as body:
            asked = await service.off_loop(partial(tensors.parse, body, _header_bytes(request)))
            for name in asked.outputs or ():
                if name not in known:
                    raise Refused(400, f"outputs must be among {', '.join(known)}")
            count = len(asked.images)
            if count > service.worker.batch_size:
                raise Refused(413, f"a request may have at most {service.worker.batch_size} images, got {count}")
            answer = await service.predict(count, partial(_views, service, asked.images))
        head = {"model_name": service.name, "model_version": VERSION, "parameters": answer.state()}
        if asked.id is not None:
            head["id"] = asked.id
        made = partial(tensors.response, head, outputs_of(answer), asked)
        told, header_bytes = await service.off_loop(made)
        if header_bytes is None:
            return Response(told, media_type="application/json")
        return Response(told, media_type="application/octet-stream", headers={HEADER: str(header_bytes)})

    return router


def outputs_of(answer: Answer) -> dict[str, np.ndarray]:
    """Every output by name, in its datatype."""
    found = {"probabilities": answer.predictive.probabilities.numpy(), **answers.columns(answer)}
    kinds = tensors.DATATYPES | {"BOOL": np.bool_}
    return {name: found[name].astype(kinds[kind]) for name, kind in OUTPUTS.items() if name in found}


def _views(service: Service, images: np.ndarray) -> Views:
    """The same tensor for every geometry: members bring pixels to their own size."""
    return (images,) * len(geometries(service.ensemble))


def _input(service: Service) -> tuple[str, list[int]]:
    """Datatype and shape of what is best sent, as far as the checkpoint says."""
    fit = service.ensemble.members[0].preprocessing
    if fit is None:
        return "FP32", [-1, -1]
    return "UINT8", [-1, *(fit.size or (-1, -1)), len(fit.mean)]


def _header_bytes(request: Request) -> int | None:
    given = request.headers.get(HEADER)
    if given is None:
        return None
    if not (given.isascii() and given.isdigit()) or len(given) > 12:
        raise Refused(400, f"{HEADER} must be a whole number")
    return int(given)
