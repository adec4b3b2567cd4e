"""Passthrough of a provider's native stream: frames are forwarded unchanged and parsed only where that is needed."""

import msgspec

from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.core import sse
from umg_grpc.wire.core.finish_reason_conversion import failed_response
from umg_grpc.wire.core.split_character_repair import decode
from umg_grpc.wire.core.stream_decoder import DECODED_FRAME, FrameDecoder, ModelMember
from umg_grpc.wire.errors.provider_errors import cut_off
from umg_grpc.wire.native.shared_response_fields import (
    NO_REASON,
    Ending,
    PassedResponse,
    correct_finish,
    decode_finish,
    end_of,
    has_content,
)
from umg_grpc.wire.native.stream_decoder import blocked_event, chunk_error, started_event, stated_usage, usage_event
from umg_grpc.wire.native.usage import UsageMetadata

_CHUNK = msgspec.json.Decoder(PassedResponse)
NEEDED_MEMBERS = (b'"finishReason"', b'"functionCall"', b'"error"', b'"promptFeedback"')
"""Members that the service reads. A search of the bytes finds no false match in a text, where quotes are escaped."""


class PassthroughDecoder(FrameDecoder):
    """Decoder of a passed-through native stream: forwards chunks, and emits events for the service. One per stream. It
    replaces a different model id, and removes comments, `event:` lines and another format's end marker.
    """

    def __init__(self, request: pb.GenerateRequest) -> None:
        super().__init__(request)
        self._model = ModelMember(request.model, "modelVersion")
        self._finished: set[int] = set()
        self._blocked = False
        self._called: set[int] = set()  # candidates that call a tool, which overrides their finish reason
        self._usage: UsageMetadata | None = None
        self._stated_usage: UsageMetadata | None = None  # the last one, for the error of a response that failed
        self._has_content = False
        self._failed: UmgError | None = None  # error of a response without content, raised at the end
        self._unfinished: list[Ending] = []  # ends without a reason (FINISH_REASON_UNSPECIFIED)

    def feed(self, data: bytes) -> pb.StreamGenerateResponse | None:
        return self._with_usage(super().feed(data))

    def plain_frames(self, data: bytes) -> bytes:
        return b""  # each read states the usage, which needs a message

    def close(self) -> pb.StreamGenerateResponse | None:
        return self._with_usage(super().close())

    def _with_usage(self, message: pb.StreamGenerateResponse | None) -> pb.StreamGenerateResponse | None:
        if message is not None and self._usage is not None and self._usage.is_stated:
            message.events.append(usage_event(self._usage))
            self._usage = None
        return message

    def _plain(self, frames: bytes) -> tuple[bytes, int]:
        """Return (leading frames that only continue the response; their length), or `DECODED_FRAME` for others."""
        if not self._started:
            return DECODED_FRAME
        if needed := [at for name in NEEDED_MEMBERS if (at := frames.find(name)) >= 0]:
            frames = frames[: frames.rfind(b"\ndata: ", 0, min(needed)) + 1]
        if not (count := sse.count_data_events(frames)):
            return DECODED_FRAME
        try:
            last = _CHUNK.decode(frames[max(6, frames.rfind(b"\ndata: ") + 7) :])
        except (ValueError, RecursionError):
            return DECODED_FRAME
        if (renamed := self._model.replace_all(frames, count)) is None:
            return DECODED_FRAME
        self._usage, self._has_content = last.usage_metadata, True
        return renamed, len(frames)

    def _comment(self, frame: bytes) -> bytes:
        return b"\n" if self._started and not frame.strip() else b""  # a heartbeat of empty lines, or a comment

    def _frame(self, event: sse.SseEvent, events: list[pb.GenerateEvent]) -> bytes:
        data = event.data or b""
        if data.strip() == sse.DONE_DATA:
            return b""
        chunk = decode(_CHUNK, data)
        if error := chunk_error(chunk):
            raise error
        if not self._started and (chunk.candidates or chunk.response_id or chunk.usage_metadata):
            self._started = True
            events.append(started_event(chunk, self._request.model))
        for position, ending in enumerate(chunk.candidates or ()):
            index = position if ending.index is None else ending.index
            if ending.calls:
                self._called.add(index)
            self._has_content = self._has_content or has_content(ending.content)
            if ending.finish_reason and index not in self._finished:
                self._read_reason(index, ending, events)
        if chunk.prompt_feedback is not None and chunk.prompt_feedback.block_reason and not self._blocked:
            self._blocked = True
            if not self._started:
                self._started = True
                events.append(started_event(chunk, self._request.model))
            events.append(blocked_event(chunk.prompt_feedback))
        if chunk.usage_metadata is not None:
            self._usage = self._stated_usage = chunk.usage_metadata
        if self._failed is not None:
            return b""
        if not event.raw.startswith(b"data: ") or event.raw.strip() != b"data: " + data:
            event = sse.SseEvent(event.name, event.data, sse.frame(data))  # in the only form that clients can read
        frame = self._model.replace(event, chunk.model_version)
        return self._hold(frame) if self._unfinished and not self._has_content else frame

    def _read_reason(self, index: int, ending: Ending, events: list[pb.GenerateEvent]) -> None:
        """Append a candidate's end to `events`. Keep the error of one that failed without content."""
        if ending.finish_reason in NO_REASON:
            self._unfinished.append(ending)
            return
        if ending.finish_reason != "STOP" and not self._has_content and self._request.candidate_count <= 1:
            self._failed = failed_response(end_of(ending, has_content=False))
            if self._failed is not None:
                return
        self._finished.add(index)
        finished = pb.GenerateEvent(candidate_index=index)
        decode_finish(ending.finish_reason, finished.finished)
        correct_finish(finished.finished, called=index in self._called)
        events.append(finished)

    def _end(self) -> bytes:
        if self._unfinished and not self._finished:
            self._failed = failed_response(*(end_of(ending, self._has_content) for ending in self._unfinished))
        if self._failed is not None:
            raise self._failed.with_usage(stated_usage(self._stated_usage))
        if self._unfinished:
            return b""
        if not self._blocked and len(self._finished) < max(1, self._request.candidate_count):
            raise cut_off()
        return b""
