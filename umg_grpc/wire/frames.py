"""What the stream decoders of all formats share: whole events of each read, a failure told after what came before it.

`EventDecoder` is for streams that are translated, `FrameDecoder` for those that go on as they came.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator

from umg_grpc.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire import sse
from umg_grpc.wire.provider_errors import unreadable
from umg_grpc.wire.ragged import well_formed


class _Decoder:
    """What both hold. A failure is kept where something came before it, and raised by the next call."""

    def __init__(self, request: pb.GenerateRequest) -> None:
        self._request = request
        self._splitter = sse.SseSplitter()
        self._failure: UmgError | None = None
        self._done = False

    @property
    def done(self) -> bool:
        """Whether the end of the answer was seen."""
        return self._done


class EventDecoder(_Decoder, ABC):
    """A provider's events -> canonical events. One instance a stream."""

    def feed(self, data: bytes) -> pb.StreamGenerateResponse | None:
        """All that one read completed. Raises UmgError for an error event, after what came before it."""
        if self._failure is not None:
            raise self._failure
        return self._take(self._splitter.whole(data))

    def close(self) -> pb.StreamGenerateResponse | None:
        """The rest. Raises UmgError(UPSTREAM_CUT) when the answer was not whole."""
        message = (None if self._done else self._take(self._splitter.rest())) or pb.StreamGenerateResponse()
        if self._failure is not None:
            raise self._failure
        if not self._done:
            message.events.extend(self._finish())
            self._done = True
        return message if message.events else None

    def _take(self, frames: bytes) -> pb.StreamGenerateResponse | None:
        if not frames or self.done:
            return None
        message = pb.StreamGenerateResponse()
        try:
            for event in sse.split(frames):
                if event.data is None:
                    continue
                message.events.extend(self._events(event))
                if self._done:
                    break
        except UmgError as error:
            self._failure = error
        except (ValueError, RecursionError):
            self._failure = unreadable()
        if self._failure is not None and not message.events:
            raise self._failure
        return message if message.events else None

    @abstractmethod
    def _events(self, event: sse.SseEvent) -> Iterable[pb.GenerateEvent]:
        """What one event says; its data is not None. Sets `_done` where it is the last of the answer."""

    @abstractmethod
    def _finish(self) -> Iterator[pb.GenerateEvent]:
        """What ends an answer whose stream ended without an end marker. Raises `cut_off()` when it was not whole."""


class FrameDecoder(_Decoder, ABC):
    """A provider's frames -> the same frames, beside them the events that the service needs. One instance a stream."""

    def feed(self, data: bytes) -> pb.StreamGenerateResponse | None:
        """All whole frames of one read. Raises UmgError for an error event, after what came before it."""
        if self._failure is not None:
            raise self._failure
        frames = well_formed(self._splitter.whole(data))
        if not frames or self._done:
            return None
        plain = self._plain(frames)
        return self._look(frames) if plain is None else pb.StreamGenerateResponse(source_frames=plain)

    def close(self) -> pb.StreamGenerateResponse | None:
        """The rest, and the end marker where the provider left it out. Raises UmgError(UPSTREAM_CUT) when the answer
        was not whole.
        """
        message = None
        if self._failure is None and not self._done and (rest := self._splitter.rest()):
            message = self._look(well_formed(rest))
        if self._failure is not None:
            raise self._failure
        if self._done:
            return message
        end = self._end()
        self._done = True
        if not end:
            return message
        message = message or pb.StreamGenerateResponse()
        message.source_frames += end
        return message

    def _look(self, frames: bytes) -> pb.StreamGenerateResponse | None:
        passed, events = list[bytes](), list[pb.GenerateEvent]()
        try:
            self._frames(frames, passed, events)
        except UmgError as error:
            self._failure = error
        except (ValueError, RecursionError):
            self._failure = unreadable()
        if not passed and not events:
            if self._failure is not None:
                raise self._failure
            return None
        return pb.StreamGenerateResponse(source_frames=b"".join(passed), events=events)

    def _frames(self, frames: bytes, passed: list[bytes], events: list[pb.GenerateEvent]) -> None:
        """Each frame by itself: what of it is passed on, and what the service needs of it."""
        for event in sse.split(frames):
            if kept := self._frame(event, events):
                passed.append(kept)
            if self._done:
                return

    def _plain(self, frames: bytes) -> bytes | None:
        """A read that needs no look, as it is passed on; None where it has to be looked into. For speed only."""
        return None

    @abstractmethod
    def _frame(self, event: sse.SseEvent, events: list[pb.GenerateEvent]) -> bytes:
        """The frame as it is passed on, b"" if it is not; what the service needs of it goes to `events`. Sets `_done`
        where it is the last of the answer; raises UmgError for an error event.
        """

    @abstractmethod
    def _end(self) -> bytes:
        """The end marker that a provider left out, b"" where the format has none. Raises `cut_off()` when the answer
        was not whole.
        """
