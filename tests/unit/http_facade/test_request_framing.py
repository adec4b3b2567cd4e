"""Position within the requests of a connection, however their bytes are cut."""

from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from http_facade.server.request_framing import RequestFraming, split_request

GET = b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n"
SIZED = b"POST / HTTP/1.1\r\nContent-Length:  7 \r\nhost: x\r\n\r\n{\r\n\r\n}\n"
CHUNKED = b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n7;x=y\r\n\r\n0\r\n\r\n\r\nA\r\n0123456789\r\n0\r\n\r\n"
TRAILERS = CHUNKED[:-2] + b"x-sum: 1\r\ny: 0\r\n\r\n"
UPGRADE = b"GET / HTTP/1.1\r\nupgrade: h2c\r\nconnection: upgrade\r\n\r\n"


@dataclass(frozen=True)
class Received:
    id: str
    data: bytes
    begun: int  # requests whose headers are complete
    between: bool = False
    in_headers: bool = False


RECEIVED = [
    Received("nothing", b"", 0, between=True),
    Received("a request without a body", GET, 1, between=True),
    Received("a body of a given size", SIZED, 1, between=True),
    Received("a length after many zeros", SIZED.replace(b"7", b"0" * 30 + b"7"), 1, between=True),
    Received("a body in chunks", CHUNKED, 1, between=True),
    Received("a body in chunks with trailers", TRAILERS, 1, between=True),
    Received("several requests", GET + CHUNKED + SIZED + TRAILERS + GET, 5, between=True),
    Received("empty lines before a request", b"\r\n\r\n" + GET, 1, between=True),
    Received("empty lines alone", GET + b"\r\n\r\n", 1, between=True),
    Received("a part of headers", b"GET / HTTP/1.1\r\nhost", 0, in_headers=True),
    Received("a part of headers behind a body", SIZED + b"G", 1, in_headers=True),
    Received("a part of headers behind chunks", CHUNKED + b"GET / HTTP/1.1\r\n", 1, in_headers=True),
    Received("headers but for their last byte", GET[:-1], 0, in_headers=True),
    Received("a body but for its last byte", SIZED[:-1], 1),
    Received("chunks but for their last byte", CHUNKED[:-1], 1),
    Received("a chunk but for its end", CHUNKED[:-10], 1),
    Received("the size of a chunk", CHUNKED[:-22], 1),
    Received("another protocol", UPGRADE + GET, 1),
    Received("a tunnel", b"CONNECT x:1 HTTP/1.1\r\nhost: x\r\n\r\n" + GET, 1),
    Received("a length that is none", GET[:-2] + b"content-length: x\r\n\r\n" + GET, 1),
    Received("a chunk size that is none", CHUNKED.replace(b"A\r\n", b"Z\r\n") + GET, 1),
]


@pytest.mark.parametrize("case", RECEIVED, ids=lambda case: case.id)
@given(cuts=st.data())
@settings(deadline=None)
def test_the_position_is_right_however_the_bytes_are_split(case: Received, cuts: st.DataObject) -> None:
    places = sorted(cuts.draw(st.sets(st.integers(0, len(case.data)), max_size=9)))
    framing = RequestFraming()
    pieces = (case.data[start:end] for start, end in zip([0, *places], [*places, len(case.data)], strict=True))
    assert sum(framing.feed(piece) for piece in pieces) == case.begun
    assert (framing.is_between_requests, framing.is_in_headers) == (case.between, case.in_headers)


@pytest.mark.parametrize("case", RECEIVED, ids=lambda case: case.id)
def test_the_position_is_right_for_single_bytes(case: Received) -> None:
    framing = RequestFraming()
    assert sum(framing.feed(bytes([byte])) for byte in case.data) == case.begun
    assert (framing.is_between_requests, framing.is_in_headers) == (case.between, case.in_headers)


POST = b"POST / HTTP/1.1\r\nhost: x\r\nContent-Length: 2\r\nx-a: b\r\n\r\n"
WITHOUT_BODY = POST.replace(b"Length: 2", b"Length: 0")
LEFT_TO_THE_PARSER = {
    "a body but for its last byte": POST + b"{",
    "bytes after the body": POST + b"{}G",
    "headers but for their end": POST[:-2],
    "no body": WITHOUT_BODY,
    "another method": GET,
    "an empty line before it": b"\r\n" + POST + b"{}",
    "chunks": POST.replace(b"x-a: b", b"transfer-encoding: chunked") + b"{}",
    "a change of the protocol": POST.replace(b"x-a: b", b"Upgrade: h2c") + b"{}",
    "a wait for 100 Continue": POST.replace(b"x-a: b", b"Expect: 100-continue") + b"{}",
    "a length that is none": POST.replace(b": 2", b": +2") + b"{}",
    "a length with a control character": POST.replace(b": 2", b": \x0b2") + b"{}",
    "a length with too many digits": POST.replace(b": 2", b": " + b"2" * 5000) + b"{}",
}


def test_a_whole_post_request_is_split_into_its_headers_and_its_body() -> None:
    assert split_request(POST + b"{}") == (WITHOUT_BODY, b"{}")


def test_a_length_may_begin_with_many_zeros() -> None:
    assert split_request(POST.replace(b": 2", b": " + b"0" * 5000 + b"2") + b"{}") == (WITHOUT_BODY, b"{}")


@pytest.mark.parametrize("data", LEFT_TO_THE_PARSER.values(), ids=LEFT_TO_THE_PARSER)
def test_other_bytes_are_left_to_the_parser(data: bytes) -> None:
    assert split_request(data) is None


@pytest.mark.parametrize("extra", [b"content-length: 2\r\n", b" 2\r\n"], ids=["a second length", "a folded line"])
def test_headers_that_the_parser_rejects_are_not_repaired(extra: bytes) -> None:
    at = POST.index(b"x-a")
    head, _ = split_request(POST[:at] + extra + POST[at:] + b"{}") or (b"", b"")
    assert head == WITHOUT_BODY[:at] + extra + WITHOUT_BODY[at:]
