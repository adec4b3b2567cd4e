"""Codec calls whose cost is measured."""

from collections.abc import Callable, Sequence
from contextlib import suppress

from tests.proofs.linear.cost import Work
from tests.unit.wire.streams import decoded
from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.core.stream_aggregator import FrameAggregator, StreamAggregator
from umg_grpc.wire.text_format_interface import StreamEncoder, TextFormat

MODEL = "gemini-3-pro"
"""Model of a generation that has its own names for some fields."""
Encoding = Callable[[pb.GenerateRequest], StreamEncoder]


def nothing() -> None:
    """Do nothing, in place of the work on a body that was refused before."""


def accepting(work: Work) -> Work:
    """Return the work, which may end in a refusal: a refusal has to come in linear time, too."""

    def call() -> None:
        with suppress(UmgError):
            work()

    return call


def gather(messages: Sequence[pb.StreamGenerateResponse]) -> pb.GenerateResponse:
    aggregator = StreamAggregator()
    for message in messages:
        aggregator.feed(message)
    return aggregator.response()


def aggregate_frames(codec: TextFormat, request: pb.GenerateRequest, frames: bytes) -> pb.GenerateResponse:
    aggregator = FrameAggregator(codec, request)
    aggregator.feed(pb.StreamGenerateResponse(source_frames=frames))
    return aggregator.response()


def encode(encoding: Encoding, request: pb.GenerateRequest, messages: Sequence[pb.StreamGenerateResponse]) -> bytes:
    encoder = encoding(request)
    return b"".join([*map(encoder.feed, messages), encoder.close()])


def decode(codec: TextFormat, request: pb.GenerateRequest, frames: bytes, *, pass_: bool, step: int = 2**30) -> object:
    pieces = [frames[at : at + step] for at in range(0, len(frames), step)]
    return decoded(codec, pieces, request, pass_=pass_)


def break_off(codec: TextFormat, request: pb.GenerateRequest, frames: bytes) -> None:
    """Pass a stream on, frame by frame, that ends in an error."""
    encoder = codec.stream_encoder(request)
    for frame in frames.split(b"\n\n"):
        encoder.feed(pb.StreamGenerateResponse(source_frames=frame + b"\n\n"))
    encoder.error(UmgError(pb.ERROR_REASON_UPSTREAM_FAILED, "broken"))
