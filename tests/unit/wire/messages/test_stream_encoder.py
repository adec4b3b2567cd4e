"""Canonical events -> the events of the face: their order, the numbers of blocks, delayed and interrupted parts."""

from collections.abc import Iterable

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.wire.messages.streams import ANSWERED
from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.messages import MESSAGES_FORMAT

Event = pb.GenerateEvent
Fields = dict[str, object]
STARTED = Event(started=pb.GenerationStarted(response_id="r", model="m"))
TEXT, REASONING = pb.Part(text=pb.TextPart()), pb.Part(reasoning=pb.ReasoningPart())


def called(part: int, name: str, **more: object) -> Event:
    return Event(
        part_index=part,
        part_started=pb.Part(tool_call=pb.ToolCall(call_id=f"c{part}", name=name, arguments_json=""), **more),
    )


def begun(part: int, kind: pb.Part) -> Event:
    return Event(part_index=part, part_started=kind)


def text(part: int, words: str) -> Event:
    return Event(part_index=part, text_delta=words)


def argued(part: int, words: str) -> Event:
    return Event(part_index=part, arguments_delta=words)


def ended(part: int) -> Event:
    return Event(part_index=part, part_ended=pb.PartEnded())


def state(part: int, data: str, maker: str = "native") -> Event:
    return Event(part_index=part, state=pb.ReasoningState(data=data, format=maker))


FINISHED = Event(finished=pb.CandidateFinished(finish_reason=pb.FINISH_REASON_STOP))


def events(messages: Iterable[list[Event]], request: pb.GenerateRequest = ANSWERED) -> list[Fields]:
    """Return the face's events; the name of each frame must be its type."""
    encoder = MESSAGES_FORMAT.stream_encoder(request)
    stream = b"".join(
        [*(encoder.feed(pb.StreamGenerateResponse(events=message)) for message in messages), encoder.close()]
    )
    encoded = list[Fields]()
    for frame in stream.split(b"\n\n")[:-1]:
        name, data = frame.split(b"\ndata: ")
        encoded.append(msgspec.json.decode(data))
        assert name == b"event: " + encoded[-1]["type"].encode()
    return encoded


def blocks(*messages: list[Event]) -> list[tuple[str, str]]:
    """Return (type, content) of each block. Fail unless they are numbered 0, 1, 2, ... and one is open at a time."""
    encoded, is_open = list[tuple[str, str]](), False
    for event in events([[STARTED], *messages])[1:-2]:
        if event["type"] == "content_block_start":
            assert (is_open, event["index"]) == (False, len(encoded))
            block, is_open = event["content_block"], True
            encoded.append((block["type"], block.get("name") or block.get("data") or ""))
        elif event["type"] == "content_block_delta":
            assert (is_open, event["index"]) == (True, len(encoded) - 1)
            delta = {name: value for name, value in event["delta"].items() if name != "type"}
            [value] = delta.values()
            encoded[-1] = (
                encoded[-1][0],
                encoded[-1][1] + (f"|{value['url']}" if "citation" in delta else f"|{value}"),
            )
        else:
            assert (is_open, event["index"]) == (True, len(encoded) - 1)
            is_open = False
    assert not is_open
    return encoded


CITED = Event(part_index=0, citation=pb.Citation(web=pb.WebSource(url="u")))
SEARCHING = pb.Part(server_tool_call=pb.ServerToolCall(name="web_search", call_id="w", status="searching"))
SEARCHED = pb.Part(server_tool_call=pb.ServerToolCall(name="web_search", call_id="w", queries=["q"]))
FOUND = pb.Part(server_tool_result=pb.ServerToolResult(name="web_search", call_id="w"))
CUSTOM = pb.Part(tool_call=pb.ToolCall(call_id="c", name="sh", text=""))

