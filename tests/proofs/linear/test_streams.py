"""Streams and whole responses are encoded, decoded and aggregated in linear time, in every text format."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial

import pytest

from tests.proofs.linear.cost import Work, line_growth, time_growth
from tests.proofs.linear.events import GROWTHS, EventGrowth
from tests.proofs.linear.work import accepting, aggregate_frames, break_off, decode, encode, gather, nothing
from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire import TEXT_FACES, TEXT_FORMATS
from umg_grpc.wire.core.response_to_events import response_to_events
from umg_grpc.wire.text_format_interface import TextFace, TextFormat

REQUEST = pb.GenerateRequest(model="m", face_hints=pb.FaceHints(include_usage=True))
Operation = Callable[[TextFormat, EventGrowth, int], Work]


@lru_cache(maxsize=8)  # the operations of a case use the same streams
def _messages(growth: EventGrowth, size: int) -> Sequence[pb.StreamGenerateResponse]:
    return growth.messages(size, apart=False)


def encoding(codec: TextFace, growth: EventGrowth, size: int) -> Work:
    messages = _messages(growth, size)
    return accepting(lambda: encode(codec.stream_encoder, REQUEST, messages))


def encoding_apart(codec: TextFormat, growth: EventGrowth, size: int) -> Work:
    messages = growth.messages(size, apart=True)
    return accepting(lambda: encode(codec.array_encoder or codec.stream_encoder, REQUEST, messages))


@lru_cache(maxsize=8)
def _frames(codec: TextFormat, growth: EventGrowth, size: int) -> bytes:
    return encode(codec.stream_encoder, REQUEST, _messages(growth, size))


@lru_cache(maxsize=8)
def _answer(growth: EventGrowth, size: int) -> pb.GenerateResponse:
    return gather(_messages(growth, size))


@lru_cache(maxsize=8)
def _body(codec: TextFormat, growth: EventGrowth, size: int) -> bytes:
    return codec.encode_response(_answer(growth, size), REQUEST)


def translating(codec: TextFormat, growth: EventGrowth, size: int) -> Work:
    frames = _frames(codec, growth, size)
    return accepting(lambda: decode(codec, REQUEST, frames, pass_=False))


def passing(codec: TextFormat, growth: EventGrowth, size: int) -> Work:
    frames = _frames(codec, growth, size)
    return accepting(lambda: decode(codec, REQUEST, frames, pass_=True))


def decoding_pieces(codec: TextFormat, growth: EventGrowth, size: int) -> Work:
    frames = _frames(codec, growth, size)
    return accepting(lambda: [decode(codec, REQUEST, frames, pass_=pass_, step=200) for pass_ in (False, True)])


def gathering(codec: TextFormat, growth: EventGrowth, size: int) -> Work:
    frames = _frames(codec, growth, size)
    return lambda: aggregate_frames(codec, REQUEST, frames)


def breaking_off(codec: TextFormat, growth: EventGrowth, size: int) -> Work:
    frames = _frames(codec, growth, size)
    return lambda: break_off(codec, REQUEST, frames)


def answering(codec: TextFace, growth: EventGrowth, size: int) -> Work:
    answer = _answer(growth, size)
    return accepting(lambda: codec.encode_response(answer, REQUEST))


def reading(codec: TextFormat, growth: EventGrowth, size: int) -> Work:
    body = _body(codec, growth, size)
    return accepting(lambda: [codec.decode_response(body, REQUEST, pass_) for pass_ in (False, True)])


def replaying(codec: TextFormat, growth: EventGrowth, size: int) -> Work:
    try:
        answer = codec.decode_response(_body(codec, growth, size), REQUEST, False)
    except UmgError:
        return nothing
    return lambda: gather([response_to_events(answer)])


OPERATIONS: tuple[Operation, ...] = (
    encoding, encoding_apart, translating, passing, decoding_pieces, gathering, breaking_off, answering, reading, replaying,
)  # fmt: skip


@dataclass(frozen=True)
class Case:
    codec: TextFormat
    growth: EventGrowth

    @property
    def id(self) -> str:
        return f"{self.codec.name}: {self.growth.id}"


CASES = [Case(codec, growth) for codec in TEXT_FORMATS.values() for growth in GROWTHS]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_an_answer_takes_lines_of_python_in_proportion_to_its_size(case: Case) -> None:
    for operation in OPERATIONS:
        assert not line_growth(partial(operation, case.codec, case.growth), 24), operation.__name__


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_an_answer_takes_time_in_proportion_to_its_size(case: Case) -> None:
    for operation in OPERATIONS:
        assert not time_growth(partial(operation, case.codec, case.growth), 64), operation.__name__


ALONE = [name for name in TEXT_FACES if name not in TEXT_FORMATS]
"""Formats that only callers have."""


@pytest.mark.parametrize("growth", GROWTHS, ids=lambda growth: growth.id)
@pytest.mark.parametrize("name", ALONE)
def test_an_answer_in_a_format_of_callers_alone_takes_lines_and_time_in_proportion(
    name: str, growth: EventGrowth
) -> None:
    for operation in (encoding, answering):
        assert not line_growth(partial(operation, TEXT_FACES[name], growth), 24), operation.__name__
        assert not time_growth(partial(operation, TEXT_FACES[name], growth), 64), operation.__name__
