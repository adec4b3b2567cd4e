"""A provider's stream -> canonical events: well-formed streams, and the deviations of providers."""

import msgspec
import pytest

from tests.support.error_checks import raises_error
from tests.unit.wire.accumulate import accumulate
from tests.unit.wire.messages.streams import ANSWERED, decoded
from tests.unit.wire.streams import decoder_of, events_of, kinds
from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.messages import MESSAGES_FORMAT

Fields = dict[str, object]


def frame(kind: str, **fields: object) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (kind.encode(), msgspec.json.encode({"type": kind, **fields}))


def start(**more: object) -> bytes:
    usage = {"input_tokens": 5, "cache_read_input_tokens": 3, "output_tokens": 1, "service_tier": "standard"}
    return frame(
        "message_start",
        message={"id": "r", "type": "message", "role": "assistant", "model": "theirs", "content": [], "usage": usage}
        | more,
    )


def block(index: int, kind: str, *deltas: Fields, **fields: object) -> bytes:
    started = frame("content_block_start", index=index, content_block={"type": kind, **fields})
    encoded_deltas = b"".join(frame("content_block_delta", index=index, delta=delta) for delta in deltas)
    return started + encoded_deltas + frame("content_block_stop", index=index)


def end(reason: str = "end_turn", **usage: int) -> bytes:
    return frame(
        "message_delta", delta={"stop_reason": reason, "stop_sequence": None}, usage={"output_tokens": 7} | usage
    ) + frame("message_stop")


def text_delta(text: str) -> Fields:
    return {"type": "text_delta", "text": text}


def argued(text: str) -> Fields:
    return {"type": "input_json_delta", "partial_json": text}


def parts(*frames: bytes, request: pb.GenerateRequest = ANSWERED) -> list[pb.Part]:
    return list(accumulate(decoded([start() + b"".join(frames) + end()], request)).candidates[0].message.parts)


def call(arguments: str, **more: object) -> pb.Part:
    return pb.Part(tool_call=pb.ToolCall(call_id="t", name="f", arguments_json=arguments, **more))


PAGE = {"type": "web_search_result_location", "url": "u", "title": "T", "cited_text": "c", "encrypted_index": "e"}
USE = {"id": "t", "name": "f", "input": {}}
BLOCKS = [
    ("text", block(0, "text", text_delta("a"), text_delta("b"), text=""), pb.Part(text=pb.TextPart(text="ab"))),
    ("text in the start", block(0, "text", text_delta("b"), text="a"), pb.Part(text=pb.TextPart(text="ab"))),
    (
        "a source before its text", block(0, "text", {"type": "citations_delta", "citation": PAGE}, text_delta("a"), text="", citations=[]),
        pb.Part(text=pb.TextPart(text="a", citations=[pb.Citation(title="T", cited_text="c", web=pb.WebSource(url="u", encrypted_index="e"))])),
    ),
    (
        "thoughts", block(0, "thinking", {"type": "thinking_delta", "thinking": "a"}, {"type": "signature_delta", "signature": "s"}, thinking="", signature=""),
        pb.Part(reasoning=pb.ReasoningPart(texts=["a"]), state=pb.ReasoningState(format="messages", data="s")),
    ),
    ("an unsigned thought", block(0, "thinking", {"type": "thinking_delta", "thinking": "a"}, thinking=""), pb.Part(reasoning=pb.ReasoningPart(texts=["a"]))),
    ("a signature of the start", block(0, "thinking", thinking="", signature="s"), pb.Part(reasoning=pb.ReasoningPart(), state=pb.ReasoningState(format="messages", data="s"))),
    ("the state of a gateway behind us", block(0, "thinking", {"type": "signature_delta", "signature": "umg.native.s"}, thinking=""), pb.Part(reasoning=pb.ReasoningPart(), state=pb.ReasoningState(format="messages", data="umg.native.s"))),
    ("hidden thoughts", block(0, "redacted_thinking", data="d"), pb.Part(reasoning=pb.ReasoningPart(redacted=True), state=pb.ReasoningState(format="messages", data="d"))),
    ("a call", block(0, "tool_use", argued(""), argued('{"a"'), argued(": 1.0}"), **USE), call('{"a": 1.0}')),
    ("a call without deltas", block(0, "tool_use", **USE), call("{}")),
    ("a call whole in its start", block(0, "tool_use", **(USE | {"input": {"a": 1}})), call('{"a":1}')),
    ("a call with an empty delta", block(0, "tool_use", argued(""), **USE), call("{}")),
    ("a start whose input is no prefix", block(0, "tool_use", argued('{"b":2}'), **(USE | {"input": {"a": 1}})), call('{"b":2}')),
    (
        "a search", block(0, "server_tool_use", argued('{"que'), argued('ry":"q"}'), id="srvtoolu_1", name="web_search", input={}),
        pb.Part(server_tool_call=pb.ServerToolCall(call_id="srvtoolu_1", name="web_search", queries=["q"], input_json='{"query":"q"}', format="messages")),
    ),
    (
        "what was found", block(0, "web_search_tool_result", tool_use_id="srvtoolu_1", content=[{"type": "web_search_result", "url": "u", "title": "T", "encrypted_content": "e", "page_age": None}]),
        pb.Part(server_tool_result=pb.ServerToolResult(call_id="srvtoolu_1", name="web_search", results=[pb.SearchResult(url="u", title="T", encrypted_content="e")])),
    ),
    ("an unknown block", block(0, "new", {"type": "text_delta", "text": "a"}, n=1), pb.Part(opaque=pb.OpaquePart(format="messages", type="new", json='{"type":"new","n":1}'))),
]  # fmt: skip


