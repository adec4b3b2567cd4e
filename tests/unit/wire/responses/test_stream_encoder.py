"""The streamed answer for a caller: the orders of events that its clients check (reference, 2.5 and 2.6)."""

from dataclasses import dataclass

import pytest
from google.protobuf import text_format

from tests.unit.wire.responses.streams import Payload, names, payloads_of
from umg_grpc.v1 import pb
from umg_grpc.wire.responses import RESPONSES_FORMAT

BEGIN = ["created", "in_progress"]
TEXT = ["output_item.added", "content_part.added", "output_text.delta", "output_text.done", "content_part.done", "output_item.done"]  # fmt: skip
SUMMARY = [
    "reasoning_summary_part.added", "reasoning_summary_text.delta", "reasoning_summary_text.done", "reasoning_summary_part.done",
]  # fmt: skip
CALL = ["output_item.added", "function_call_arguments.delta", "function_call_arguments.done", "output_item.done"]
CUSTOM = ["output_item.added", "custom_tool_call_input.delta", "custom_tool_call_input.done", "output_item.done"]
IMAGE = ["output_item.added", *(f"image_generation_call.{state}" for state in ("in_progress", "generating", "completed")), "output_item.done"]  # fmt: skip

STARTED = 'events { started { response_id: "resp_1" model: "m" create_time { seconds: 7 } } }'
END = "events { finished { finish_reason: FINISH_REASON_STOP } }"
TEXT_EVENTS = 'events { part_started { text {} } } events { text_delta: "Hi" } events { part_ended {} }'
THINK = "events { part_started { reasoning {} } }"
REQUEST = pb.GenerateRequest(model="m", include=["reasoning.encrypted_content", "web_search_call.action.sources"])


def message(text: str) -> pb.StreamGenerateResponse:
    return text_format.Parse(text, pb.StreamGenerateResponse())


def stream(*texts: str, request: pb.GenerateRequest = REQUEST) -> bytes:
    encoder = RESPONSES_FORMAT.stream_encoder(request)
    return b"".join([*(encoder.feed(message(text)) for text in texts), encoder.close()])


def places(payloads: list[Payload]) -> list[tuple[object, object]]:
    """Return (name, output_index) of the events of items."""
    return [
        (str(payload["type"]).removeprefix("response."), payload["output_index"])
        for payload in payloads
        if "output_index" in payload
    ]


@dataclass(frozen=True)
class Order:
    id: str
    events: str
    names: list[str]


ORDERS = [
    Order("nothing", "", []),
    Order("(a) text", TEXT_EVENTS, TEXT),
    Order("an empty text", "events { part_started { text {} } } events { part_ended {} }", [name for name in TEXT if name != "output_text.delta"]),
    Order("several texts in one item", TEXT_EVENTS + 'events { part_index: 1 part_started { text {} } } events { part_index: 1 text_delta: "a" } events { part_index: 1 text_delta: "b" } events { part_index: 1 part_ended {} }',
          [*TEXT[:-1], "content_part.added", "output_text.delta", *TEXT[2:]]),
    Order("(b) summaries", THINK + 'events { summary_delta { text: "a" } } events { summary_delta { summary_index: 1 text: "b" } } events { part_ended {} }',
          ["output_item.added", *SUMMARY, *SUMMARY, "output_item.done"]),
    Order("thoughts of other formats, which clients show as summaries", THINK + 'events { reasoning_delta: "a" } events { reasoning_delta: "b" } events { part_ended {} }',
          ["output_item.added", *SUMMARY[:2], *SUMMARY[1:], "output_item.done"]),
    Order("(c) a call", 'events { part_started { tool_call { call_id: "c" name: "f" arguments_json: "" } } } events { arguments_delta: "{}" } events { part_ended {} }', CALL),
    Order("a call without arguments", 'events { part_started { tool_call { call_id: "c" name: "f" arguments_json: "" } } } events { part_ended {} }', CALL),
    Order("a custom call", 'events { part_started { tool_call { call_id: "c" name: "f" text: "" } } } events { arguments_delta: "x" } events { part_ended {} }', CUSTOM),
    Order("(d) a search", 'events { part_started { server_tool_call { call_id: "s" name: "web_search" queries: "q" } } } events { part_ended {} }'
          'events { part_index: 1 part_started { server_tool_result { call_id: "s" name: "web_search" } } } events { part_index: 1 part_ended {} }' + TEXT_EVENTS.replace("events {", "events { part_index: 2"),
          ["output_item.added", "web_search_call.in_progress", "web_search_call.searching", "web_search_call.completed", "output_item.done", *TEXT]),
    Order("sources before the end of the text", 'events { part_started { text {} } } events { text_delta: "Hi" } events { citation { web { url: "u" } } } events { part_ended {} }',
          [*TEXT[:3], "output_text.annotation.added", *TEXT[3:]]),
    Order("code that was run", 'events { part_started { server_tool_call { call_id: "s" name: "code_execution" } } } events { part_updated { server_tool_call { call_id: "s" name: "code_execution" input_json: "{\\"code\\": \\"1\\"}" } } } events { part_ended {} }',
          ["output_item.added", "code_interpreter_call.in_progress", "code_interpreter_call_code.delta", "code_interpreter_call_code.done", "code_interpreter_call.interpreting", "code_interpreter_call.completed", "output_item.done"]),
    Order("an image", 'events { part_started { media { kind: MEDIA_KIND_IMAGE data: "x" } } } events { part_ended {} }', IMAGE),
    Order("an image by its address, as text", 'events { part_started { media { kind: MEDIA_KIND_IMAGE uri: "https://a.test/i" } } } events { part_ended {} }', TEXT),
    Order("sound", 'events { part_started { media { kind: MEDIA_KIND_AUDIO } } } events { media_delta { data: "x" } } events { media_delta { transcript: "t" } } events { part_ended {} }',
          ["audio.delta", "audio.transcript.delta", "audio.done", "audio.transcript.done"]),
    Order("a refusal", 'events { part_started { refusal {} } } events { refusal_delta: "no" } events { part_ended {} }', [name.replace("output_text", "refusal") for name in TEXT]),
    Order("an item that only this format has", 'events { part_started { opaque { format: "responses" type: "mcp_call" json: "{\\n\\"type\\":\\"mcp_call\\",\\"id\\":\\"1\\"}" } } } events { part_ended {} }', ["output_item.added", "output_item.done"]),
    Order("a part of another format, and thoughts that are no text", 'events { part_started { opaque { format: "native" json: "{}" } } } events { part_ended {} } events { part_index: 1 part_started { thought: true media { kind: MEDIA_KIND_IMAGE data: "x" } } } events { part_index: 1 part_ended {} }', []),
    Order("parts that were never ended", 'events { part_started { text {} } } events { text_delta: "Hi" }', TEXT),
]  # fmt: skip


