"""Text generation by a simulated provider: the whole of it behind the interface of a channel."""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass

from umg_grpc.errors import Failure, UmgError
from umg_grpc.quirks import NO_CHANNEL_QUIRKS, ChannelQuirks
from umg_grpc.upstream.sandbox import cache, drawing, faults
from umg_grpc.upstream.sandbox.answer import Made, make
from umg_grpc.upstream.sandbox.cache import PromptCache
from umg_grpc.upstream.sandbox.models import context_tokens
from umg_grpc.upstream.sandbox.prompt import Count, Prompt, read_prompt
from umg_grpc.upstream.sandbox.telling import Step, tell
from umg_grpc.upstream.sandbox.thoughts import check_states
from umg_grpc.v1 import pb
from umg_grpc.wire.report import Report

COUNTED_BYTES = 16 * 2**10
"""Of a request whose tokens are counted in a millisecond or so."""
MOST_EVENTS = 16
"""Of one message of a stream that is told at once."""


class SandboxText:
    """A channel of simulated models. Not shown: what they cost in time; whole answers come at once."""

    def __init__(
        self,
        count: Count,
        owner: Callable[[], str],
        *,
        tokens_per_second: float = 50,
        first_byte_seconds: float = 60,
        total_seconds: float = 600,
        clock: Callable[[], float] = time.monotonic,
        cached_prompts: int = 10_000,
    ) -> None:
        """`count`: tokens of a text; called from several threads. `owner`: whose call this is, for the prompt cache.
        `tokens_per_second`: of streams; 0 is at once. `first_byte_seconds`, `total_seconds`: the channel's deadlines,
        the first of which `[[slow]]` runs into. `clock`: for the prompt cache, in seconds. `cached_prompts`: prefixes
        that it keeps.
        """
        self.slow_bytes = 0  # the first count reads a vocabulary
        self.count = count
        self.owner = owner
        self.tokens_per_second = tokens_per_second
        self.first_byte_seconds = first_byte_seconds
        self.total_seconds = total_seconds
        self.cache = PromptCache(clock, cached_prompts)

    def prepare(
        self, request: pb.GenerateRequest, model: str, *, stream: bool, quirks: ChannelQuirks = NO_CHANNEL_QUIRKS
    ) -> "SandboxCall":
        """The answer is made here, since all that can be wrong with the request shows then; it is told later.

        Raises UmgError: UNSUPPORTED_FIELD, UNTRANSLATABLE, INVALID_FIELD, MISSING_FIELD, CONTEXT_TOO_LONG.
        """
        report = Report()
        if "audio" in request.output_modalities:
            _refuse_sound(request, report)
        prompt = read_prompt(request, self.count, report)
        check_states(request, report)
        _check_length(request, model, prompt)
        made = make(request, model, prompt, self.count)
        self.slow_bytes = COUNTED_BYTES
        return SandboxCall(self, request, model, prompt, made, report)


@dataclass(frozen=True)
class SandboxCall:
    """A request whose answer is ready."""

    upstream: SandboxText
    request: pb.GenerateRequest
    model: str
    prompt: Prompt
    made: Made
    report: Report

    async def generate(self, seconds: float) -> pb.GenerateResponse:
        """See `TextCall`."""
        mark = await self._begin(seconds)
        if mark == faults.CUT:
            raise faults.failed()
        return await self._finished()

    async def stream(self, seconds: float) -> AsyncGenerator[pb.StreamGenerateResponse, None]:
        """See `TextCall`. One message for each piece, or, told at once, for some of them."""
        pace, loop = self.upstream.tokens_per_second, asyncio.get_running_loop()
        total = self.upstream.total_seconds
        deadline, callers = loop.time() + min(seconds, total), seconds <= total
        mark = await self._begin(seconds)
        steps = list(tell(await self._finished(), self.upstream.count))
        if mark == faults.CUT:
            steps = _first_half(steps)
        begun, tokens, events = loop.time(), 0, list[pb.GenerateEvent]()
        for index, step in enumerate(steps):
            tokens += step.tokens
            if pace and step.tokens:
                await _until(begun + tokens / pace, deadline, callers=callers)
            events += step.events
            if (pace and (step.tokens or not index)) or len(events) >= MOST_EVENTS:
                yield pb.StreamGenerateResponse(events=events)
                events = []
            if not pace:
                await asyncio.sleep(0)  # others have their turn
        if events:
            yield pb.StreamGenerateResponse(events=events)
        if mark == faults.CUT:
            raise faults.cut()

    async def _begin(self, seconds: float) -> str:
        """What the user asked to go wrong later; what goes wrong before the first byte is raised."""
        mark = faults.mark(self.prompt.asked)
        upstream = self.upstream
        await faults.befall(mark, seconds, first_byte=upstream.first_byte_seconds, total=upstream.total_seconds)
        return mark

    async def _finished(self) -> pb.GenerateResponse:
        """The answer with its images and the whole of its usage."""
        for media, plan in self.made.drawings:
            media.data = await asyncio.to_thread(drawing.draw, plan)
        request, response = self.request, self.made.response
        use = self.upstream.cache.use(self.upstream.owner(), request, self.model, self.prompt.blocks)
        response.usage.cache_read_tokens = use.read
        response.usage.cache_write_tokens = use.written
        response.usage.cache_write_1h_tokens = use.written_1h
        if request.cached_content:
            response.usage.cache_read_tokens += cache.CACHED_CONTENT_TOKENS
            response.usage.input_tokens += cache.CACHED_CONTENT_TOKENS
        return response


def _refuse_sound(request: pb.GenerateRequest, report: Report) -> None:
    """The sandbox makes no sound: it says so, and answers with text where text will do."""
    if set(request.output_modalities) == {"audio"}:
        text = "output_modalities: the sandbox makes no sound; ask for text too"
        raise UmgError(pb.ERROR_REASON_UNTRANSLATABLE, text, field="output_modalities")
    report.drop("output_modalities")


def _check_length(request: pb.GenerateRequest, model: str, prompt: Prompt) -> None:
    most = context_tokens(model)
    if prompt.tokens > most and request.truncation != "auto":
        text = f"the prompt is too long: {prompt.tokens} tokens, and {model} takes at most {most}; shorten it"
        raise UmgError(pb.ERROR_REASON_CONTEXT_TOO_LONG, text, field="messages").of(Failure.CONTEXT)


def _first_half(steps: list[Step]) -> list[Step]:
    """As far as half of what takes time, and at least the first of that."""
    told = [index for index, step in enumerate(steps) if step.tokens]
    return steps[: told[(len(told) - 1) // 2] + 1] if told else steps[:1]


async def _until(due: float, deadline: float, *, callers: bool) -> None:
    """Waits for a time of the loop's clock. Raises UmgError(UPSTREAM_TIMEOUT) at the deadline, if that comes first;
    `callers` says whose it is.
    """
    now = asyncio.get_running_loop().time()
    if due > deadline:
        await asyncio.sleep(max(0, deadline - now))
        raise faults.late("total", callers=callers)
    await asyncio.sleep(max(0, due - now))