@pytest.mark.parametrize(("frames", "part"), [case[1:] for case in BLOCKS], ids=[case[0] for case in BLOCKS])
def test_a_block_has_its_part(frames: bytes, part: pb.Part) -> None:
    assert parts(frames) == [part]


@pytest.mark.parametrize(("frames", "part"), [case[1:] for case in BLOCKS], ids=[case[0] for case in BLOCKS])
def test_a_block_has_its_part_byte_by_byte(frames: bytes, part: pb.Part) -> None:
    stream = start() + frames + end()
    assert list(
        accumulate(decoded([stream[at : at + 1] for at in range(len(stream))])).candidates[0].message.parts
    ) == [part]


def test_interleaved_blocks_are_kept_apart() -> None:
    opened = [
        frame("content_block_start", index=index, content_block={"type": "tool_use", **USE, "id": f"t{index}"})
        for index in (4, 7)
    ]
    pieces = [
        frame("content_block_delta", index=index, delta=argued(text))
        for index, text in ((4, '{"a"'), (7, "{"), (4, ":1}"), (7, "}"))
    ]
    stops = [frame("content_block_stop", index=index) for index in (7, 4)]
    assert [part.tool_call.arguments_json for part in parts(*opened, *pieces, *stops)] == ['{"a":1}', "{}"]


def test_the_counts_are_totals_of_which_the_last_ones_count() -> None:
    response = accumulate(decoded([start() + end(input_tokens=6)]))
    assert response.usage == pb.Usage(input_tokens=9, cache_read_tokens=3, output_tokens=7)
    assert (response.response_id, response.model, response.service_tier) == ("r", "m", "standard")
    assert kinds(decoded([start() + end()])) == ["started", "usage", "usage", "finished"]


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("end_turn", pb.FINISH_REASON_STOP), ("max_tokens", pb.FINISH_REASON_LENGTH), ("pause_turn", pb.FINISH_REASON_PAUSE), ("tool_use", pb.FINISH_REASON_STOP),
        ("refusal", pb.FINISH_REASON_REFUSAL), ("model_context_window_exceeded", pb.FINISH_REASON_CONTEXT_FULL), ("tired", pb.FINISH_REASON_STOP),
    ],
)  # fmt: skip
def test_a_finish_reason_of_a_response_without_calls_is_decoded(
    reason: str, expected: "pb.FinishReason.ValueType"
) -> None:
    [candidate] = accumulate(decoded([start() + end(reason)])).candidates
    assert (candidate.finish_reason, candidate.provider_reason) == (expected, "tired" if reason == "tired" else "")


