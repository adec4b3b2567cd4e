"""One model and one thread for all calls of this process."""

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

from umg_grpc.errors import Failure, UmgError
from umg_grpc.v1 import pb

if TYPE_CHECKING:
    from umg_grpc.upstream.local.wordllama.model import WordLlamaModel

GO_COST = 64 * 2**10
"""Of the texts of one go: some 10 ms of Latin script, 100 of emoji. So long another call waits for its turn."""
TEXT_COST = 128
"""Of each text beside its characters: so no go has more than 512."""
AT_ONCE_COST = 1536
"""Of a go that needs no thread: 0.3 ms of Latin script, 1 of emoji, and to wake the thread takes 0.1."""

Made = TypeVar("Made")
Made_co = TypeVar("Made_co", covariant=True)

logger: FilteringBoundLogger = structlog.get_logger(__name__)


class Work(Protocol[Made_co]):
    """What is done with texts. Calls may share it: in one go it is then done once for all of them, at half the cost of
    one after the other; only if that fails, for each of them.
    """

    def __call__(self, model: "WordLlamaModel", first: int, texts: Sequence[str]) -> Sequence[Made_co]:
        """What becomes of each text. They stand from position `first` on in their call, of which one portion comes
        after another. Raises UmgError.
        """
        ...


class WordLlamaEngine:
    """The model, loaded at the first call, and its thread. For one event loop.

    What waits while the thread works is taken together in its next go, each call with a portion of its texts: one that
    has many gives way to the others between its portions. While the thread rests, little work is done on the event
    loop, all together that comes in one of its rounds; but not what is done for the first time, which may load more.
    """

    def __init__(self, load: "Callable[[], WordLlamaModel] | None" = None, *, retry_seconds: float = 30) -> None:
        """`load`: called in the thread, until it gives a model; not for `retry_seconds` after it failed."""
        self.goes = 0
        """How often some calls were advanced."""
        self._load = load or _load
        self._model: WordLlamaModel | None = None
        self._failure: UmgError | None = None  # why there is none
        self._retry_at = 0.0
        self._retry_seconds = retry_seconds
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="wordllama")
        self._waiting = deque[_Job[Any]]()
        self._going: asyncio.Future[None] | None = None  # in the thread
        self._resting = True  # with nothing begun, nor about to be
        self._known = WeakSet[Work[Any]]()  # what was done before
        self._closed = False

    async def run(
        self,
        texts: Sequence[str],
        work: Work[Made],
        take: Callable[[Sequence[Made]], None],
        seconds: float,
        total_seconds: float = math.inf,
    ) -> None:
        """Returns when all texts are done. When the caller leaves, what was not begun is not done.

        `take` gets what became of them, portion by portion, where they are done. The caller waits for `seconds`, the
        channel allows `total_seconds`.

        Raises what `work` raises, UmgError(UNAVAILABLE) where there is no model, UPSTREAM_TIMEOUT when the time is
        over, UPSTREAM_FAILED for anything unexpected, which the log has.
        """
        if self._closed:
            raise _closing()
        loop = asyncio.get_running_loop()
        job = _Job(texts, work, take, loop.create_future())
        self._waiting.append(job)
        if self._resting:
            self._resting = False
            if self._model is None:
                self._begin()
            else:
                loop.call_soon(self._begin)
        # `asyncio.timeout` takes 5 us more
        timer = loop.call_later(min(seconds, total_seconds), job.expire, seconds <= total_seconds)
        try:
            await job.done
        finally:
            timer.cancel()

    async def aclose(self) -> None:
        """Returns when the thread is at rest; calls that are not done fail."""
        self._closed = True
        if self._going is not None:
            await asyncio.wait([self._going])
        for job in self._waiting:
            job.fail(_closing())
        self._waiting.clear()
        self._thread.shutdown()
        self._model = None

    def _begin(self) -> None:
        """Does the next portions of those who wait, the first comers first, or gives them to the thread."""
        jobs, left = list["_Job[Any]"](), GO_COST
        while self._waiting and left > 0:
            job = self._waiting.popleft()
            if not job.done.done():  # else its caller left
                left -= job.begin(left)
                jobs.append(job)
        if not jobs:
            self._resting = True
            return
        self.goes += 1
        if GO_COST - left <= AT_ONCE_COST and all(job.work in self._known for job in jobs):
            self._go(jobs)
            self._settle(jobs)
            return
        self._going = asyncio.get_running_loop().run_in_executor(self._thread, self._go, jobs)
        self._going.add_done_callback(lambda _: self._settle(jobs))

    def _go(self, jobs: "Sequence[_Job[Any]]") -> None:
        """One go: in the thread, or while that rests. Raises nothing: a panic of the tokenizer's is no `Exception`."""
        try:
            self._advance(jobs, self._loaded())
        except BaseException as error:
            for job in jobs:
                job.error = job.error or error

    def _loaded(self) -> "WordLlamaModel":
        """The model, which is loaded once; a failure stands for a while before it is tried again."""
        if self._failure is not None and time.monotonic() < self._retry_at:
            raise self._failure
        try:
            self._model = self._model or self._load()
        except UmgError:
            raise
        except Exception as error:
            logger.error("the local embedding model cannot be loaded", exc_info=error)
            message = "the local model cannot be loaded; the gateway's log says why"
            self._failure = UmgError(pb.ERROR_REASON_UNAVAILABLE, message).of(Failure.DOWN)
            self._retry_at = time.monotonic() + self._retry_seconds
            raise self._failure from None
        return self._model

    def _advance(self, jobs: "Sequence[_Job[Any]]", model: "WordLlamaModel") -> None:
        sharing = dict[int, list[_Job[Any]]]()
        for job in jobs:
            sharing.setdefault(id(job.work), []).append(job)
        for alike in sharing.values():
            _advance(alike, model)
            if alike[0].error is None:
                self._known.add(alike[0].work)

    def _settle(self, jobs: "Sequence[_Job[Any]]") -> None:
        """After a go: who is done is told so, the others wait again."""
        self._going = None
        self._waiting += [job for job in jobs if not job.settle()]
        if not self._closed:
            self._begin()


