"""One model and one thread for all calls of this process."""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Protocol

import structlog
from structlog.typing import FilteringBoundLogger

from umg_grpc.errors import UmgError
from umg_grpc.v1 import pb

if TYPE_CHECKING:
    from umg_grpc.upstream.local.wordllama.model import WordLlamaModel

GO_COST = 64 * 2**10
"""Of the texts of one go: some 10 ms of Latin script, 100 of emoji. So long another call waits for its turn."""
TEXT_COST = 128
"""Of each text beside its characters: so no go has more than 512."""

logger: FilteringBoundLogger = structlog.get_logger(__name__)


class Work(Protocol):
    """What a call does with its texts, in the engine's thread."""

    def __call__(self, model: "WordLlamaModel", first: int, texts: Sequence[str]) -> None:
        """Does the texts from position `first` on; called for one portion after another. Raises UmgError."""
        ...


class WordLlamaEngine:
    """The model, loaded at the first call, and its thread. For one event loop.

    What waits while the thread works is taken together in its next go, each call with a portion of its texts: one that
    has many gives way to the others between its portions.
    """

    def __init__(self, load: "Callable[[], WordLlamaModel] | None" = None) -> None:
        """`load`: called in the thread, until it gives a model."""
        self.goes = 0
        """How often the thread was called."""
        self._load = load or _load
        self._model: WordLlamaModel | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="wordllama")
        self._waiting = deque[_Job]()
        self._going: asyncio.Future[None] | None = None
        self._closed = False

    async def run(self, texts: Sequence[str], work: Work, seconds: float) -> None:
        """Returns when all texts are done. When the caller leaves, what was not begun is not done.

        Raises what `work` raises, UmgError(UNAVAILABLE) where there is no model, UPSTREAM_TIMEOUT after `seconds`,
        UPSTREAM_FAILED for anything unexpected, which the log has.
        """
        if self._closed:
            raise _closing()
        job = _Job(texts, work, asyncio.get_running_loop().create_future())
        self._waiting.append(job)
        if self._going is None:
            self._begin()
        try:
            async with asyncio.timeout(seconds):
                await job.done
        except TimeoutError:
            message = "the local model had too much to do: the time for the answer is over; try again or send less"
            raise UmgError(pb.ERROR_REASON_UPSTREAM_TIMEOUT, message, deadline="total") from None

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
        """Gives the thread the next portions of those who wait, the first comers first."""
        jobs, left = list["_Job"](), GO_COST
        while self._waiting and left > 0:
            job = self._waiting.popleft()
            if not job.done.done():  # else its caller left
                left -= job.take(left)
                jobs.append(job)
        if not jobs:
            self._going = None
            return
        self.goes += 1
        self._going = asyncio.get_running_loop().run_in_executor(self._thread, self._go, jobs)
        self._going.add_done_callback(lambda _: self._settle(jobs))

    def _go(self, jobs: "Sequence[_Job]") -> None:
        """One go of the thread."""
        try:
            if self._model is None:
                self._model = self._load()
        except Exception as error:
            for job in jobs:
                job.error = error
            return
        for job in jobs:
            job.advance(self._model)

    def _settle(self, jobs: "Sequence[_Job]") -> None:
        """After a go: who is done is told so, the others wait again."""
        self._waiting += [job for job in jobs if not job.settle()]
        if self._closed:
            self._going = None
        else:
            self._begin()


class _Job:
    """A call, and how far it is."""

    def __init__(self, texts: Sequence[str], work: Work, done: asyncio.Future[None]) -> None:
        self.done = done
        self.error: Exception | None = None
        self._texts = texts
        self._work = work
        self._from = self._to = 0

    def take(self, cost: int) -> int:
        """Makes the next portion one of about that cost; gives what it costs."""
        self._from = self._to
        self._to, taken = portion(self._texts, self._from, cost)
        return taken

    def advance(self, model: "WordLlamaModel") -> None:
        """Does the portion. In the thread."""
        try:
            self._work(model, self._from, self._texts[self._from : self._to])
        except Exception as error:
            self.error = error

    def settle(self) -> bool:
        """Whether nothing is left to do, of which the caller is then told."""
        if self.error is not None:
            self.fail(self.error)
        elif self._to >= len(self._texts) and not self.done.done():
            self.done.set_result(None)
        return self.done.done()

    def fail(self, error: Exception) -> None:
        """Tells the caller, unless it left."""
        if not isinstance(error, UmgError):
            logger.error("the local embedding model failed", exc_info=error)
            error = UmgError(pb.ERROR_REASON_UPSTREAM_FAILED, "the local model failed; the gateway's log says why")
        if not self.done.done():  # an error of its own: others may be told the same, each by its own names of fields
            self.done.set_exception(UmgError(error.reason, error.message, **error.metadata))
            self.done.exception()  # seen: a caller that leaves at this moment does not look


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
    return UmgError(pb.ERROR_REASON_UNAVAILABLE, "the gateway is stopping; try again")