@pytest.mark.parametrize("case", ORDERS, ids=lambda case: case.id)
@pytest.mark.parametrize("at_once", [True, False])
def test_events_are_encoded_in_the_order_of_the_format(case: Order, at_once: bool) -> None:
    text = STARTED + case.events + END
    texts = [text] if at_once else [f"events {{{event}" for event in text.split("events {")[1:]]
    assert names(stream(*texts)) == [*BEGIN, *case.names, "completed"]


def test_parallel_calls_that_interleave_have_one_index_each() -> None:
    calls = """
    events { part_started { tool_call { call_id: "a" name: "f" arguments_json: "" } } }
    events { part_index: 1 part_started { tool_call { call_id: "b" name: "g" arguments_json: "" } } }
    events { part_index: 1 arguments_delta: "{" } events { arguments_delta: "[" }
    events { part_index: 1 arguments_delta: "}" } events { arguments_delta: "]" }
    events { part_ended {} } events { part_index: 1 part_ended {} }
    """
    payloads = payloads_of(stream(STARTED, calls, END))
    added, delta, done = "output_item.added", "function_call_arguments.delta", "function_call_arguments.done"
    assert places(payloads) == [
        (added, 0), (added, 1), (delta, 1), (delta, 0), (delta, 1), (delta, 0),
        (done, 0), ("output_item.done", 0), (done, 1), ("output_item.done", 1),
    ]  # fmt: skip
    final = payloads[-1]["response"]
    assert isinstance(final, dict)
    assert [(item["call_id"], item["arguments"], item["id"]) for item in final["output"]] == [
        ("a", "[]", "fc_umg_resp1_0"),
        ("b", "{}", "fc_umg_resp1_1"),
    ]


def test_a_text_that_stays_open_for_its_sources_is_done_after_them() -> None:
    late = """
    events { part_started { text {} } } events { text_delta: "Hi" }
    events { part_index: 1 part_started { tool_call { call_id: "a" name: "f" arguments_json: "" } } }
    events { citation { web { url: "u" } title: "t" start_index: 0 end_index: 1 } } events { part_ended {} }
    events { part_index: 1 part_ended {} }
    """
    payloads = payloads_of(stream(STARTED, late, END))
    final = payloads[-1]["response"]
    assert isinstance(final, dict)
    assert [item["type"] for item in final["output"]] == ["message", "function_call"]
    annotation = {"type": "url_citation", "url": "u", "title": "t", "start_index": 0, "end_index": 1}
    assert final["output"][0]["content"][0]["annotations"] == [annotation]
    done = [payload for payload in payloads if payload["type"] == "response.output_item.done"]
    assert [payload["item"] for payload in done] == final["output"]


