"""Server-sent events: lines end in LF, CR and CRLF and nothing else, and bytes may be cut anywhere."""

from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.core.sse import SseEvent, SseSplitter, frame, split


@dataclass(frozen=True)
class Case:
    id: str
    stream: bytes
    events: list[tuple[bytes, bytes | None]]


CASES = [
    Case("one event", b"data: a\n\n", [(b"", b"a")]),
    Case("no space behind the colon", b"data:a\n\n", [(b"", b"a")]),
    Case("only one space is removed", b"data:  a\n\n", [(b"", b" a")]),
    Case("several lines of data", b"data: a\ndata: b\n\n", [(b"", b"a\nb")]),
    Case("an empty line of data", b"data\ndata: b\n\n", [(b"", b"\nb")]),
    Case("a name", b"event: x\ndata: a\n\n", [(b"x", b"a")]),
    Case("a comment", b": PROCESSING\n\ndata: a\n\n", [(b"", None), (b"", b"a")]),
    Case("a comment within", b": x\ndata: a\n: y\n\n", [(b"", b"a")]),
    Case("a name without data", b"event: ping\n\n", [(b"ping", None)]),
    Case("CRLF", b"event: x\r\ndata: a\r\n\r\ndata: b\r\n\r\n", [(b"x", b"a"), (b"", b"b")]),
    Case("CR", b"data: a\r\rdata: b\r\r", [(b"", b"a"), (b"", b"b")]),
    Case("separators of Unicode are no line ends", "data: a\u2028b\u2029c\u0085d\x0be\x0cf\n\n".encode(), [(b"", "a\u2028b\u2029c\u0085d\x0be\x0cf".encode())]),
    Case("bare blank lines", b"\n\n\n\ndata: a\n\n", [(b"", None), (b"", None), (b"", b"a")]),
    Case("the last event without its blank line", b"data: a\n\ndata: b", [(b"", b"a"), (b"", b"b")]),
    Case("the last event with half of its blank line", b"data: a\r\n\r\ndata: b\r\n", [(b"", b"a"), (b"", b"b")]),
    Case("nothing", b"", []),
    Case("a byte order mark", b"\xef\xbb\xbfdata: a\n\n", [(b"", b"a")]),
    Case("half a byte order mark", b"\xef\xbbdata: a\n\n", [(b"", None)]),
    Case("empty data", b"data:\n\ndata: \n\ndata: a\n\n", [(b"", None), (b"", None), (b"", b"a")]),
    Case("a character of four bytes", "data: \U0001f600\n\n".encode(), [(b"", "\U0001f600".encode())]),
]  # fmt: skip


def read(pieces: list[bytes]) -> list[SseEvent]:
    splitter = SseSplitter()
    events = [event for piece in pieces for event in split(splitter.whole(piece))]
    return events + list(split(splitter.rest()))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_events_are_decoded_with_every_line_ending(case: Case) -> None:
    assert [(event.name, event.data) for event in read([case.stream])] == case.events


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_events_with_data_are_the_same_byte_by_byte_and_cut_in_two_anywhere(case: Case) -> None:
    expected = [event for event in case.events if event[1] is not None]
    cuts = [[case.stream[:at], case.stream[at:]] for at in range(len(case.stream) + 1)]
    for pieces in [*cuts, [case.stream[at : at + 1] for at in range(len(case.stream))]]:
        assert [(event.name, event.data) for event in read(pieces) if event.data is not None] == expected


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.sampled_from([b"data: a", b"event: x", b": c", b"\n", b"\r", b"\r\n", b"data"]), max_size=30), st.data()
)
def test_whole_frames_are_the_stream_to_the_byte(lines: list[bytes], data: st.DataObject) -> None:
    stream = b"".join(lines)
    cut = data.draw(st.integers(0, len(stream)))
    splitter = SseSplitter()
    frames = splitter.whole(stream[:cut]) + splitter.whole(stream[cut:])
    assert stream.startswith(frames)
    assert b"".join(event.raw for event in split(frames)) == frames


def test_an_endless_event_is_refused() -> None:
    splitter = SseSplitter(limit=1 << 20)
    splitter.whole(b"data: " + b"x" * ((1 << 20) - 10))
    with pytest.raises(UmgError, match="larger than 1 MiB; request less in one call") as caught:
        splitter.whole(b"x" * 10)
    assert caught.value.reason == pb.ERROR_REASON_UPSTREAM_FAILED


def test_a_frame_is_one_event() -> None:
    assert list(split(frame(b'{"a":1}'))) == [SseEvent(b"", b'{"a":1}', b'data: {"a":1}\n\n')]