STREAMS = [
    ("text", [begun(0, TEXT), text(0, "a"), text(0, "b"), ended(0)], [("text", "|a|b")]),
    ("text that was never started", [text(0, "a")], []),
    ("an empty text", [begun(0, TEXT), text(0, ""), ended(0)], []),
    ("a text that begins with words", [begun(0, pb.Part(text=pb.TextPart(text="a"))), text(0, "b"), ended(0)], [("text", "|a|b")]),
    ("a source before its text", [begun(0, TEXT), CITED, text(0, "a"), ended(0)], [("text", "|u|a")]),
    ("a source behind its text", [begun(0, TEXT), text(0, "a"), CITED, ended(0)], [("text", "|a|u")]),
    ("a source of an ended text", [begun(0, TEXT), text(0, "a"), called(1, "f"), CITED, ended(1), ended(0)], [("text", "|a"), ("tool_use", "f")]),
    ("a refusal", [begun(0, pb.Part(refusal=pb.RefusalPart())), Event(refusal_delta="no"), ended(0)], [("text", "|no")]),
    ("thoughts", [begun(0, REASONING), Event(reasoning_delta="a"), Event(reasoning_delta="b", text_index=1), ended(0)], [("thinking", "|a|\n\nb|umg.unsigned")]),
    ("signed thoughts", [begun(0, REASONING), Event(reasoning_delta="a"), state(0, "s", "messages"), ended(0)], [("thinking", "|a|s")]),
    ("a signature alone", [begun(0, REASONING), state(0, "s"), ended(0)], [("thinking", "|umg.native.s")]),
    ("no thoughts at all", [begun(0, REASONING), ended(0)], []),
    ("hidden thoughts", [begun(0, pb.Part(reasoning=pb.ReasoningPart(redacted=True))), state(0, "s", "messages"), ended(0)], [("redacted_thinking", "s")]),
    ("summaries", [begun(0, REASONING), Event(summary_delta=pb.SummaryDelta(text="a")), Event(summary_delta=pb.SummaryDelta(text="b", summary_index=1)), ended(0)], [("thinking", "|a|\n\nb|umg.unsigned")]),
    ("summaries beside thoughts", [begun(0, REASONING), Event(reasoning_delta="a"), Event(summary_delta=pb.SummaryDelta(text="b")), ended(0)], [("thinking", "|a|umg.unsigned")]),
    ("a call", [called(0, "f"), argued(0, '{"a"'), argued(0, ":1}"), ended(0)], [("tool_use", 'f|{"a"|:1}')]),
    ("a call without arguments", [called(0, "f"), ended(0)], [("tool_use", "f")]),
    ("calls one after the other, none ended", [called(0, "f"), argued(0, '{"a":1}'), called(1, "g"), argued(1, "{}")], [("tool_use", 'f|{"a":1}'), ("tool_use", "g|{}")]),
    (
        "calls in turns", [called(0, "f"), called(1, "g"), argued(0, '{"a"'), argued(1, "{"), argued(0, ":1}"), argued(1, "}"), ended(0), ended(1)],
        [("tool_use", 'f|{"a"|:1}'), ("tool_use", "g|{|}")],
    ),
    (
        "three calls that end in another order", [called(0, "f"), called(1, "g"), called(2, "h"), argued(2, "{}"), ended(2), argued(1, "{}"), ended(1), argued(0, "{"), argued(0, "}"), ended(0)],
        [("tool_use", "f|{|}"), ("tool_use", "g|{}"), ("tool_use", "h|{}")],
    ),
    ("text between calls that are open", [called(0, "f"), argued(0, "{"), begun(1, TEXT), text(1, "a"), argued(0, "}"), ended(0), ended(1)], [("tool_use", "f|{|}"), ("text", "|a")]),
    ("text that goes on behind a call", [begun(0, TEXT), text(0, "a"), called(1, "f"), text(0, "b"), argued(1, "{}"), ended(1), text(0, "c"), ended(0)], [("text", "|a"), ("tool_use", "f|{}"), ("text", "|b|c")]),
    ("text that stays open beside calls", [begun(0, TEXT), text(0, "a"), called(1, "f"), argued(1, "{}"), called(2, "g"), argued(2, "{}"), ended(0), ended(1), ended(2)], [("text", "|a"), ("tool_use", "f|{}"), ("tool_use", "g|{}")]),
    ("thoughts behind a call", [called(0, "f"), ended(0), begun(1, REASONING), Event(part_index=1, reasoning_delta="a"), ended(1)], [("tool_use", "f"), ("thinking", "|a|umg.unsigned")]),
    ("state that comes with its call", [called(0, "f"), argued(0, "{}"), state(0, "s"), ended(0)], [("redacted_thinking", "umg.native.s"), ("tool_use", "f|{}")]),
    ("state in a call", [called(0, "f", state=pb.ReasoningState(data="s", format="chat")), ended(0)], [("redacted_thinking", "umg.chat.s"), ("tool_use", "f")]),
    ("state of a text", [begun(0, TEXT), text(0, "a"), state(0, "s"), ended(0)], [("text", "|a")]),
    ("arguments that are a list", [called(0, "f"), argued(0, " ["), argued(0, '1, {"a"'), argued(0, ":2}]"), ended(0)], [("tool_use", 'f|{"raw_arguments":" [1, {\\"a\\":2}]"}')]),
    ("arguments that are a text", [called(0, "f"), argued(0, '"{}"'), called(1, "g"), argued(1, "{}"), ended(1), ended(0)], [("tool_use", 'f|{"raw_arguments":"\\"{}\\""}'), ("tool_use", "g|{}")]),
    ("arguments that are never ended", [called(0, "f"), argued(0, "x")], [("tool_use", 'f|{"raw_arguments":"x"}')]),
    ("arguments behind blanks", [called(0, "f"), argued(0, " "), argued(0, "\n {"), argued(0, "}"), ended(0)], [("tool_use", "f| \n {|}")]),
    ("blanks for arguments", [called(0, "f"), argued(0, " "), argued(0, "\n"), ended(0)], [("tool_use", "f")]),
    ("arguments that come with their call", [begun(0, pb.Part(tool_call=pb.ToolCall(call_id="c", name="f", arguments_json="[1]"))), ended(0)], [("tool_use", 'f|{"raw_arguments":"[1]"}')]),
    ("a custom call", [begun(0, CUSTOM), argued(0, 'a"'), argued(0, "\n"), ended(0)], [("tool_use", 'sh|{"input":"a\\"|\\n|"}')]),
    ("an empty custom call", [begun(0, CUSTOM), ended(0)], [("tool_use", 'sh|{"input":""}')]),
    ("a search", [begun(0, SEARCHING), begun(1, TEXT), text(1, "a"), Event(part_updated=SEARCHED), ended(0), ended(1)], [("server_tool_use", 'web_search|{"query":"q"}'), ("text", "|a")]),
    ("a search and what it found", [begun(0, SEARCHED), ended(0), begun(1, FOUND), ended(1)], [("server_tool_use", 'web_search|{"query":"q"}'), ("web_search_tool_result", "")]),
    ("sound", [begun(0, pb.Part(media=pb.MediaPart(kind=pb.MEDIA_KIND_AUDIO))), Event(media_delta=pb.MediaDelta(data=b"ab", transcript="he")), Event(media_delta=pb.MediaDelta(transcript="llo")), ended(0)], [("text", "|hello")]),
    ("an image", [begun(0, pb.Part(media=pb.MediaPart(kind=pb.MEDIA_KIND_IMAGE, data=b"abc", mime_type="image/png"))), ended(0)], [("text", "|[image: 3 bytes of image/png; this format cannot show it]")]),
    ("another answer", [begun(0, TEXT), text(0, "a"), Event(candidate_index=1, text_delta="b"), ended(0)], [("text", "|a")]),
    ("an event of another format", [begun(0, TEXT), text(0, "a"), Event(opaque=pb.OpaquePart(format="x", json="{}")), Event(), ended(0)], [("text", "|a")]),
]  # fmt: skip