def test_reasoning_after_a_text_is_an_item_of_its_own() -> None:
    events = (
        TEXT_EVENTS + THINK.replace("events {", "events { part_index: 1") + "events { part_index: 1 part_ended {} }"
    )
    again = TEXT_EVENTS.replace("events {", "events { part_index: 2")
    payloads = payloads_of(stream(STARTED, events, again, END))
    assert [place for name, place in places(payloads) if name == "output_item.added"] == [0, 1, 2]


@pytest.mark.parametrize(
    ("finish", "event", "details", "status"),
    [
        ("finish_reason: FINISH_REASON_LENGTH", "incomplete", {"reason": "max_output_tokens"}, "incomplete"),
        ("finish_reason: FINISH_REASON_CONTEXT_FULL", "incomplete", {"reason": "max_output_tokens"}, "incomplete"),
        ("finish_reason: FINISH_REASON_CONTENT_FILTER", "incomplete", {"reason": "content_filter"}, "incomplete"),
        ("finish_reason: FINISH_REASON_REFUSAL", "incomplete", {"reason": "content_filter"}, "incomplete"),
        ('finish_reason: FINISH_REASON_OTHER provider_reason: "steered"', "incomplete", {"reason": "steered"}, "incomplete"),
        ('finish_reason: FINISH_REASON_OTHER provider_reason: "OTHER"', "incomplete", {"reason": "max_output_tokens"}, "incomplete"),
        ("finish_reason: FINISH_REASON_PAUSE", "incomplete", {"reason": "max_output_tokens"}, "incomplete"),
        ("finish_reason: FINISH_REASON_MALFORMED_CALL", "failed", None, "completed"),
    ],
)  # fmt: skip
def test_an_incomplete_answer_has_an_incomplete_last_item(
    finish: str, event: str, details: object, status: str
) -> None:
    payloads = payloads_of(
        stream(
            STARTED,
            TEXT_EVENTS,
            TEXT_EVENTS.replace("{ part_", "{ part_index: 1 part_"),
            f"events {{ finished {{ {finish} }} }}",
        )
    )
    assert payloads[-1]["type"] == f"response.{event}"
    final = payloads[-1]["response"]
    assert isinstance(final, dict)
    assert (final["status"], final["incomplete_details"], final["output"][-1]["status"]) == (event, details, status)
    assert (final["error"] is not None) == (event == "failed")


def test_a_blocked_prompt_is_an_incomplete_response_without_output() -> None:
    payloads = payloads_of(stream(STARTED, 'events { finished { block_reason: "SAFETY" } }'))
    final = payloads[-1]["response"]
    assert isinstance(final, dict)
    assert (final["status"], final["incomplete_details"], final["output"]) == (
        "incomplete",
        {"reason": "content_filter"},
        [],
    )


def test_summary_none_hides_the_reasoning() -> None:
    request = pb.GenerateRequest(reasoning=pb.ReasoningOptions(summary="none"))
    thought = THINK + 'events { reasoning_delta: "a" } events { part_ended {} }'
    payloads = payloads_of(stream(STARTED, thought, END, request=request))
    final = payloads[-1]["response"]
    assert isinstance(final, dict)
    assert final["output"] == [{"id": "rs_umg_resp1_0", "type": "reasoning", "summary": []}]
    assert not [payload for payload in payloads if "summary" in str(payload["type"])]


def test_the_last_event_has_the_usage_from_any_event() -> None:
    usage = "events { usage { input_tokens: 3 cache_read_tokens: 1 long_cache_write_tokens: 1 output_tokens: 2 reasoning_tokens: 1 } }"
    expected = {
        "input_tokens": 3,
        "input_tokens_details": {"cached_tokens": 1, "cache_write_tokens": 1},
        "output_tokens": 2,
        "output_tokens_details": {"reasoning_tokens": 1},
        "total_tokens": 5,
    }
    for texts in ([STARTED, TEXT_EVENTS, END, usage], [STARTED, usage, TEXT_EVENTS, END]):
        payloads = payloads_of(stream(*texts))
        assert [payload["response"]["usage"] for payload in payloads if "response" in payload] == [None, None, expected]


def test_a_heartbeat_is_a_comment() -> None:
    assert RESPONSES_FORMAT.heartbeat == b": keep-alive\n\n"


def test_other_candidates_are_not_encoded() -> None:
    assert stream(STARTED, TEXT_EVENTS, TEXT_EVENTS.replace("events {", "events { candidate_index: 1"), END) == stream(
        STARTED, TEXT_EVENTS, END
    )
