"""Engine that runs the wordllama model in one thread, for all calls of this process, in batches."""

import asyncio
import math
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar
from weakref import WeakSet

import structlog
from structlog.typing import FilteringBoundLogger

from umg_grpc.base.errors import Failure, UmgError
from umg_grpc.v1 import pb

if TYPE_CHECKING:
    from umg_grpc.upstream.local.wordllama.model import WordLlamaModel

BATCH_COST = 64 * 2**10
"""Maximum cost (characters and TEXT_COST) of the texts of one batch: about 10 ms for Latin script, 100 ms for emoji.
Other calls wait at most so long for the next batch.
"""
TEXT_COST = 128
"""Cost of each text in addition to its characters, so that a batch has at most 512 texts."""
INLINE_COST = 1536
"""Maximum cost of a batch on the event loop: 0.3 ms for Latin script, 1 ms for emoji. A thread takes 0.1 ms more."""

Made = TypeVar("Made")
Made_co = TypeVar("Made_co", covariant=True)

logger: FilteringBoundLogger = structlog.get_logger(__name__)


class Work(Protocol[Made_co]):
    """Function that the engine applies to a call's texts, for example embedding. Calls that share an instance are
    computed in one run for a batch, at half the cost, and separately only if this run fails.
    """

    def __call__(self, model: "WordLlamaModel", first: int, texts: Sequence[str]) -> Sequence[Made_co]:
        """Return one result for each text. `first`: position of the first text in its call, which may be processed in
        several parts. Raise UmgError for a text that cannot be processed.
        """
        ...


class WordLlamaEngine:
    """Owner of the wordllama model and of the thread in which it runs, for all calls of one event loop.

    Calls that arrive while the thread works form its next batch, each with a part of its texts, so that a call with
    many texts does not delay the others. While the thread is idle, small batches are computed on the event loop,
    except work that runs for the first time and may load code.
    """

    def __init__(self, load: "Callable[[], WordLlamaModel] | None" = None, *, retry_seconds: float = 30) -> None:
        """Create an engine, which loads its model at the first call. `load`: returns the model, called in the thread;
        `retry_seconds`: time after a failed load in which calls fail without another attempt.
        """
        self.batches = 0
        """Number of batches that ran."""
        self._load = load or _load
        self._model: WordLlamaModel | None = None
        self._failure: UmgError | None = None  # why the model could not be loaded
        self._retry_at = 0.0
        self._retry_seconds = retry_seconds
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="wordllama")
        self._waiting = deque[_Job[Any]]()
        self._running: asyncio.Future[None] | None = None  # the batch in the thread
        self._is_idle = True  # no batch is running or scheduled
        self._has_run = WeakSet[Work[Any]]()  # work that has run before
        self._closed = False

    async def run(
        self,
        texts: Sequence[str],
        work: Work[Made],
        take: Callable[[Sequence[Made]], None],
        seconds: float,
        total_seconds: float = math.inf,
    ) -> None:
        """Apply `work` to all texts. `take` is called with the results of one part of the texts after the other, in the
        thread that computed them. After a cancellation the remaining texts are not processed. Raise the errors of
        `work`, or UmgError: UNAVAILABLE if the model cannot be loaded, DEADLINE_EXCEEDED or UPSTREAM_TIMEOUT at the
        caller's or the channel's limit, UPSTREAM_FAILED for any other exception, which is logged.
        """
        if self._closed:
            raise _closing()
        loop = asyncio.get_running_loop()
        job = _Job(texts, work, take, loop.create_future())
        self._waiting.append(job)
        if self._is_idle:
            self._is_idle = False
            if self._model is None:
                self._start_batch()
            else:
                loop.call_soon(self._start_batch)
        # `asyncio.timeout` takes 5 us longer
        timer = loop.call_later(min(seconds, total_seconds), job.expire, seconds <= total_seconds)
        try:
            await job.done
        finally:
            timer.cancel()

    async def aclose(self) -> None:
        """Stop the engine after the current batch; waiting calls fail."""
        self._closed = True
        if self._running is not None:
            await asyncio.wait([self._running])
        for job in self._waiting:
            job.fail(_closing())
        self._waiting.clear()
        self._thread.shutdown()
        self._model = None

    def _start_batch(self) -> None:
        """Process the next batch of the waiting calls, the oldest first, on the event loop or in the thread."""
        jobs, left = list["_Job[Any]"](), BATCH_COST
        while self._waiting and left > 0:
            job = self._waiting.popleft()
            if not job.done.done():  # otherwise its caller was cancelled
                left -= job.begin(left)
                jobs.append(job)
        if not jobs:
            self._is_idle = True
            return
        self.batches += 1
        if BATCH_COST - left <= INLINE_COST and all(job.work in self._has_run for job in jobs):
            self._run_batch(jobs)
            self._finish_batch(jobs)
            return
        self._running = asyncio.get_running_loop().run_in_executor(self._thread, self._run_batch, jobs)
        self._running.add_done_callback(lambda _: self._finish_batch(jobs))

    def _run_batch(self, jobs: "Sequence[_Job[Any]]") -> None:
        try:
            self._process(jobs, self._loaded())
        except BaseException as error:
            for job in jobs:
                job.error = job.error or error

    def _loaded(self) -> "WordLlamaModel":
        """Return the model, which the first call loads."""
        if self._failure is not None and time.monotonic() < self._retry_at:
            raise self._failure
        try:
            self._model = self._model or self._load()
        except UmgError:
            raise
        except Exception as error:
            logger.error("the local embedding model cannot be loaded", exc_info=error)
            message = "the local model cannot be loaded; the gateway's log says why"
            self._failure = UmgError(pb.ERROR_REASON_UNAVAILABLE, message).with_failure(Failure.DOWN)
            self._retry_at = time.monotonic() + self._retry_seconds
            raise self._failure from None
        return self._model

    def _process(self, jobs: "Sequence[_Job[Any]]", model: "WordLlamaModel") -> None:
        sharing = dict[int, list[_Job[Any]]]()
        for job in jobs:
            sharing.setdefault(id(job.work), []).append(job)
        for group in sharing.values():
            _process(group, model)
            if group[0].error is None:
                self._has_run.add(group[0].work)

    def _finish_batch(self, jobs: "Sequence[_Job[Any]]") -> None:
        self._running = None
        self._waiting += [job for job in jobs if not job.finish()]
        if not self._closed:
            self._start_batch()


