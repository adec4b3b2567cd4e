"""Cost of the codecs alone, in this process and on one core, for each pair of a caller's and a provider's format.

A figure is the processor time of this thread, which other programs affect little.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

import msgspec

from bench.codec_samples import DONE, OURS, QUESTION, REPLY, THEIRS, ProviderSamples, samples, words
from bench.converse_samples import converse_samples
from bench.processes import BenchError
from umg_grpc.v1 import pb
from umg_grpc.wire import TEXT_FORMATS, TEXT_UPSTREAMS

NAME = "translate"
"""Name of the benchmark in the list of scenarios."""
REQUEST, AGENT, ANSWER, EVENT = "request", "agent's request", "answer", "stream event"
WORKS = (REQUEST, AGENT, ANSWER, EVENT)
PAIRS = tuple((face, upstream) for face in TEXT_FORMATS for upstream in TEXT_UPSTREAMS)
BATCH = 16
"""Number of bodies that are decoded, then encoded, between two readings of the clock."""

T = TypeVar("T")


@dataclass(frozen=True)
class Amount:
    """Number of translations of each pair of formats in a round."""

    requests: int
    agents: int
    answers: int
    events: int


FULL = Amount(requests=320, agents=3, answers=320, events=1600)
QUICK = Amount(requests=2, agents=1, answers=2, events=20)


class Cost(NamedTuple):
    """Cost of one kind of translation between two formats in one round, in microseconds per unit."""

    face: str
    upstream: str
    work: str
    decode: float
    encode: float


@dataclass(frozen=True)
class Work(Generic[T]):
    """Bodies to be translated between two formats, and the expected output."""

    name: str
    inputs: Sequence[bytes]
    decode: Callable[[bytes], T]
    encode: Callable[[T], bytes]
    expected: Sequence[str]
    """Text that each output must contain."""
    batch: int = BATCH


def rounds(count: int, amount: Amount, progress: Callable[[str], None]) -> Iterator[list[Cost]]:
    """Yield the costs of all pairs of formats, pair by pair and round by round, so that a drift of the machine affects
    all pairs.

    Raises BenchError on an output without the expected text.
    """
    known, sent = samples(), provider_samples()
    for number in range(1, count + 1):
        progress(f"round {number} of {count}: {NAME}")
        for face, upstream in PAIRS:
            yield [
                measured(face, upstream, _request(face, upstream, REQUEST, [known[face].small] * amount.requests)),
                measured(face, upstream, _request(face, upstream, AGENT, [known[face].agent] * amount.agents)),
                measured(face, upstream, _answer(face, upstream, known[face].small, sent[upstream], amount.answers)),
                measured(face, upstream, _stream(face, upstream, known[face].small, sent[upstream], amount.events)),
            ]


def provider_samples() -> dict[str, ProviderSamples]:
    """Return the samples of the providers of each format, by its name."""
    return {**samples(), "converse": converse_samples()}


def measured(face: str, upstream: str, work: Work[T]) -> Cost:
    """Return the cost of a translation. Raises BenchError on an output without its expected text."""
    decode, encode, clock = work.decode, work.encode, time.thread_time_ns
    decoding = encoding = 0
    made = list[bytes]()
    for start in range(0, len(work.inputs), work.batch):
        batch = work.inputs[start : start + work.batch]
        begun = clock()
        decoded = [decode(each) for each in batch]
        between = clock()
        made += [encode(each) for each in decoded]
        decoding, encoding = decoding + between - begun, encoding + clock() - between
    for text, each in zip(work.expected, made, strict=True):
        if msgspec.json.encode(text)[1:-1] not in each:
            raise BenchError(f"{face} <- {upstream}, {work.name}: {text!r} is not in {each[:500]!r}")
    return Cost(face, upstream, work.name, decoding / len(made) / 1000, encoding / len(made) / 1000)


def canonical(face: str, body: bytes) -> pb.GenerateRequest:
    """Return the body of a caller of this format as the canonical request."""
    return TEXT_FORMATS[face].decode_request(body, {}, OURS).canonical


def _request(face: str, upstream: str, name: str, bodies: list[bytes]) -> Work[pb.GenerateRequest]:
    encode = TEXT_UPSTREAMS[upstream].encode_request
    return Work(
        name,
        bodies,
        lambda body: canonical(face, body),
        lambda request: encode(request, THEIRS, False).body,
        expected=[DONE if name == AGENT else QUESTION] * len(bodies),
        batch=1 if name == AGENT else BATCH,
    )


def _answer(face: str, upstream: str, body: bytes, sent: ProviderSamples, count: int) -> Work[pb.GenerateResponse]:
    request = canonical(face, body)
    decode, encode = TEXT_UPSTREAMS[upstream].decode_response, TEXT_FORMATS[face].encode_response
    return Work(
        ANSWER,
        [sent.answer] * count,
        lambda body: decode(body, request, face == upstream),
        lambda response: encode(response, request),
        expected=[REPLY] * count,
    )


def _stream(
    face: str, upstream: str, body: bytes, sent: ProviderSamples, count: int
) -> Work[pb.StreamGenerateResponse | None]:
    """Return the translation of the deltas in the middle of a stream, each in a read of its own."""
    request, stream = canonical(face, body), sent.stream(count + 1)
    same, other = TEXT_FORMATS[face].passthrough_decoder, TEXT_UPSTREAMS[upstream].translating_decoder
    decoder = (same if face == upstream else other)(request)
    encoder = TEXT_FORMATS[face].stream_encoder(request)

    def encode(message: pb.StreamGenerateResponse | None) -> bytes:
        return b"" if message is None else encoder.feed(message)

    # The beginning of the response and of its text does not count as the cost of a delta.
    encode(decoder.feed(stream.opening + stream.deltas[0]))
    return Work(EVENT, stream.deltas[1:], decoder.feed, encode, expected=words(count + 1)[1:])
