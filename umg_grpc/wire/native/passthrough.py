"""The streamed answer of a provider for a native caller: whole frames as they came, looked into only where that is
needed.
"""

import msgspec

from umg_grpc.v1 import pb
from umg_grpc.wire import sse
from umg_grpc.wire.frames import FrameDecoder
from umg_grpc.wire.native.answer import PassedAnswer, decode_finish, settle
from umg_grpc.wire.native.response import renamed
from umg_grpc.wire.native.translating import begun, blocked, chunk_error, used
from umg_grpc.wire.native.usage import UsageMetadata
from umg_grpc.wire.provider_errors import cut_off
from umg_grpc.wire.ragged import decode

_CHUNK = msgspec.json.Decoder(PassedAnswer)
MODEL = b'"modelVersion"'


class PassingDecoder(FrameDecoder):
    """Chunks -> the same chunks, with the events that the service needs. One instance a stream.

    Changed are: the model id, if the provider's is another; what the format's clients cannot read, which are comments,
    `event:` lines and another format's end marker.
    """

    def __init__(self, request: pb.GenerateRequest) -> None:
        super().__init__(request)
        self._started = False
        self._finished: set[int] = set()
        self._blocked = False
        self._called: set[int] = set()  # candidates that call a tool, which overrides why they are said to stop
        self._theirs: bytes | None = None  # the member with the provider's model id, as its chunks spell it
        self._ours = MODEL + b":" + msgspec.json.encode(request.model)
        self._usage: UsageMetadata | None = None

    def feed(self, data: bytes) -> pb.StreamGenerateResponse | None:
        """All whole frames of one read, with the usage that the last of them tells."""
        return self._with_usage(super().feed(data))

    def close(self) -> pb.StreamGenerateResponse | None:
        """The rest. Raises UmgError(UPSTREAM_CUT) when the answer was not whole."""
        return self._with_usage(super().close())

    def _with_usage(self, message: pb.StreamGenerateResponse | None) -> pb.StreamGenerateResponse | None:
        if message is not None and self._usage is not None and self._usage.is_whole:
            message.events.append(used(self._usage))
            self._usage = None
        return message

    def _plain(self, frames: bytes) -> bytes | None:
        """Frames that only move the answer on, under the caller's model id; the last tells the usage.

        The members that others have stand in no text: their quotes would be escaped there.
        """
        if self._theirs is None or b'"finishReason"' in frames or b'"functionCall"' in frames:
            return None
        if b'"error"' in frames or b'"promptFeedback"' in frames or not _is_data(frames):
            return None
        try:
            last = _CHUNK.decode(frames[max(6, frames.rfind(b"\ndata: ") + 7) :])
        except (ValueError, RecursionError):
            return None
        self._usage = last.usage_metadata
        if not self._theirs:
            return frames
        return frames.replace(self._theirs, self._ours) if frames.count(MODEL) == frames.count(self._theirs) else None

    def _frame(self, event: sse.SseEvent, events: list[pb.GenerateEvent]) -> bytes:
        data = event.data
        if data is None:
            return b"\n" if self._started and not event.raw.strip() else b""  # a heartbeat of bare lines, or a comment
        if data.strip() == sse.DONE:
            return b""
        chunk = decode(_CHUNK, data)
        if error := chunk_error(chunk):
            raise error
        if not self._started and (chunk.candidates or chunk.response_id or chunk.usage_metadata):
            self._started = True
            events.append(begun(chunk, self._request.model))
        for place, ending in enumerate(chunk.candidates or ()):
            index = place if ending.index is None else ending.index
            if ending.calls:
                self._called.add(index)
            self._finish(index, ending.finish_reason, events)
        if chunk.prompt_feedback is not None and chunk.prompt_feedback.block_reason and not self._blocked:
            self._blocked = True
            if not self._started:
                self._started = True
                events.append(begun(chunk, self._request.model))
            events.append(blocked(chunk.prompt_feedback))
        if chunk.usage_metadata is not None:
            self._usage = chunk.usage_metadata
        return self._renamed(event, chunk)

    def _finish(self, index: int, reason: str | None, events: list[pb.GenerateEvent]) -> None:
        if reason and index not in self._finished:
            self._finished.add(index)
            event = pb.GenerateEvent(candidate_index=index)
            decode_finish(reason, event.finished)
            settle(event.finished, called=index in self._called)
            events.append(event)

    def _renamed(self, event: sse.SseEvent, chunk: PassedAnswer) -> bytes:
        """The frame under the caller's model id, all else byte for byte where clients can read it."""
        data, theirs = event.data or b"{}", chunk.model_version
        raw = event.raw if event.raw.startswith(b"data: ") and event.raw.strip() == b"data: " + data else b""
        if theirs == self._request.model or not self._request.model or theirs is None:
            self._theirs = b"" if theirs is not None else self._theirs
            return raw or sse.frame(data)
        for name in (MODEL + b":", MODEL + b": "):
            spelled = name + msgspec.json.encode(theirs)
            if raw.count(MODEL) == 1 and spelled in raw:
                self._theirs, self._ours = spelled, name + msgspec.json.encode(self._request.model)
                return raw.replace(spelled, self._ours)
        ours = renamed(data, theirs, self._request.model)
        return raw.replace(data, ours) if raw else sse.frame(ours)

    def _end(self) -> bytes:
        if not self._blocked and len(self._finished) < max(1, self._request.candidate_count):
            raise cut_off()
        return b""


def _is_data(frames: bytes) -> bool:
    """Whether they are nothing but events of one `data: ` line, all with the same line ends."""
    end = b"\r\n" if frames.endswith(b"\r\n") else b"\n"
    events = frames.count(end + end)
    return (
        frames.startswith(b"data: {")
        and frames.endswith(end + end)
        and frames.count(end + end + b"data: {") == events - 1
        and frames.count(b"\n") == 2 * events
        and frames.count(b"\r") == (2 * events if end == b"\r\n" else 0)
    )
