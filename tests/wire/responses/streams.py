"""Streams through the codec."""

from collections.abc import Iterable

import msgspec

from umg_grpc.v1 import pb
from umg_grpc.wire import sse
from umg_grpc.wire.gather import Gatherer
from umg_grpc.wire.responses import RESPONSES

Told = dict[str, object]


def decoded(
    frames: Iterable[bytes], request: pb.GenerateRequest, *, pass_: bool = False
) -> list[pb.StreamGenerateResponse]:
    decoder = RESPONSES.stream_decoder(request, pass_)
    messages = [message for data in frames if (message := decoder.feed(data)) is not None]
    last = decoder.close()
    return [*messages, last] if last is not None else messages


def encoded(messages: Iterable[pb.StreamGenerateResponse], request: pb.GenerateRequest) -> bytes:
    encoder = RESPONSES.stream_encoder(request)
    return b"".join([*(encoder.feed(message) for message in messages), encoder.close()])


def told(stream: bytes) -> list[Told]:
    """The payloads, whose types are the events' names and which are numbered from 0."""
    payloads = list[Told]()
    for event in sse.split(stream):
        assert event.data is not None
        payload = msgspec.json.decode(event.data)
        assert event.name.decode() == payload["type"]
        assert payload["sequence_number"] == len(payloads)
        payloads.append(payload)
    return payloads


def names(stream: bytes) -> list[object]:
    return [str(payload["type"]).removeprefix("response.") for payload in told(stream)]


def frames(*payloads: Told) -> bytes:
    """A provider's stream."""
    return b"".join(
        f"event: {payload['type']}\ndata: ".encode() + msgspec.json.encode(payload) + b"\n\n" for payload in payloads
    )


def whole(messages: Iterable[pb.StreamGenerateResponse]) -> pb.GenerateResponse:
    """The answer that a stream makes. Fails on events that break the order that `GenerateEvent` states."""
    gatherer, open_parts, count, started, finished = Gatherer(), set[int](), 0, False, False
    for message in messages:
        gatherer.feed(message)
        for event in message.events:
            kind = event.WhichOneof("kind")
            assert started != (kind == "started"), "started is the first event, and only once"
            started = True
            if kind in ("started", "usage", "opaque"):
                continue
            assert not finished, "nothing follows the finish"
            if kind == "finished":
                assert not open_parts, "parts end before it"
                finished = True
            elif kind == "part_started":
                assert event.part_index == count, "parts are numbered as they start"
                open_parts.add(count)
                count += 1
            else:
                assert event.part_index in open_parts, f"{kind} of a part that is not open"
                if kind == "part_ended":
                    open_parts.remove(event.part_index)
    assert not open_parts
    return gatherer.response()
