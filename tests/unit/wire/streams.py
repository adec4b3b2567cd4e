"""Encoding and decoding of streams by any codec."""

from collections.abc import Iterable

from umg_grpc.v1 import pb
from umg_grpc.wire.core.stream_decoder import FrameDecoder
from umg_grpc.wire.text_format_interface import StreamDecoder, TextFormat


def decoder_of(codec: TextFormat, request: pb.GenerateRequest, pass_: bool) -> StreamDecoder:
    """Return the decoder of the response to the request: passthrough if `pass_`, else translating."""
    return codec.passthrough_decoder(request) if pass_ else codec.translating_decoder(request)


def decoded(
    codec: TextFormat, frames: Iterable[bytes], request: pb.GenerateRequest, *, pass_: bool = False
) -> list[pb.StreamGenerateResponse]:
    """Decode a provider's whole stream, cut as the frames are."""
    decoder = decoder_of(codec, request, pass_)
    messages = [message for data in frames if (message := decoder.feed(data)) is not None]
    last = decoder.close()
    return [*messages, last] if last is not None else messages


def relayed(
    codec: TextFormat, reads: Iterable[bytes], request: pb.GenerateRequest
) -> tuple[list[pb.StreamGenerateResponse], int]:
    """Decode a passed-through stream as `decoded` does, but for the reads whose frames need no message. Return the
    messages, with one for each of these reads, and their number.
    """
    decoder, messages, number = codec.passthrough_decoder(request), list[pb.StreamGenerateResponse | None](), 0
    assert isinstance(decoder, FrameDecoder)
    for data in reads:
        if frames := decoder.plain_frames(data):
            messages.append(pb.StreamGenerateResponse(source_frames=frames))
            number += 1
        else:
            messages.append(decoder.feed(data))
    return [message for message in (*messages, decoder.close()) if message is not None], number


def encoded(codec: TextFormat, messages: Iterable[pb.StreamGenerateResponse], request: pb.GenerateRequest) -> bytes:
    """Return the caller's bytes of a whole stream."""
    encoder = codec.stream_encoder(request)
    return b"".join([*map(encoder.feed, messages), encoder.close()])


def frames_of(messages: Iterable[pb.StreamGenerateResponse]) -> bytes:
    """Return the bytes of a passthrough stream."""
    return b"".join(message.source_frames for message in messages)


def events_of(messages: Iterable[pb.StreamGenerateResponse]) -> list[pb.GenerateEvent]:
    return [event for message in messages for event in message.events]


def kinds(messages: Iterable[pb.StreamGenerateResponse]) -> list[str | None]:
    return [event.WhichOneof("kind") for event in events_of(messages)]