def test_calls_have_the_callers_tool_names_and_custom_calls_their_text() -> None:
    request = pb.GenerateRequest(
        model="m",
        tools=[pb.Tool(function=pb.FunctionTool(name="get.it")), pb.Tool(custom=pb.CustomTool(name="sh.ell"))],
    )
    calls = parts(
        block(0, "tool_use", argued("{}"), **(USE | {"name": "get_it"})), block(1, "tool_use", argued('{"inp'), argued('ut":"a\\n"}'), **(USE | {"name": "sh_ell"})),
        block(2, "tool_use", argued('{"cut'), **(USE | {"name": "sh_ell"})), request=request,
    )  # fmt: skip
    assert [(part.tool_call.name, part.tool_call.arguments_json, part.tool_call.text) for part in calls] == [
        ("get.it", "{}", ""), ("sh.ell", "", "a\n"), ("sh.ell", "", '{"cut'),
    ]  # fmt: skip


HEAVY = start() + block(0, "text", text_delta("a")) + end()
ODDITIES = [
    ("heartbeats and comments", start() + b': x\n\nevent: ping\ndata: {"type":"ping"}\n\nevent: ping\n\n' + block(0, "text", text_delta("a"), text="") + end()),
    ("another format's end marker", start() + block(0, "text", text_delta("a"), text="") + end() + b"data: [DONE]\n\n"),
    ("no names of events", (start() + block(0, "text", text_delta("a"), text="") + end()).replace(b"event: content_block_delta\n", b"")),
    ("no stop of the block", start() + block(0, "text", text_delta("a"), text="")[: -len(frame("content_block_stop", index=0))] + end()),
    ("no end marker", (start() + block(0, "text", text_delta("a"), text="") + end())[: -len(frame("message_stop"))]),
    ("no blank line at the end", (start() + block(0, "text", text_delta("a"), text="") + end())[:-2]),
    ("an empty delta of no block", start() + frame("content_block_delta", index=9, delta=text_delta("")) + block(0, "text", text_delta("a"), text="") + end()),
    ("a second start", start() + start(id="other") + block(0, "text", text_delta("a"), text="") + end()),
    ("no usage", start(usage=None) + block(0, "text", text_delta("a"), text="") + frame("message_delta", delta={"stop_reason": "end_turn"}) + frame("message_stop")),
]  # fmt: skip


@pytest.mark.parametrize("stream", [case[1] for case in ODDITIES], ids=[case[0] for case in ODDITIES])
def test_deviating_streams_of_providers_are_read(stream: bytes) -> None:
    response = accumulate(decoded([stream]))
    [candidate] = response.candidates
    assert [part.text.text for part in candidate.message.parts] == ["a"]
    assert (response.response_id, candidate.finish_reason) == ("r", pb.FINISH_REASON_STOP)


def test_unknown_blocks_and_events_are_kept_for_their_own_format() -> None:
    stream = start() + frame("new", n=1) + block(0, "text", {"type": "new_delta", "n": 2}, text="") + end()
    kept = [event.opaque for event in events_of(decoded([stream])) if event.HasField("opaque")]
    assert [(each.format, each.type) for each in kept] == [("messages", "new"), ("messages", "new_delta")]
    assert msgspec.json.decode(kept[0].json) == {"type": "new", "n": 1}