class _Job(Generic[Made]):
    """A call, and how far it is."""

    def __init__(
        self,
        texts: Sequence[str],
        work: Work[Made],
        take: Callable[[Sequence[Made]], None],
        done: asyncio.Future[None],
    ) -> None:
        self.work: Work[Made] = work
        self.done = done
        self.error: BaseException | None = None
        self._texts = texts
        self._take: Callable[[Sequence[Made]], None] = take
        self._from = self._to = 0

    @property
    def portion(self) -> Sequence[str]:
        """The texts whose turn it is."""
        return self._texts[self._from : self._to]

    def begin(self, cost: int) -> int:
        """Makes the next portion one of about that cost; gives what it costs."""
        self._from = self._to
        self._to, taken = portion(self._texts, self._from, cost)
        return taken

    def advance(self, model: "WordLlamaModel") -> None:
        """Does the portion."""
        try:
            made = self.work(model, self._from, self.portion)
        except Exception as error:
            self.error = error
        else:
            self.receive(made)

    def receive(self, made: Sequence[Made]) -> None:
        """Hands on what became of the portion."""
        try:
            self._take(made)
        except Exception as error:
            self.error = error

    def settle(self) -> bool:
        """Whether nothing is left to do, of which the caller is then told."""
        if self.error is not None:
            self.fail(self.error)
        elif self._to >= len(self._texts) and not self.done.done():
            self.done.set_result(None)
        return self.done.done()

    def expire(self, callers: bool) -> None:
        """Tells the caller that the time is over, its own or the channel's."""
        message = "the local model had too much to do: the time for the answer is over; try again or send less"
        error = UmgError(pb.ERROR_REASON_UPSTREAM_TIMEOUT, message, deadline="total")
        self.fail(error if callers else error.of(Failure.AMBIGUOUS))

    def fail(self, error: BaseException) -> None:
        """Tells the caller, unless it left."""
        if not isinstance(error, UmgError):
            logger.error("the local embedding model failed", exc_info=error)
            message = "the local model failed; the gateway's log says why"
            error = UmgError(pb.ERROR_REASON_UPSTREAM_FAILED, message).of(Failure.TRANSIENT)
        if not self.done.done():  # an error of its own: others may be told the same, each by its own names of fields
            self.done.set_exception(error.saying(error.message))
            self.done.exception()  # seen: a caller that leaves at this moment does not look


def _advance(jobs: Sequence[_Job[Made]], model: "WordLlamaModel") -> None:
    """Does the portions of calls that share their work."""
    if len(jobs) > 1:
        portions = [job.portion for job in jobs]
        with suppress(Exception):  # of one of them, whom it is told by its own positions; the others go on
            made, end = jobs[0].work(model, 0, [text for portion in portions for text in portion]), 0
            for job, texts in zip(jobs, portions, strict=True):
                first, end = end, end + len(texts)
                job.receive(made[first:end])
            return
    for job in jobs:
        job.advance(model)


def portion(texts: Sequence[str], first: int, cost: int) -> tuple[int, int]:
    """(end, cost) of the texts from `first` on that cost no more than `cost` together; at least one, if there is."""
    end, taken = first, 0
    while end < len(texts):
        taken += TEXT_COST + len(texts[end])
        if taken > cost and end > first:
            return end, taken - TEXT_COST - len(texts[end])
        end += 1
    return end, taken


def _load() -> "WordLlamaModel":
    from umg_grpc.upstream.local.wordllama.model import load  # here: see there

    return load()


def _closing() -> UmgError:
    return UmgError(pb.ERROR_REASON_UNAVAILABLE, "the gateway is stopping; try again").of(Failure.NOT_SENT)
