"""The streamed answer of a provider for a caller of the same format: whole frames as they came, looked into only where
that is needed.
"""

import re

import msgspec
from msgspec import Raw, Struct

from umg_grpc.v1 import pb
from umg_grpc.wire import sse
from umg_grpc.wire.frames import FrameDecoder
from umg_grpc.wire.json import ABSENT, given
from umg_grpc.wire.provider_errors import cut_off
from umg_grpc.wire.ragged import decode
from umg_grpc.wire.responses.answer import (
    CALLS,
    Head,
    PassedResponse,
    SeenItem,
    check_status,
    decode_finish,
    decode_head,
    decode_used,
)
from umg_grpc.wire.responses.events import BEGINNINGS, ENDS, Event, stated_error
from umg_grpc.wire.responses.response import wrapped

EVENT, DELTA, BLANK = b"event: response.", b".delta\ndata: {", b"\n\n"


class PassedEvent(Struct):
    """What an event that is passed on is looked at for."""

    type: str | None = None
    response: Raw = ABSENT
    item: SeenItem | None = None
    error: Raw = ABSENT
    code: str | int | float | None = None
    message: str | None = None
    param: str | None = None


class Told(Head, kw_only=True):
    """A response object that begins."""


_EVENT = msgspec.json.Decoder(PassedEvent)
_HEAD = msgspec.json.Decoder(Told)
_RESPONSE = msgspec.json.Decoder(PassedResponse)
_NUMBERED = re.compile(rb"(?:^|[\r\n])id:")


class PassingDecoder(FrameDecoder):
    """Events -> the same events, with those that the service needs. One instance a stream.

    Changed are: the model id in response objects, if the provider's is another; states that look like ours; events
    without data, which break clients. A failure is no event here but the failure of the call: its words are cleaned,
    and the face tells it.
    """

    def __init__(self, request: pb.GenerateRequest) -> None:
        super().__init__(request)
        self._started = False
        self._kinds: list[str] = []  # of the items that are done
        self._refused = False

    def _plain(self, frames: bytes) -> bytes | None:
        """Frames that are all deltas: each has three line ends, and none but the first stands within it."""
        if not self._started or not frames.startswith(EVENT):
            return None
        number = frames.count(BLANK)
        if frames.count(DELTA) != number or frames.count(BLANK + EVENT) != number - 1:
            return None
        if frames.count(b"\n") != 3 * number or not frames.endswith(b"}\n\n") or b"\r" in frames:
            return None
        return frames

    def _end(self) -> bytes:
        raise cut_off()

    def _frame(self, event: sse.SseEvent, events: list[pb.GenerateEvent]) -> bytes:
        data = event.data
        if data is None:  # a comment keeps the connection alive; an event without data breaks the openai client
            return event.raw if self._started and event.raw.startswith(b":") else b""
        if data.strip() == sse.DONE:
            return b""
        # With an `id:` openai's client reads the blank line behind it as an event.
        if b"id:" in event.raw and _NUMBERED.search(event.raw):
            event = event._replace(raw=_frame(event.name, data))
        told = decode(_EVENT, data)
        failed = Event(type=told.type, error=told.error, code=told.code, message=told.message, param=told.param)
        if error := stated_error(event.name, failed):
            raise error
        kind = told.type or event.name.decode("utf-8", "replace")
        if kind in ENDS:
            return self._ended(event, told, kind, events)
        if kind in BEGINNINGS:
            return self._began(event, told, events)
        if told.item is not None and kind == "response.output_item.done":
            self._note(told.item)
        return wrapped(event.raw) if self._started else b""  # clients want to see the response created first

    def _note(self, item: SeenItem) -> None:
        self._kinds.append(item.type or "")
        self._refused = self._refused or any(content.type == "refusal" for content in item.content or ())

    def _began(self, event: sse.SseEvent, told: PassedEvent, events: list[pb.GenerateEvent]) -> bytes:
        head = decode(_HEAD, bytes(told.response)) if given(told.response) else Told()
        if not self._started:
            self._started = True
            started = pb.GenerateEvent()
            started.started.model = self._request.model or head.model or ""
            decode_head(head, started.started)
            events.append(started)
        return self._renamed(event, head.model)

    def _ended(self, event: sse.SseEvent, told: PassedEvent, kind: str, events: list[pb.GenerateEvent]) -> bytes:
        response = decode(_RESPONSE, bytes(told.response)) if given(told.response) else PassedResponse()
        response.status = response.status or kind.removeprefix("response.")
        check_status(response)
        if not self._started:
            raise cut_off()
        if response.output:
            self._kinds, self._refused = [], False
            for item in response.output:
                self._note(item)
        used = pb.GenerateEvent()
        if decode_used(response, self._kinds.count("web_search_call"), used):
            events.append(used)
        ended = pb.GenerateEvent()
        decode_finish(response, any(call in self._kinds for call in CALLS), self._refused, ended.finished)
        events.append(ended)
        self._done = True
        return self._renamed(event, response.model)

    def _renamed(self, event: sse.SseEvent, theirs: str | None) -> bytes:
        """The frame with the caller's model id in its response, all else byte for byte."""
        raw, ours = wrapped(event.raw), self._request.model
        if theirs is None or theirs == ours or not ours:
            return raw
        if raw.count(b'"model"') == 1:
            for name in (b'"model":', b'"model": '):
                spelled = name + msgspec.json.encode(theirs)
                if spelled in raw:
                    return raw.replace(spelled, name + msgspec.json.encode(ours))
        fields = msgspec.json.decode(wrapped(event.data or b"{}"), type=dict[str, Raw])
        response = msgspec.json.decode(fields["response"], type=dict[str, Raw])
        response["model"] = Raw(msgspec.json.encode(ours))
        fields["response"] = Raw(msgspec.json.encode(response))
        return _frame(event.name, msgspec.json.encode(fields))


def _frame(name: bytes, data: bytes) -> bytes:
    return sse.named_frame(name, data) if name else sse.frame(data)
