"""Streams through the codec."""

from collections.abc import Iterable

from tests.unit.wire import streams
from umg_grpc.v1 import pb
from umg_grpc.wire.messages import MESSAGES_FORMAT

ANSWERED = pb.GenerateRequest(model="m")


def decoded(
    frames: Iterable[bytes], request: pb.GenerateRequest = ANSWERED, *, pass_: bool = False
) -> list[pb.StreamGenerateResponse]:
    return streams.decoded(MESSAGES_FORMAT, frames, request, pass_=pass_)


def encoded(messages: Iterable[pb.StreamGenerateResponse], request: pb.GenerateRequest = ANSWERED) -> bytes:
    return streams.encoded(MESSAGES_FORMAT, messages, request)