class _Job(Generic[Made]):
    """Call of the engine: its texts, and the number of texts that were processed so far."""

    def __init__(
        self, texts: Sequence[str], work: Work[Made], take: Callable[[Sequence[Made]], None], done: asyncio.Future[None]
    ) -> None:
        self.work: Work[Made] = work
        self.done = done
        self.error: BaseException | None = None
        self._texts = texts
        self._take: Callable[[Sequence[Made]], None] = take
        self._from = self._to = 0

    @property
    def portion(self) -> Sequence[str]:
        return self._texts[self._from : self._to]

    def begin(self, cost: int) -> int:
        """Select the next texts for a batch: as many as fit into the cost, but at least one. Return their cost."""
        self._from = self._to
        self._to, taken = portion(self._texts, self._from, cost)
        return taken

    def process(self, model: "WordLlamaModel") -> None:
        try:
            made = self.work(model, self._from, self.portion)
        except Exception as error:
            self.error = error
        else:
            self.receive(made)

    def receive(self, made: Sequence[Made]) -> None:
        """Pass the results of the selected texts to the function `take` of the call."""
        try:
            self._take(made)
        except Exception as error:
            self.error = error

    def finish(self) -> bool:
        """Complete the call if it failed or all its texts are processed. Return whether it is complete."""
        if self.error is not None:
            self.fail(self.error)
        elif self._to >= len(self._texts) and not self.done.done():
            self.done.set_result(None)
        return self.done.done()

    def expire(self, callers: bool) -> None:
        """End the call at its time limit, with DEADLINE_EXCEEDED if it is the caller's, else UPSTREAM_TIMEOUT."""
        message = "the local model had too much to do: the time for the response is over; try again or send less"
        if callers:
            self.fail(UmgError(pb.ERROR_REASON_DEADLINE_EXCEEDED, message, deadline="total"))
        else:
            error = UmgError(pb.ERROR_REASON_UPSTREAM_TIMEOUT, message, deadline="total")
            self.fail(error.with_failure(Failure.AMBIGUOUS))

    def fail(self, error: BaseException) -> None:
        """End the call with an error; do nothing if its caller was cancelled."""
        if not isinstance(error, UmgError):
            logger.error("the local embedding model failed", exc_info=error)
            message = "the local model failed; the gateway's log says why"
            error = UmgError(pb.ERROR_REASON_UPSTREAM_FAILED, message).with_failure(Failure.TRANSIENT)
        if not self.done.done():  # a copy: other calls may fail with the same error, each with its own field paths
            self.done.set_exception(error.with_message(error.message))
            self.done.exception()  # marks it as retrieved: a caller that is cancelled at this moment does not read it


def _process(jobs: Sequence[_Job[Made]], model: "WordLlamaModel") -> None:
    """Process the selected texts of calls that share one `Work` together, in one run of it."""
    if len(jobs) > 1:
        portions = [job.portion for job in jobs]
        with suppress(Exception):  # an error of one call: it is raised again below, with the call's own positions
            made, end = jobs[0].work(model, 0, [text for portion in portions for text in portion]), 0
            for job, texts in zip(jobs, portions, strict=True):
                first, end = end, end + len(texts)
                job.receive(made[first:end])
            return
    for job in jobs:
        job.process(model)


def portion(texts: Sequence[str], first: int, cost: int) -> tuple[int, int]:
    """Select texts from `first` on up to the cost, at least one. Return (position after the last, their cost)."""
    end, taken = first, 0
    while end < len(texts):
        taken += TEXT_COST + len(texts[end])
        if taken > cost and end > first:
            return end, taken - TEXT_COST - len(texts[end])
        end += 1
    return end, taken


def _load() -> "WordLlamaModel":
    from umg_grpc.upstream.local.wordllama.model import load  # imported here: it imports numpy

    return load()


def _closing() -> UmgError:
    return UmgError(pb.ERROR_REASON_UNAVAILABLE, "the gateway is stopping; try again").with_failure(Failure.NOT_SENT)
