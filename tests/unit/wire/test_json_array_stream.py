"""Streams that a provider sends as one JSON array: each element is an event, however the bytes are cut."""

from itertools import pairwise

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from umg_grpc.base.errors import UmgError
from umg_grpc.wire.core.json_array_stream import ArrayReader, array_events, is_array

ELEMENTS = [{"a": 'b]}\\" {['}, {"a": [1, {"b": "\\"}]}, {}, {"text": "é\n"}]
STREAM = (
    b"[" + b"\n,\r\n".join(msgspec.json.format(msgspec.json.encode(each), indent=2) for each in ELEMENTS) + b"\n]\n"
)


def elements(frames: bytes) -> list[object]:
    return [msgspec.json.decode(line[6:]) for line in frames.split(b"\n") if line]


@given(st.lists(st.integers(0, len(STREAM)), max_size=12))
def test_the_elements_are_the_same_however_the_bytes_are_cut(cuts: list[int]) -> None:
    reader, places = ArrayReader(), [0, *sorted(cuts), len(STREAM)]
    frames = b"".join(reader.feed(STREAM[begin:end]) for begin, end in pairwise(places))
    assert elements(frames) == ELEMENTS


def test_an_element_is_an_event_as_soon_as_it_is_complete() -> None:
    reader = ArrayReader()
    assert reader.feed(b'[{"a": ') == b""
    assert reader.feed(b"1}") == b'data: {"a":1}\n\n'
    assert reader.feed(b"]") == b""


def test_an_element_that_is_no_json_is_an_error() -> None:
    with pytest.raises(UmgError):
        array_events(b"[{x}]")


@pytest.mark.parametrize(("body", "found"), [(b" [{", True), (b"\xef\xbb\xbf[", True), (b"{}", False), (b"", False)])
def test_an_array_is_recognised_by_its_first_bytes(body: bytes, found: bool) -> None:
    assert is_array(body) is found