@pytest.mark.parametrize(("stream", "encoded"), [case[1:] for case in STREAMS], ids=[case[0] for case in STREAMS])
def test_blocks_are_numbered_and_open_one_at_a_time(stream: list[Event], encoded: list[tuple[str, str]]) -> None:
    assert blocks(stream) == encoded


@pytest.mark.parametrize(
    "stream",
    [case[1] for case in STREAMS if "comes with" not in case[0]],
    ids=[case[0] for case in STREAMS if "comes with" not in case[0]],
)
def test_a_stream_is_decoded_equally_event_by_event(stream: list[Event]) -> None:
    assert blocks(*([event] for event in stream)) == blocks(stream)


steps = st.lists(st.tuples(st.integers(0, 4), st.sampled_from(["a", "}", "end"])), max_size=20)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from(["text", "call", "reasoning"]), min_size=1, max_size=5), steps, st.randoms())
def test_nothing_is_lost_and_no_block_overlaps_however_parts_interleave(
    kinds: list[str], order: list[tuple[int, str]], random: object
) -> None:
    started: dict[str, object] = {
        "text": lambda n: begun(n, TEXT),
        "reasoning": lambda n: begun(n, REASONING),
        "call": lambda n: called(n, f"f{n}"),
    }
    delta = {"text": text, "call": argued, "reasoning": lambda n, words: Event(part_index=n, reasoning_delta=words)}
    stream, open_parts, expected, done = list[Event](), set[int](), dict.fromkeys(range(len(kinds)), ""), set[int]()
    for part, action in order:
        if part >= len(kinds) or part in done or part > len(open_parts | done):
            continue
        if part not in open_parts:
            stream.append(started[kinds[part]](part))
            open_parts.add(part)
        elif action == "end":
            stream.append(ended(part))
            open_parts.remove(part)
            done.add(part)
        else:
            words = action if kinds[part] != "call" else "{" * (not expected[part]) + action
            if kinds[part] == "call" and expected[part].endswith("}"):
                continue  # the arguments are complete: nothing follows
            stream.append(delta[kinds[part]](part, words))
            expected[part] += words
    encoded = blocks(*([event] for event in stream))
    together = {"text": "", "tool_use": "", "thinking": ""}
    for kind, words in encoded:
        together[kind] += words.removesuffix("umg.unsigned").replace("|", "")
    assert sorted(together["text"]) == sorted("".join(expected[n] for n, kind in enumerate(kinds) if kind == "text"))
    assert sorted(together["thinking"]) == sorted(
        "".join(expected[n] for n, kind in enumerate(kinds) if kind == "reasoning")
    )
    calls = [n for n, kind in enumerate(kinds) if kind == "call" and n in open_parts | done]
    assert sorted(together["tool_use"]) == sorted("".join(f"f{n}{expected[n]}" for n in calls))


