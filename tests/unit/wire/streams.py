"""Encoding and decoding of streams by any codec."""

from collections.abc import Iterable

from umg_grpc.v1 import pb
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