ERRORS = [
    ("an error event", frame("error", error={"type": "overloaded_error", "message": "Overloaded"}), pb.ERROR_REASON_UPSTREAM_OVERLOADED),
    ("a rate limit", frame("error", error={"type": "rate_limit_error", "message": "slow down"}), pb.ERROR_REASON_UPSTREAM_RATE_LIMITED),
    ("an error without a name", b'data: {"type":"error","error":{"type":"api_error","message":"x"}}\n\n', pb.ERROR_REASON_UPSTREAM_FAILED),
    ("an error of another shape", b'event: error\ndata: {"message":"x"}\n\n', pb.ERROR_REASON_UPSTREAM_FAILED),
    ("no JSON", b"event: content_block_delta\ndata: x\n\n", pb.ERROR_REASON_UPSTREAM_FAILED),
    ("a text of no block", frame("content_block_delta", index=9, delta=text_delta("x")), pb.ERROR_REASON_UPSTREAM_FAILED),
    ("thoughts of no block", frame("content_block_delta", index=9, delta={"type": "thinking_delta", "thinking": "x"}), pb.ERROR_REASON_UPSTREAM_FAILED),
    ("an input of no block", frame("content_block_delta", index=9, delta={"type": "input_json_delta", "partial_json": "{"}), pb.ERROR_REASON_UPSTREAM_FAILED),
    ("a block that cannot be read", frame("content_block_start", index=0, content_block={"type": "tool_use"}), pb.ERROR_REASON_UPSTREAM_FAILED),
]  # fmt: skip


@pytest.mark.parametrize("pass_", [False, True])
@pytest.mark.parametrize(("frames", "reason"), [case[1:] for case in ERRORS[:4]], ids=[case[0] for case in ERRORS[:4]])
def test_an_error_event_is_raised_after_the_events_before_it(
    frames: bytes, reason: "pb.ErrorReason.ValueType", pass_: bool
) -> None:
    decoder = decoder_of(MESSAGES_FORMAT, ANSWERED, pass_)
    assert decoder.feed(start() + frames).events[0].HasField("started")
    with raises_error(reason=reason):
        decoder.feed(b"")
    with pytest.raises(UmgError):
        decoder.close()


@pytest.mark.parametrize("frames", [case[1] for case in ERRORS[4:]], ids=[case[0] for case in ERRORS[4:]])
def test_an_undecodable_answer_is_the_providers_failure(frames: bytes) -> None:
    decoder = MESSAGES_FORMAT.translating_decoder(ANSWERED)
    decoder.feed(start())
    with raises_error(reason=pb.ERROR_REASON_UPSTREAM_FAILED):
        decoder.feed(frames)


@pytest.mark.parametrize("pass_", [False, True])
@pytest.mark.parametrize(
    "stream",
    [b"", start(), start() + block(0, "text", text_delta("a"), text=""), b'event: ping\ndata: {"type":"ping"}\n\n', start() + frame("message_delta", delta={}, usage={})],
    ids=["nothing", "a start", "a text", "a heartbeat", "no reason"],
)  # fmt: skip
def test_a_stream_that_ends_early_is_no_answer(stream: bytes, pass_: bool) -> None:
    decoder = decoder_of(MESSAGES_FORMAT, ANSWERED, pass_)
    decoder.feed(stream)
    with raises_error(reason=pb.ERROR_REASON_UPSTREAM_CUT):
        decoder.close()


@pytest.mark.parametrize("pass_", [False, True])
@pytest.mark.parametrize("ahead", [b"", frame("ping"), b": x\n\n"], ids=["nothing", "a ping", "a comment"])
@pytest.mark.parametrize(
    "first",
    [block(0, "text", text_delta("a"), text=""), frame("content_block_delta", index=0, delta=text_delta("a")), end(), frame("message_stop")],
    ids=["a block", "a delta", "the reason to stop", "the end marker"],
)  # fmt: skip
def test_a_stream_without_its_start_event_is_an_error(first: bytes, ahead: bytes, pass_: bool) -> None:
    decoder = decoder_of(MESSAGES_FORMAT, ANSWERED, pass_)
    with raises_error(name="UPSTREAM_FAILED", message="the provider's response cannot be read; try again"):
        decoder.feed(ahead + first + end())


def test_the_end_marker_ends_the_stream() -> None:
    for pass_ in (False, True):
        decoder = decoder_of(MESSAGES_FORMAT, ANSWERED, pass_)
        decoder.feed(HEAVY[: -len(frame("message_stop"))] if pass_ else start() + end()[: -len(frame("message_stop"))])
        assert not decoder.done
        decoder.feed(frame("message_stop"))
        assert decoder.done
        assert decoder.feed(start()) is None
