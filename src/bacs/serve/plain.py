"""The plain protocol: pictures in, classes and how sure they are out."""

from functools import partial
from typing import Any

from fastapi import APIRouter, Request
from pydantic import BaseModel

from bacs.serve import answers
from bacs.serve.body import parts_of
from bacs.serve.pictures import decode_pictures, preprocessings_of
from bacs.serve.refusal import Refused
from bacs.serve.service import Service

PICTURES = {"image/jpeg", "image/png", "image/webp", "application/octet-stream"}
BINARY = {"schema": {"type": "string", "format": "binary"}}
FORM = {"type": "object", "properties": {"picture": {"type": "array", "items": BINARY["schema"]}}}
CONTENT: dict[str, Any] = {"multipart/form-data": {"schema": FORM}} | dict.fromkeys(sorted(PICTURES), BINARY)
BODY = {"required": True, "content": CONTENT}


class Prediction(BaseModel):
    """Of one picture; entropies in nats."""

    class_index: int
    class_name: str | None
    confidence: float
    predictive_entropy: float
    expected_entropy: float
    mutual_information: float
    agreement: float | None  # share of pairs of members with one label; none for a single network
    abstain: bool  # confidence < threshold
    threshold: float


class StreamState(BaseModel):
    """Which stream answered: steps are counted anew by every life, from where the last save left them."""

    life: str
    step: int
    frozen: bool


class Predictions(BaseModel):
    predictions: list[Prediction]
    state: StreamState


class ErrorText(BaseModel):
    error: str


ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"model": ErrorText, "description": text}
    for status, text in {
        400: "malformed",
        401: "without the token",
        403: "sent by another site",
        408: "sent too slowly",
        413: "too large",
        415: "of a kind that is not taken",
        421: "to a name that is not this machine's",
        422: "no pictures, or none that fit the model",
        429: "busy: see Retry-After",
        503: "no answer in time, or about to end",
    }.items()
}


def routes(service: Service) -> APIRouter:
    """POST /predict."""
    router = APIRouter(tags=["plain"])
    fits = preprocessings_of(service.ensemble)
    most = service.worker.batch_size

    @router.post("/predict", response_model=Predictions, responses=ERRORS, openapi_extra={"requestBody": BODY})
    async def predict(request: Request) -> dict[str, Any]:
        """Class, confidence, entropies, agreement and whether to abstain, for each picture in its order.

        The body is one JPEG, PNG or WebP, or multipart/form-data with several.
        """
        if not fits:
            raise Refused(422, f"this model takes no pictures but tensors: POST /v2/models/{service.name}/infer")
        kind = request.headers.get("content-type", "")
        name = kind.partition(";")[0].strip().lower()
        if name != "multipart/form-data" and name not in PICTURES:
            raise Refused(415, f"content-type must be multipart/form-data or one of {', '.join(sorted(PICTURES))}")
        async with service.intake.body(request) as body:
            if name == "multipart/form-data":
                encoded = await service.off_loop(partial(parts_of, body, kind, most=most))
            else:
                encoded = [body]
            if not encoded:
                raise Refused(422, "there is no picture in the request")
            make = partial(decode_pictures, encoded, fits, max_pixels=service.limits.max_pixels)
            answer = await service.predict(len(encoded), make)
        return {"predictions": answers.rows(answer, service.ensemble.class_names), "state": answer.state()}

    return router
