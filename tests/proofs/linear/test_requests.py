"""Requests are decoded and encoded in linear time, in every text format."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial

import pytest

from tests.proofs.linear.cost import Making, Work, line_growth, time_growth
from tests.proofs.linear.requests import GROWTHS, RequestGrowth
from tests.proofs.linear.work import MODEL, accepting, nothing
from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire import FORMATS
from umg_grpc.wire.text_format import TextFormat

Operation = Callable[[TextFormat, RequestGrowth, int], Work]


@lru_cache(maxsize=8)  # the operations of a case use the same requests
def _request(growth: RequestGrowth, size: int) -> pb.GenerateRequest:
    return growth.request(size)


@lru_cache(maxsize=8)
def _body(codec: TextFormat, growth: RequestGrowth, size: int) -> bytes:
    return codec.encode_request(_request(growth, size), MODEL, False).body


def _encoding(codec: TextFormat, request: pb.GenerateRequest) -> Work:
    def call() -> None:
        codec.encode_request(request, MODEL, False).report.header()

    return accepting(call)


def encoding(codec: TextFormat, growth: RequestGrowth, size: int) -> Work:
    return _encoding(codec, _request(growth, size))


def decoding(codec: TextFormat, growth: RequestGrowth, size: int) -> Work:
    body = _body(codec, growth, size)
    return accepting(lambda: codec.decode_request(body, {}))


def counting(codec: TextFormat, growth: RequestGrowth, size: int) -> Work:
    body = _body(codec, growth, size)
    decode_count = codec.decode_count
    return nothing if decode_count is None else accepting(lambda: decode_count(body, {}))


def unknown(codec: TextFormat, growth: RequestGrowth, size: int) -> Work:
    body = _body(codec, growth, size)
    unknown_fields = codec.unknown_fields
    return nothing if unknown_fields is None else lambda: unknown_fields(body)


def passing(codec: TextFormat, growth: RequestGrowth, size: int) -> Work:
    try:
        came = codec.decode_request(_body(codec, growth, size), {}).canonical
    except UmgError:
        return nothing
    came.model = MODEL
    return _encoding(codec, came)


@dataclass(frozen=True)
class Case:
    codec: TextFormat
    growth: RequestGrowth

    @property
    def id(self) -> str:
        return f"{self.codec.name}: {self.growth.id}"

    def making(self, operation: Operation) -> Making:
        return partial(operation, self.codec, self.growth)


CASES = [Case(codec, growth) for codec in FORMATS.values() for growth in GROWTHS]
OPERATIONS: tuple[Operation, ...] = (encoding, decoding, counting, unknown, passing)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_request_takes_lines_of_python_in_proportion_to_its_size(case: Case) -> None:
    for operation in OPERATIONS:
        assert not line_growth(case.making(operation), 24), operation.__name__


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_request_takes_time_in_proportion_to_its_size(case: Case) -> None:
    for operation in OPERATIONS:
        assert not time_growth(case.making(operation), case.growth.size), operation.__name__
