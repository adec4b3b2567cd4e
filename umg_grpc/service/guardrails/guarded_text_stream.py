"""Guards of a streamed response: its texts are held back until the guards allow them. A refusal ends the response."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence

import msgspec

from umg_grpc.base.errors import UmgError
from umg_grpc.service.guardrails.guard_driver import GuardRun
from umg_grpc.service.guardrails.refused_text_responses import refused_end
from umg_grpc.service.guardrails.streamed_text_windows import GuardedText
from umg_grpc.service.pipeline.stream_pipeline import StreamedResponse, StreamEndedError
from umg_grpc.v1 import pb
from umg_grpc.wire.core.stream_aggregator import StreamAggregator

SEEN_BYTES = 128 * 2**10
"""Bytes of the events of the provider that are kept to estimate the usage of a stream that a guard ends."""
DELTA_PATHS = {
    "text_delta": "text.text",
    "reasoning_delta": "reasoning.texts[{}]",
    "summary_delta": "reasoning.summaries[{}]",
    "arguments_delta": "tool_call.arguments_json",
    "refusal_delta": "refusal.text",
    "media_delta": "media.transcript",
}
"""Kind of an event with a piece of a text -> path of the text in its part."""
OF_STREAM = frozenset({"started", "usage"})
"""Kinds of events that belong to no part."""
Estimate = Callable[[StreamAggregator], Awaitable[None]]
"""Function that records the estimated usage of a response that a guard has ended."""


class _Part(msgspec.Struct, eq=False):
    """Part of a streamed response, with its texts that guards check and its events that are held back."""

    texts: dict[str, GuardedText] = {}
    """Path in the part -> text."""
    templates: dict[str, pb.GenerateEvent] = {}
    """Path in the part -> last event with a piece of its text, copied to send text that has passed."""
    start: pb.GenerateEvent | None = None
    """Start of a tool call, which is held back until its arguments are complete."""
    waiting: list[tuple[int, pb.GenerateEvent]] = []
    """Events behind texts that have not passed, each with the number of characters before it."""
    characters: int = 0
    is_sent: bool = False
    """Whether the caller has the start of the part, but not its end."""


class GuardedTextStream(msgspec.Struct, eq=False):
    """State of one streamed response with guards, around the state without them."""

    _inner: StreamedResponse[pb.StreamGenerateResponse]
    _run: GuardRun
    _candidates: int
    _estimate: Estimate
    _parts: dict[tuple[int, int], _Part] = {}
    _finished: set[int] = set()
    _has_begun: bool = False
    _seen: StreamAggregator = msgspec.field(default_factory=lambda: StreamAggregator(SEEN_BYTES))
    _end: list[pb.GenerateEvent] = []

    async def feed(self, message: pb.StreamGenerateResponse) -> bool:
        self._seen.feed(message)
        passed = list[pb.GenerateEvent]()
        try:
            for event in message.events:
                passed += await self._passed(event)
        except UmgError as error:
            await self._refuse(error, passed)
            raise StreamEndedError from None
        if not passed:
            return False
        del message.events[:]
        message.events.extend(passed)
        return await _fed(self._inner, message)

    async def close(self) -> Sequence[pb.StreamGenerateResponse]:
        if not self._end:
            try:
                for key in [*self._parts]:
                    self._end += await self._rest(key)
            except UmgError as error:
                await self._refuse(error, self._end)
        last = pb.StreamGenerateResponse(events=self._end)
        is_sent = bool(self._end) and await _fed(self._inner, last)
        return [*([last] if is_sent else ()), *await self._inner.close()]

    async def break_off(self, messages: AsyncGenerator[pb.StreamGenerateResponse, None], error: BaseException) -> None:
        await self._inner.break_off(messages, error)

    async def _passed(self, event: pb.GenerateEvent) -> list[pb.GenerateEvent]:
        """Return the events that the caller may get after an event of the provider."""
        kind, key = event.WhichOneof("kind"), (event.candidate_index, event.part_index)
        if kind == "started":
            self._has_begun = True
        if kind in OF_STREAM or kind is None:
            return [event]
        if kind in DELTA_PATHS:
            return await self._passed_text(key, kind, event)
        if kind == "finished":
            self._finished.add(event.candidate_index)
            ended = [each for each in self._parts if each[0] == event.candidate_index]
            rest = [passed for each in ended for passed in await self._rest(each)]
            return [*rest, (await self._run.check(event, is_part=True)).message]
        if kind == "part_ended":
            passed = await self._rest(key)
            self._parts.pop(key, None)
            return [*passed, event]
        event = (await self._run.check(event, is_part=True)).message
        part = self._parts.setdefault(key, _Part())
        if kind == "part_started":
            if event.part_started.HasField("tool_call"):
                part.start = event
                return []
            part.is_sent = True
        held = sum(text.held_characters for text in part.texts.values())
        if not held and part.start is None:
            return [event]
        part.waiting.append((part.characters, event))
        return []

    async def _passed_text(self, key: tuple[int, int], kind: str, event: pb.GenerateEvent) -> list[pb.GenerateEvent]:
        part = self._parts.setdefault(key, _Part())
        index = event.summary_delta.summary_index if kind == "summary_delta" else event.text_index
        path = DELTA_PATHS[kind].format(index)
        passed = list[pb.GenerateEvent]()
        if path not in part.texts:
            for other in part.texts:  # the next one begins where this one ends
                passed += _with_text(part, other, await part.texts[other].close())
            is_call = kind == "arguments_delta"
            place = f"candidates[{key[0]}].message.parts[{key[1]}].{path}"
            part.texts[path] = GuardedText(self._run, place, is_json=is_call, is_whole=is_call)
        if event.media_delta.data:  # the medium itself; its transcript is checked apart
            medium = pb.MediaDelta(data=event.media_delta.data)
            passed.append(pb.GenerateEvent(candidate_index=key[0], part_index=key[1], media_delta=medium))
            event.media_delta.ClearField("data")
        part.templates[path] = event
        part.characters += len(piece := _text_of(event))
        passed += _with_text(part, path, await part.texts[path].feed(piece))
        return passed + _due(part)

    async def _rest(self, key: tuple[int, int]) -> list[pb.GenerateEvent]:
        """Return all events of a part that are still held back, once the part has ended."""
        if (part := self._parts.get(key)) is None:
            return []
        rest = list[pb.GenerateEvent]()
        for path, text in part.texts.items():
            rest += _with_text(part, path, await text.close())
        if part.start is not None:
            rest.insert(0, part.start)
            part.start = None
        return rest + _due(part)

    async def _refuse(self, error: UmgError, passed: Sequence[pb.GenerateEvent]) -> None:
        """End the response because a guard refused it: keep the last events for the caller."""
        await self._estimate(self._seen)
        if error.reason != pb.ERROR_REASON_GUARD_REFUSED:
            raise error
        end = [event for event in passed if not event.HasField("usage")]  # which the estimated one contains
        if not self._has_begun:
            end.insert(0, pb.GenerateEvent(started=pb.GenerationStarted()))
        for (candidate, index), part in self._parts.items():
            if part.is_sent:
                ended = pb.GenerateEvent(candidate_index=candidate, part_index=index, part_ended=pb.PartEnded())
                end.append(ended)
        rest = (candidate for candidate in range(self._candidates) if candidate not in self._finished)
        end += [pb.GenerateEvent(candidate_index=candidate, finished=refused_end(error)) for candidate in rest]
        self._end = end


def _with_text(part: _Part, path: str, text: str) -> list[pb.GenerateEvent]:
    """Return an event with a text that the guards allow; none for an empty text."""
    if not text:
        return []
    passed = pb.GenerateEvent()
    passed.CopyFrom(part.templates[path])
    kind = passed.WhichOneof("kind")
    if kind == "summary_delta":
        passed.summary_delta.text = text
    elif kind == "media_delta":
        passed.media_delta.transcript = text
    elif kind is not None:
        setattr(passed, kind, text)
    return [passed]


def _text_of(event: pb.GenerateEvent) -> str:
    """Return the piece of text that an event contains."""
    match event.WhichOneof("kind"):
        case "summary_delta":
            return event.summary_delta.text
        case "media_delta":
            return event.media_delta.transcript
        case kind:  # the others of `DELTA_PATHS` are texts
            text: str = getattr(event, kind or "text_delta")
            return text


def _due(part: _Part) -> list[pb.GenerateEvent]:
    """Return the events that may be sent now, since all texts before them have passed."""
    if part.start is not None:
        return []
    passed = part.characters - sum(text.held_characters for text in part.texts.values())
    is_changed = any(text.is_changed for text in part.texts.values())
    due = [event for at, event in part.waiting if at <= passed]
    part.waiting = [(at, event) for at, event in part.waiting if at > passed]
    return [event for event in due if not (is_changed and event.HasField("logprobs"))]


async def _fed(inner: StreamedResponse[pb.StreamGenerateResponse], message: pb.StreamGenerateResponse) -> bool:
    sent = inner.feed(message)
    return sent if isinstance(sent, bool) else await sent
