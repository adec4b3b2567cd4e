"""Streams through the codec."""

from collections.abc import Iterable

import msgspec

from tests.unit.wire import streams
from umg_grpc.v1 import pb
from umg_grpc.wire.core import sse
from umg_grpc.wire.responses import RESPONSES_FORMAT

Payload = dict[str, object]


def decoded(
    frames: Iterable[bytes], request: pb.GenerateRequest, *, pass_: bool = False
) -> list[pb.StreamGenerateResponse]:
    return streams.decoded(RESPONSES_FORMAT, frames, request, pass_=pass_)


def encoded(messages: Iterable[pb.StreamGenerateResponse], request: pb.GenerateRequest) -> bytes:
    return streams.encoded(RESPONSES_FORMAT, messages, request)


def payloads_of(stream: bytes) -> list[Payload]:
    """Return the payloads; their types must be the events' names, and their numbers must count from 0."""
    payloads = list[Payload]()
    for event in sse.split(stream):
        assert event.data is not None
        payload = msgspec.json.decode(event.data)
        assert event.name.decode() == payload["type"]
        assert payload["sequence_number"] == len(payloads)
        payloads.append(payload)
    return payloads


def names(stream: bytes) -> list[object]:
    return [str(payload["type"]).removeprefix("response.") for payload in payloads_of(stream)]


def frames(*payloads: Payload) -> bytes:
    """Return the bytes of a provider's stream."""
    return b"".join(
        f"event: {payload['type']}\ndata: ".encode() + msgspec.json.encode(payload) + b"\n\n" for payload in payloads
    )
