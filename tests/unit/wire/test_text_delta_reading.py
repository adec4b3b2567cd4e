"""Frames whose text is cut out: the events are those of the frames decoded one by one, however they are read."""

import itertools
import json
from collections.abc import Sequence

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.chat.stream_decoder import TranslatingDecoder
from umg_grpc.wire.core.stream_decoder import EventDecoder
from umg_grpc.wire.core.text_delta_reading import TextDeltaFrames
from umg_grpc.wire.messages.stream_decoder import TranslatingDecoder as MessagesDecoder

ODD = (
    {"delta": {"reasoning_content": "hm"}},
    {"delta": {"content": ""}},
    {"delta": {"content": "with likelihoods"}, "logprobs": {"content": [{"token": "w", "logprob": -1.0}]}},
    {"delta": {"tool_calls": [{"index": 0, "id": "c", "function": {"name": "f", "arguments": "{}"}}]}},
    {"delta": {"content": "of the other"}, "index": 1},
    {"delta": {"content": None}},
)
texts = st.text(st.characters(exclude_categories=[])) | st.sampled_from(
    ['"', "\\", "\\\\", 'a"}', "\n\n", "chunk", "null"]
)
OTHERS_TURN = [{"delta": {"content": text}, "index": index} for text, index in (("a", 1), ("m", 1), ("b", 0), ("c", 1))]
"""The second delta of the other candidate cannot be learned, since its text is in the frame twice."""
deltas = st.tuples(st.sampled_from(["content", "reasoning_content"]), texts | st.sampled_from(["m", "stop", "0"]))
continued = st.tuples(deltas, st.integers(0, 1)).map(lambda it: {"delta": {it[0][0]: it[0][1]}, "index": it[1]})
pieces = st.lists(continued | texts.map(lambda text: {"delta": {"content": text}}) | st.sampled_from(ODD), max_size=12)


def frame(choice: object, line_end: str, *, ascii_only: bool, padding: str | None) -> bytes:
    chunk = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "model": "m"}
    chosen = {"index": 0, "finish_reason": None, **choice} if isinstance(choice, dict) else choice
    body: dict[str, object] = {**chunk, "choices": [chosen]}
    if padding is not None:
        body["obfuscation"] = padding
    data = json.dumps(body, ensure_ascii=ascii_only, separators=(",", ":"))
    return f"data: {data}{line_end}{line_end}".encode("utf-8", "surrogatepass")


def events_of(
    reads: Sequence[bytes],
    decoders: type[EventDecoder] = TranslatingDecoder,
    *,
    lessons: int | None = None,
    candidates: int = 1,
) -> list[pb.GenerateEvent | str]:
    """Return the events of a stream, and the reason of an error behind them. `lessons`: frames that may be learned."""
    decoder, found = decoders(pb.GenerateRequest(model="m", candidate_count=candidates)), list[pb.GenerateEvent | str]()
    if lessons is not None:
        decoder._lessons = lessons
    try:
        for read in reads:
            if (message := decoder.feed(read)) is not None:
                found += message.events
        if (message := decoder.close()) is not None:
            found += message.events
    except UmgError as error:
        found.append(error.name)
    return found


def cut(stream: bytes, cuts: Sequence[int]) -> list[bytes]:
    """Return the stream in reads that end at some places."""
    places = sorted({0, len(stream), *(place % len(stream) for place in cuts)})
    return [stream[start:end] for start, end in itertools.pairwise(places)]


@given(
    pieces,
    st.lists(st.integers(0, 4000), max_size=6),
    st.sampled_from(["\n", "\r\n"]),
    st.booleans(),
    st.none() | st.text("abc", max_size=5),
    st.integers(1, 2),
)
@example(choices=OTHERS_TURN, cuts=[], line_end="\n", ascii_only=True, padding=None, candidates=2)
def test_the_events_are_those_of_frames_decoded_one_by_one(
    choices: list[object], cuts: list[int], line_end: str, ascii_only: bool, padding: str | None, candidates: int
) -> None:
    opening = [{"delta": {"role": "assistant", "content": "one"}}, *({"delta": {"content": "two"}} for _ in range(3))]
    ending = [{"delta": {}, "finish_reason": "stop"}]
    frames = [frame(each, line_end, ascii_only=ascii_only, padding=padding) for each in (*opening, *choices, *ending)]
    stream = b"".join((*frames, f"data: [DONE]{line_end}{line_end}".encode()))
    reads = cut(stream, cuts)
    assert events_of(reads, candidates=candidates) == events_of(reads, lessons=0, candidates=candidates)


BLOCKS = (
    {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_stop", "index": 0},
    {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "of the other"}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "citations_delta", "citation": {"type": "other"}}},
    {"type": "ping"},
)
TEXT = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}


def added(text: str) -> dict[str, object]:
    return {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}


def named(event: dict[str, object], line_end: str, *, ascii_only: bool) -> bytes:
    data = json.dumps(event, ensure_ascii=ascii_only, separators=(",", ":"))
    return f"event: {event['type']}{line_end}data: {data}{line_end}{line_end}".encode("utf-8", "surrogatepass")


@given(
    st.lists(texts.map(added) | st.sampled_from(BLOCKS), max_size=12),
    st.lists(st.integers(0, 4000), max_size=6),
    st.sampled_from(["\n", "\r\n"]),
    st.booleans(),
)
def test_events_of_messages_are_those_of_frames_decoded_one_by_one(
    events: list[dict[str, object]], cuts: list[int], line_end: str, ascii_only: bool
) -> None:
    begin: dict[str, object] = {"type": "message_start", "message": {"id": "msg_1", "model": "m"}}
    end: list[dict[str, object]] = [
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
        {"type": "message_stop"},
    ]
    stream = [begin, TEXT, *map(added, ("one", "two", "three")), *events, *end]
    frames = [named(each, line_end, ascii_only=ascii_only) for each in stream]
    reads = [*frames[:3], *cut(b"".join(frames[3:]), cuts)]
    assert events_of(reads, MessagesDecoder) == events_of(reads, MessagesDecoder, lessons=0)


def test_the_text_of_many_frames_is_cut_out() -> None:
    frames = [
        frame({"delta": {"content": f" {number}"}}, "\n", ascii_only=True, padding="x" * number) for number in range(9)
    ]
    decoder = TranslatingDecoder(pb.GenerateRequest(model="m"))
    decoder.feed(frames[0] + frames[1])
    assert decoder._text_frames is not None
    assert decoder._text_frames.texts(b"".join(frames[2:]) + b": beat\n\n", 0) == (
        [f" {number}" for number in range(2, 9)],
        len(b"".join(frames[2:])),
    )


@pytest.mark.parametrize(
    ("learned", "text"),
    [
        ('data: {"id":"a","delta":"\\u0061"}\n\n', "a"),  # the text is written in another way than elsewhere
        ('data: {"id":"a","delta":"a"}\n\n', "a"),  # twice
        ('data: {"delta":"a"}\n', "a"),  # no whole frame
    ],
)
def test_a_frame_is_not_learned_if_the_place_of_its_text_is_not_certain(learned: str, text: str) -> None:
    def read(changed: bytes) -> str | None:
        delta: str = json.loads(changed.removeprefix(b"data: "))["delta"]
        return delta

    assert TextDeltaFrames.learn(learned.encode(), text, read) is None