# --- the events around the blocks


def test_a_stream_begins_and_ends_with_the_events_of_the_format() -> None:
    usage = Event(usage=pb.Usage(input_tokens=9, cache_read_tokens=4, output_tokens=2))
    encoded = events(
        [[STARTED, begun(0, TEXT), text(0, "a"), ended(0), FINISHED], [usage]],
        pb.GenerateRequest(messages=[pb.Message(parts=[pb.Part(text=pb.TextPart(text="x" * 40))])]),
    )
    assert [event["type"] for event in encoded] == [
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]
    message = encoded[0]["message"]
    assert (message["id"], message["model"], message["content"], message["stop_reason"]) == ("r", "m", [], None)
    assert (message["usage"]["input_tokens"], message["usage"]["output_tokens"]) == (10, 1)  # an estimate
    assert encoded[-2]["delta"] == {"stop_reason": "end_turn", "stop_sequence": None, "stop_details": None}
    assert (
        encoded[-2]["usage"]["input_tokens"],
        encoded[-2]["usage"]["cache_read_input_tokens"],
        encoded[-2]["usage"]["output_tokens"],
    ) == (5, 4, 2)


def test_a_count_at_the_start_of_a_stream_is_no_estimate() -> None:
    encoded = events(
        [[STARTED, Event(usage=pb.Usage(input_tokens=7))]],
        pb.GenerateRequest(source=pb.SourceDocument(body=b"x" * 4000)),
    )
    assert encoded[0]["message"]["usage"]["input_tokens"] == 7


