"""Simulated text models: channel operation that generates deterministic answers."""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass

from umg_grpc.base.errors import Failure, UmgError
from umg_grpc.knowledge.model_catalogue import describe
from umg_grpc.knowledge.model_quirk_definitions import NO_CHANNEL_QUIRKS, ChannelQuirks
from umg_grpc.tokens import TokenCounter
from umg_grpc.v1 import pb
from umg_grpc.wire.core import lenient_number_reading
from umg_grpc.wire.dropped_fields_report import Report
from umg_grpc.wire.facts_beside_request import NO_NOTES, RequestNotes
from umg_sandbox import image_drawing, simulated_faults, simulated_prompt_cache
from umg_sandbox.prompt_reader import Count, Prompt, read_prompt
from umg_sandbox.response_generation import Draft, make_response
from umg_sandbox.simulated_faults import SimulatedDeadlines
from umg_sandbox.simulated_prompt_cache import PromptCache
from umg_sandbox.simulated_reasoning import check_states
from umg_sandbox.simulated_token_limits import context_tokens
from umg_sandbox.simulated_tool_calls import has_schema
from umg_sandbox.stream_pacing import PacedEvents, stream_steps

COUNTED_BYTES = 16 * 2**10
"""Size of a request in bytes from which counting its tokens takes more than about a millisecond."""
MAX_EVENTS = 16
"""Maximum events in one message of a stream that is sent without delays."""


class SandboxText:
    """Text generation by simulated models. Streams take realistic time; complete responses take none."""

    def __init__(
        self,
        owner: Callable[[], str],
        count: Count | None = None,
        *,
        tokens_per_second: float = 50,
        first_byte_seconds: float = 60,
        total_seconds: float = 600,
        clock: Callable[[], float] = time.monotonic,
        cached_prompts: int = 10_000,
    ) -> None:
        """Create the text generation of a channel. `owner`: returns the owner of the current call, whose prompts are
        cached separately; `count`: returns a text's tokens, called in several threads, None for the gateway's own
        count. `tokens_per_second`: speed of streams, 0 for no delays; the mark `[[slow]]` exceeds `first_byte_seconds`;
        `clock`: monotonic seconds; `cached_prompts`: maximum entries of the simulated prompt cache.
        """
        self.counted = False  # whether tokens were counted before: the first count loads a vocabulary
        self.count = count or TokenCounter().count_text
        self.owner = owner
        self.tokens_per_second = tokens_per_second
        self.deadlines = SimulatedDeadlines(first_byte_seconds, total_seconds)
        self.cache = PromptCache(clock, cached_prompts)

    def is_slow(self, request: pb.GenerateRequest, size: int) -> bool:
        return not self.counted or size >= COUNTED_BYTES or has_schema(request)

    def prepare(
        self,
        request: pb.GenerateRequest,
        model: str,
        notes: RequestNotes = NO_NOTES,
        *,
        stream: bool,
        quirks: ChannelQuirks = NO_CHANNEL_QUIRKS,
    ) -> "SandboxCall":
        report = Report()
        if "audio" in request.output_modalities:
            _refuse_sound(request, report)
        if "image" in request.output_modalities:
            _check_draws(model)
        prompt = read_prompt(request, notes, self.count, report)
        check_states(request, report)
        _check_length(request, model, prompt)
        draft = make_response(request, model, prompt, self.count)
        self.counted = True
        return SandboxCall(self, request, model, prompt, draft, report)


