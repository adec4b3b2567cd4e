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
from umg_grpc.wire import TEXT_UPSTREAMS
from umg_grpc.wire.text_format_interface import TextFormat, TextProviderFormat

Operation = Callable[[TextFormat, RequestGrowth, int], Work]


@lru_cache(maxsize=8)  # the operations of a case use the same requests
def _request(growth: RequestGrowth, size: int) -> pb.GenerateRequest:
    return growth.request(size)


@lru_cache(maxsize=8)
def _body(codec: TextFormat, growth: RequestGrowth, size: int) -> bytes:
    return codec.encode_request(_request(growth, size), MODEL, False).body


def _encoding(codec: TextProviderFormat, request: pb.GenerateRequest) -> Work:
    def call() -> None:
        codec.encode_request(request, MODEL, False).report.header()

    return accepting(call)


def encoding(codec: TextProviderFormat, growth: RequestGrowth, size: int) -> Work:
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
    codec: TextProviderFormat
    growth: RequestGrowth

    @property
    def id(self) -> str:
        return f"{self.codec.name}: {self.growth.id}"

    def operations(self) -> list[tuple[str, Making]]:
        """Return the operations of the format, by name: of a provider's own format, the encoding alone."""
        made: list[tuple[str, Making]] = [("encoding", partial(encoding, self.codec, self.growth))]
        if isinstance(self.codec, TextFormat):
            made += [(each.__name__, partial(each, self.codec, self.growth)) for each in OPERATIONS]
        return made


OPERATIONS: tuple[Operation, ...] = (decoding, counting, unknown, passing)
CASES = [Case(codec, growth) for codec in TEXT_UPSTREAMS.values() for growth in GROWTHS]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_request_takes_lines_of_python_in_proportion_to_its_size(case: Case) -> None:
    for name, making in case.operations():
        assert not line_growth(making, 24), name


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_request_takes_time_in_proportion_to_its_size(case: Case) -> None:
    for name, making in case.operations():
        assert not time_growth(making, case.growth.size), name
