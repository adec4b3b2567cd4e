"""What the codecs themselves cost, in this process and on one core: each face with each upstream format.

A figure is the time of this thread on the processor, so other programs disturb it little.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

import msgspec

from bench.processes import BenchError
from bench.samples import DONE, OURS, QUESTION, REPLY, THEIRS, Samples, samples, words
from umg_grpc.v1 import pb
from umg_grpc.wire import FORMATS
from umg_grpc.wire.format import FaceRequest

SMALL, AGENT, ANSWER, EVENT = "request", "agent's request", "answer", "stream event"
WORKS = (SMALL, AGENT, ANSWER, EVENT)
BATCH = 16
"""So many are decoded, then encoded, between two looks at the clock; in the cache both are near, as in a server."""

T = TypeVar("T")


@dataclass(frozen=True)
class Amount:
    """How much is translated in a round, of each pair."""

    requests: int
    agents: int
    answers: int
    events: int


FULL = Amount(requests=320, agents=3, answers=320, events=1600)
QUICK = Amount(requests=2, agents=1, answers=2, events=20)


class Cost(NamedTuple):
    """One work of one pair in one round, in microseconds a piece."""

    face: str
    upstream: str
    work: str
    decode: float
    encode: float


@dataclass(frozen=True)
class _Work(Generic[T]):
    """Something that comes in at one end of the pair and goes out at the other."""

    name: str
    given: Sequence[bytes]
    decode: Callable[[bytes], T]
    encode: Callable[[T], bytes]
    batch: int
    shown: Sequence[str]
    """What stands in each output, as JSON writes it."""


def pairs() -> list[tuple[str, str]]:
    """Every face with every upstream format."""
    return [(face, upstream) for face in FORMATS for upstream in FORMATS]


def translate(face: str, upstream: str, amount: Amount) -> list[Cost]:
    """One round of a pair. Raises BenchError if something came out that says something else."""
    known = samples()
    return [
        _cost(face, upstream, _request(face, upstream, SMALL, [known[face].small] * amount.requests)),
        _cost(face, upstream, _request(face, upstream, AGENT, [known[face].agent] * amount.agents)),
        _cost(face, upstream, _answer(face, upstream, known, amount.answers)),
        _cost(face, upstream, _stream(face, upstream, known, amount.events)),
    ]


def _canonical(face: str, body: bytes) -> pb.GenerateRequest:
    read: FaceRequest = FORMATS[face].decode_request(body, {})
    if FORMATS[face].model_in_path:
        read.canonical.model = OURS
    return read.canonical


def _request(face: str, upstream: str, name: str, bodies: list[bytes]) -> _Work[pb.GenerateRequest]:
    encode = FORMATS[upstream].encode_request
    return _Work(
        name,
        bodies,
        lambda body: _canonical(face, body),
        lambda request: encode(request, THEIRS, False).body,
        batch=1 if name == AGENT else BATCH,
        shown=[QUESTION if name == SMALL else DONE] * len(bodies),
    )


def _answer(face: str, upstream: str, known: dict[str, Samples], count: int) -> _Work[pb.GenerateResponse]:
    request, passes = _canonical(face, known[face].small), face == upstream
    decode, encode = FORMATS[upstream].decode_response, FORMATS[face].encode_response
    return _Work(
        ANSWER,
        [known[upstream].answer] * count,
        lambda body: decode(body, request, passes),
        lambda response: encode(response, request),
        batch=BATCH,
        shown=[REPLY] * count,
    )


def _stream(
    face: str, upstream: str, known: dict[str, Samples], count: int
) -> _Work[pb.StreamGenerateResponse | None]:
    """Its deltas, each in a read of its own, in the middle of a stream."""
    request, stream = _canonical(face, known[face].small), known[upstream].stream(count)
    decoder, encoder = FORMATS[upstream].stream_decoder(request, face == upstream), FORMATS[face].stream_encoder(request)

    def encode(message: pb.StreamGenerateResponse | None) -> bytes:
        return b"" if message is None else encoder.feed(message)

    # What begins an answer, and a part of it, is not what a delta costs.
    encode(decoder.feed(stream.opening + stream.deltas[0]))
    return _Work(EVENT, stream.deltas[1:], decoder.feed, encode, batch=BATCH, shown=words(count)[1:])


def _cost(face: str, upstream: str, work: _Work[T]) -> Cost:
    decode, encode, clock = work.decode, work.encode, time.thread_time_ns
    decoding = encoding = 0
    made = list[bytes]()
    for start in range(0, len(work.given), work.batch):
        batch = work.given[start : start + work.batch]
        begun = clock()
        decoded = [decode(each) for each in batch]
        between = clock()
        made += [encode(each) for each in decoded]
        decoding, encoding = decoding + between - begun, encoding + clock() - between
    for shown, each in zip(work.shown, made, strict=True):
        if msgspec.json.encode(shown)[1:-1] not in each:
            raise BenchError(f"{face} <- {upstream}, {work.name}: {shown!r} is not in {each[:500]!r}")
    return Cost(face, upstream, work.name, decoding / len(made) / 1000, encoding / len(made) / 1000)


def rounds(count: int, amount: Amount, tell: Callable[[str], None]) -> Iterator[list[Cost]]:
    """The costs of all pairs, pair by pair and round by round, so that a drift falls on all. Raises BenchError."""
    for number in range(1, count + 1):
        tell(f"round {number} of {count}: translate")
        for face, upstream in pairs():
            yield translate(face, upstream, amount)