@dataclass(frozen=True)
class SandboxCall:
    """Simulated text call. Its response is generated when the call is prepared; images are drawn when it is sent."""

    upstream: SandboxText
    request: pb.GenerateRequest
    model: str
    prompt: Prompt
    draft: Draft
    report: Report

    @property
    def body(self) -> bytes:
        return b""

    @property
    def protocol(self) -> str:
        return ""

    @property
    def storage(self) -> None:
        return None

    def relay_to(self, relay: Callable[[bytes], bool]) -> None:
        """Do nothing: no provider sends frames."""

    async def send(self, seconds: float) -> pb.GenerateResponse:
        mark = await self._begin(seconds)
        if mark == simulated_faults.CUT_MARK:
            raise simulated_faults.failed()
        return await self._response()

    async def stream(self, seconds: float) -> AsyncGenerator[pb.StreamGenerateResponse, None]:
        pace, loop = self.upstream.tokens_per_second, asyncio.get_running_loop()
        total = self.upstream.deadlines.total
        deadline, callers = loop.time() + min(seconds, total), seconds <= total
        mark = await self._begin(seconds)
        steps = list(stream_steps(await self._response(), self.upstream.count))
        if mark == simulated_faults.CUT_MARK:
            steps = _first_half(steps)
        begun, tokens, events = loop.time(), 0, list[pb.GenerateEvent]()
        for index, step in enumerate(steps):
            tokens += step.tokens
            if pace and step.tokens:
                await _until(begun + tokens / pace, deadline, callers=callers)
            events += step.events
            if (pace and (step.tokens or not index)) or len(events) >= MAX_EVENTS:
                yield pb.StreamGenerateResponse(events=events)
                events = []
            if not pace:
                await asyncio.sleep(0)  # let other tasks run
        if events:
            yield pb.StreamGenerateResponse(events=events)
        if mark == simulated_faults.CUT_MARK:
            raise simulated_faults.cut()

    async def _begin(self, seconds: float) -> str:
        mark = simulated_faults.mark(self.prompt.recent_text)
        await simulated_faults.raise_early(mark, seconds, self.upstream.deadlines)
        return mark

    async def _response(self) -> pb.GenerateResponse:
        for media, drawing in self.draft.drawings:
            media.data = await asyncio.to_thread(image_drawing.draw, drawing)
        request, response = self.request, self.draft.response
        use = self.upstream.cache.use(self.upstream.owner(), request, self.model, self.prompt.blocks)
        referenced = simulated_prompt_cache.CACHED_CONTENT_TOKENS if request.cached_content else 0
        response.usage.cache_read_tokens = lenient_number_reading.count(use.read + referenced)
        response.usage.cache_write_tokens = lenient_number_reading.count(use.written)
        response.usage.long_cache_write_tokens = lenient_number_reading.count(use.written_1h)
        response.usage.input_tokens = lenient_number_reading.count(response.usage.input_tokens + referenced)
        return response


def _refuse_sound(request: pb.GenerateRequest, report: Report) -> None:
    """Raise UmgError if audio is the only requested output; otherwise record requested audio as dropped."""
    if set(request.output_modalities) == {"audio"}:
        text = "output_modalities: the sandbox makes no sound; ask for text too"
        raise UmgError(pb.ERROR_REASON_UNTRANSLATABLE, text, field="output_modalities")
    report.drop("output_modalities")


def _check_draws(model: str) -> None:
    known = describe(model)
    if known is not None and "image" not in known.capabilities.output_modalities:
        text = "`output_modalities`: this model makes no images; ask for text only, or choose a model that makes images"
        raise UmgError(pb.ERROR_REASON_UNSUPPORTED_FIELD, text, field="output_modalities")


def _check_length(request: pb.GenerateRequest, model: str, prompt: Prompt) -> None:
    max_tokens = context_tokens(model)
    if prompt.tokens > max_tokens and request.truncation != pb.TRUNCATION_AUTO:
        text = f"the prompt is too long: {prompt.tokens} tokens, and {model} accepts at most {max_tokens}; shorten it"
        raise UmgError(pb.ERROR_REASON_CONTEXT_TOO_LONG, text, field="messages").with_failure(Failure.CONTEXT)


def _first_half(steps: list[PacedEvents]) -> list[PacedEvents]:
    timed = [index for index, step in enumerate(steps) if step.tokens]
    return steps[: timed[(len(timed) - 1) // 2] + 1] if timed else steps[:1]


async def _until(due: float, deadline: float, *, callers: bool) -> None:
    now = asyncio.get_running_loop().time()
    if due > deadline:
        await asyncio.sleep(max(0, deadline - now))
        raise simulated_faults.late("total", callers=callers)
    await asyncio.sleep(max(0, due - now))
