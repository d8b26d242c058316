"""The one thread that owns the stream. Everything that touches it happens here, one thing after another."""

import logging
import secrets
import time
from collections.abc import Sequence
from threading import Thread
from typing import Any

from bacs.errors import CheckpointError, DivergenceError
from bacs.methods import METHODS, Stream
from bacs.methods.moved import posterior_deviations
from bacs.predictive import Predictive, select
from bacs.serve import answers, stepping
from bacs.serve.answers import Answer
from bacs.serve.display import Display
from bacs.serve.metrics import Metrics
from bacs.serve.queue import Action, Queue, QueuePlace
from bacs.serve.recent import RecentPredictions
from bacs.serve.refusal import Refused
from bacs.serve.state import State

LOG = logging.getLogger("bacs.serve")
PARTS = ("weights", "statistics", "optimizer")


class StreamWorker(Thread):
    """Takes batches from the queue until it is closed and empty; then saves for the last time."""

    def __init__(
        self,
        stream: Stream,
        queue: Queue,
        state: State,
        display: Display,
        metrics: Metrics,
        recent: RecentPredictions,
        *,
        batch_size: int,
        delay: float,
        frozen: bool,
    ) -> None:
        super().__init__(name="bacs-stream")
        self.stream, self.queue, self.state = stream, queue, state
        self.display, self.metrics, self.recent = display, metrics, recent
        self.batch_size, self.delay, self.frozen = batch_size, delay, frozen
        self.life = secrets.token_hex(4)
        self.images_per_second = 0.0
        self.saved = True  # whether the last attempt to save went well
        self._batches = 0
        self._images = 0
        self._unsaved = 0
        self._went_home_at = -1  # the step at which divergence last sent the stream home
        self._reported = 0  # of the stream's history
        self._report_decisions(now=False)
        self._report_state()

    def run(self) -> None:
        while (work := self.queue.take(self.batch_size, self.delay)) is not None:
            if isinstance(work, Action):
                self._act(work)
            else:
                self._serve(work)
        self.save()

    def _act(self, action: Action) -> None:
        if not action.answer.set_running_or_notify_cancel():
            return
        try:
            result = action.run()
        except Exception as error:  # whoever asked must hear of it, and the next batch must be served
            LOG.exception("action failed")
            action.answer.set_exception(error)
            return
        self._report_decisions()
        self._report_state()
        action.answer.set_result(result)

    def _serve(self, batch: list[QueuePlace]) -> None:
        batch = [place for place in batch if place.answer.set_running_or_notify_cancel()]
        began = time.monotonic()
        if self.stream.steps == 0:
            batch = self._refuse_unfit(batch)
        try:
            while batch:
                try:
                    predictive = self._predict(batch)
                except (DivergenceError, ValueError, TypeError) as error:
                    batch = self._after_failure(batch, error)
                else:
                    self._answer(batch, predictive, time.monotonic() - began)
                    return
        except Exception:  # those who wait must hear of it, and the next batch must be served
            LOG.exception("batch failed")
            for place in batch:
                if not place.answer.done():
                    place.answer.set_exception(Refused(500, "the service could not answer"))

    def _after_failure(self, batch: list[QueuePlace], error: Exception) -> list[QueuePlace]:
        """What is left of a batch that failed. If it was not for its images, a stream that diverged goes home."""
        LOG.warning("batch failed", extra={"facts": {"error": type(error).__name__, "reason": str(error)}})
        kept = self._refuse_unfit(batch)
        if len(kept) < len(batch):
            return kept
        if not isinstance(error, DivergenceError) or self._went_home_at == self.stream.steps:
            raise error
        self._went_home_at = self.stream.steps
        self.stream.reset(*PARTS, reason="a member's outputs stopped being finite")
        return kept

    def _refuse_unfit(self, batch: Sequence[QueuePlace]) -> list[QueuePlace]:
        """Those of the requests that the ensemble can answer; the others are told why not."""
        kept = []
        for place in batch:
            assert place.views is not None
            why = stepping.why_unfit(self.stream, stepping.for_members(self.stream.source, place.views))
            if why is None:
                kept.append(place)
            else:
                place.answer.set_exception(Refused(422, why))
        return kept

    def _predict(self, batch: Sequence[QueuePlace]) -> Predictive:
        views = stepping.join_views([place.views for place in batch if place.views is not None])
        images = stepping.for_members(self.stream.source, views)
        if self.frozen:
            return stepping.predict_frozen(self.stream, images)
        return self.stream.step_predictive(images)

    def _answer(self, batch: Sequence[QueuePlace], predictive: Predictive, seconds: float) -> None:
        self.recent.add(predictive)
        threshold, start = self.recent.threshold(), 0
        answer = Answer(predictive, threshold, self.life, self.stream.steps, self.frozen)
        for place in batch:
            own = select(predictive, slice(start, start + place.images))
            place.answer.set_result(answer._replace(predictive=own))
            start += place.images
        self._batches += 1
        self._images += start
        speed = start / max(seconds, 1e-9)
        self.images_per_second = speed if self._batches == 1 else 0.8 * self.images_per_second + 0.2 * speed
        self.metrics.batch(start, seconds)
        self._show(batch[-1], answer)
        if not self.frozen:
            self._unsaved += 1
            if self._unsaved >= self.state.save_every:
                self.save()

    def _show(self, last: QueuePlace, answer: Answer) -> None:
        """Writes down what the page shows; curves no more often than they have points."""
        pixels = None if last.views is None else last.views[0]
        if pixels is not None and pixels.dtype == "uint8" and pixels.ndim == 4 and self.display.shows_pictures:
            own = select(answer.predictive, slice(-last.images, None))
            self.display.add_pictures(pixels, answers.rows(answer._replace(predictive=own), self.class_names))
        self._report_decisions()
        if self.display.is_due():
            row = self._row()
            self.display.add_row(row)
            self.metrics.row(row)
        self._report_state()

    def _row(self) -> dict[str, Any]:
        figures, stream = self.recent.figures(), self.stream
        estimate = self.recent.estimate(figures, stream.source.reference)
        adapts = METHODS[stream.method_name].adapts
        moved = [posterior_deviations(member, adapts) for member in stream.members]
        known = [value for value in moved if value is not None]
        return {
            "step": stream.steps,
            "estimate": None if estimate is None else estimate.ensemble,
            "low": None if estimate is None else estimate.low,
            "high": None if estimate is None else estimate.high,
            "agreement": figures.agreement,
            "confidence": figures.confidence,
            "effective_classes": figures.effective_classes,
            "moved": sum(known) / len(known) if known else (0.0 if adapts is None else None),
            "batch_weight": stream.settings.batch_weight,
            "learning_rate": 0.0 if self.frozen or adapts is None else stream.settings.learning_rate,
            "queue": self.queue.images,
            "images_per_second": self.images_per_second,
            "classes": self.recent.class_counts(),
            **self.display.latencies(),
        }

    @property
    def class_names(self) -> Sequence[str] | None:
        return self.stream.source.class_names

    def _report_decisions(self, *, now: bool = True) -> None:
        """Takes over what was decided since the last time; a reset begins the history anew."""
        history = self.stream.history
        if len(history) < self._reported:
            self._reported = 0
        for event in history[self._reported :]:
            self.display.add_decision(*event, now=now)
            if now:
                LOG.info("decision", extra={"facts": event._asdict()})
        self._reported = len(history)

    def _report_state(self) -> None:
        stream = self.stream
        self.display.set_now(
            life=self.life,
            step=stream.steps,
            frozen=self.frozen,
            method=stream.begun_with,
            by=stream.method_name,
            batches=self._batches,
            images=self._images,
            queue=self.queue.images,
            saved=self.saved,
            keeps=self.state.folder is not None,
            temperature=stream.temperature,
        )

    # Actions: called by the worker itself, by way of the queue.

    def freeze(self, frozen: bool) -> None:
        """Stops adapting, or goes on with it."""
        if frozen != self.frozen:
            self.frozen = frozen
            self.stream.note({"frozen": [not frozen, frozen]}, "asked for")
            self.save()

    def reset(self) -> None:
        """Back to the ensemble as it came."""
        self.stream.reset()
        self.recent.clear()
        self.stream.note({"reset": "everything"}, "asked for")
        self._reported = 0
        self.save()

    def save(self) -> bool:
        """Keeps the stream; a disk that is full is said and tried again later, and the service goes on."""
        self._unsaved = 0
        try:
            self.state.write(self.stream, frozen=self.frozen)
            self.saved = True
        except CheckpointError as error:
            self.saved = False
            LOG.error("not saved", extra={"facts": {"reason": str(error)}})
        self.metrics.save(self.saved, self.stream.steps)
        return self.saved