@pytest.mark.parametrize(("body", "tokens"), [(b"x" * 4000, 1000), (b"base64" * 4000, 0)])
def test_an_estimate_leaves_media_out(body: bytes, tokens: int) -> None:
    encoded = events([[STARTED]], pb.GenerateRequest(source=pb.SourceDocument(body=body)))
    assert encoded[0]["message"]["usage"]["input_tokens"] == tokens


def test_a_call_overrides_the_finish_reason_also_in_a_later_chunk() -> None:
    encoded = events([[STARTED], [called(0, "f"), ended(0)], [FINISHED]])
    assert encoded[-2]["delta"]["stop_reason"] == "tool_use"


def test_a_stop_sequence_and_a_refusal_are_encoded() -> None:
    finished = pb.CandidateFinished(finish_reason=pb.FINISH_REASON_STOP_SEQUENCE, stop_sequence="END")
    assert events([[STARTED, Event(finished=finished)]])[-2]["delta"]["stop_sequence"] == "END"
    blocked = pb.CandidateFinished(block_reason="SAFETY")
    assert (
        events([[STARTED, Event(finished=blocked)]])[-2]["delta"]["stop_details"]["explanation"]
        == "the prompt was blocked: SAFETY"
    )


def test_a_call_without_an_id_gets_one() -> None:
    call = pb.Part(tool_call=pb.ToolCall(name="f", arguments_json=""))
    encoded = events([[Event(started=pb.GenerationStarted(response_id="resp-1"))], [begun(0, call), ended(0)]])
    assert encoded[1]["content_block"] == {"type": "tool_use", "id": "toolu_resp1_0", "name": "f", "input": {}}


def test_an_answer_without_content_is_complete() -> None:
    assert [event["type"] for event in events([])] == ["message_start", "message_delta", "message_stop"]


def test_the_end_is_sent_once() -> None:
    encoder = MESSAGES_FORMAT.stream_encoder(ANSWERED)
    assert encoder.close()
    assert encoder.close() == encoder.feed(pb.StreamGenerateResponse(events=[STARTED])) == b""


def test_an_error_is_the_last_event() -> None:
    encoder = MESSAGES_FORMAT.stream_encoder(ANSWERED)
    encoder.feed(pb.StreamGenerateResponse(events=[STARTED, begun(0, TEXT), text(0, "a")]))
    error = encoder.error(UmgError(pb.ERROR_REASON_UNAVAILABLE, "the gateway is shutting down"))
    assert error.startswith(
        b'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"the gateway is shutting down"'
    )
    assert encoder.feed(pb.StreamGenerateResponse(events=[text(0, "b")])) == encoder.close() == b""


def test_encoding_does_not_change_the_events() -> None:
    stream = [
        STARTED,
        begun(0, REASONING),
        Event(reasoning_delta="a"),
        state(0, "s"),
        ended(0),
        begun(1, SEARCHING),
        Event(part_index=1, part_updated=SEARCHED),
        ended(1),
    ]
    message = pb.StreamGenerateResponse(events=stream)
    before = message.SerializeToString(deterministic=True)
    MESSAGES_FORMAT.stream_encoder(ANSWERED).feed(message)
    assert message.SerializeToString(deterministic=True) == before
