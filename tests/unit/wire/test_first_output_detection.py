"""The start of streams: frames without output may be held back while failover to another channel is possible."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.unit.wire import streams
from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire import TEXT_FORMATS
from umg_grpc.wire.core import sse


@dataclass(frozen=True)
class Frames:
    id: str
    format: str
    frames: bytes
    has_no_output: bool


def chunk(choice: str, more: str = "") -> bytes:
    return b'data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m"%b,"choices":[%b]}\n\n' % (
        more.encode(),
        choice.encode(),
    )


def event(name: str, fields: str) -> bytes:
    return f'event: {name}\ndata: {{"type":"{name}",{fields}}}\n\n'.encode()


def native(candidate: str, more: str = "") -> bytes:
    return f'data: {{"candidates":[{candidate}],"modelVersion":"m"{more}}}\n\n'.encode()


# fmt: off
ROLE = chunk('{"index":0,"delta":{"role":"assistant","content":"","refusal":null},"logprobs":null,"finish_reason":null}')
CREATED = event("response.created", '"response":{"id":"r","status":"in_progress","output":[],"error":null}')
START = event("message_start", '"message":{"id":"m","content":[],"usage":{"input_tokens":1}}')
PING = event("ping", '"x":1')
CASES = [
    Frames("nothing", "chat", b"", True),
    Frames("a comment", "chat", b": processing\n\n", True),
    Frames("a role", "chat", ROLE, True),
    Frames("roles of two choices", "chat", chunk('{"index":0,"delta":{"role":"assistant"}},{"index":1,"delta":{"role":"assistant","tool_calls":[]}}'), True),
    Frames("the result of a prompt filter", "chat", chunk("", ',"prompt_filter_results":[{"prompt_index":0}]'), True),
    Frames("usage from the start on", "chat", chunk('{"index":0,"delta":{"role":"assistant"}}', ',"usage":{"prompt_tokens":1}'), True),
    Frames("a delta of null", "chat", chunk('{"index":0,"delta":null}'), True),
    Frames("text", "chat", chunk('{"index":0,"delta":{"content":"a"}}'), False),
    Frames("a blank", "chat", chunk('{"index":0,"delta":{"content":" "}}'), False),
    Frames("a role and then text", "chat", ROLE + chunk('{"index":0,"delta":{"content":"a"}}'), False),
    Frames("thoughts", "chat", chunk('{"index":0,"delta":{"role":"assistant","content":"","reasoning_content":"a"}}'), False),
    Frames("a call", "chat", chunk('{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c"}]}}'), False),
    Frames("an end", "chat", chunk('{"index":0,"delta":{},"finish_reason":"stop"}'), False),
    Frames("likelihoods", "chat", chunk('{"index":0,"delta":{},"logprobs":{"content":[]}}'), False),
    Frames("sources", "chat", chunk('{"index":0,"delta":{}}', ',"citations":["u"]'), False),
    Frames("an error", "chat", b'data: {"error":{"message":"no"},"choices":[]}\n\n', False),
    Frames("no choices", "chat", b'data: {"id":"c"}\n\n', False),
    Frames("the end marker", "chat", b"data: [DONE]\n\n", False),
    Frames("garbage", "chat", b"data: {\n\n", False),
    Frames("choices of another type", "chat", b'data: {"choices":null}\n\n', False),
    Frames("a start", "messages", START, True),
    Frames("a start and pings", "messages", START + PING + PING, True),
    Frames("an empty text", "messages", event("content_block_start", '"index":0,"content_block":{"type":"text","text":""}'), True),
    Frames("empty thoughts", "messages", event("content_block_start", '"index":0,"content_block":{"type":"thinking","thinking":"","signature":""}'), True),
    Frames("thoughts that are hidden", "messages", event("content_block_start", '"index":0,"content_block":{"type":"redacted_thinking","data":"a"}'), False),
    Frames("a text that began", "messages", event("content_block_start", '"index":0,"content_block":{"type":"text","text":"a"}'), False),
    Frames("a call", "messages", event("content_block_start", '"index":0,"content_block":{"type":"tool_use","id":"t","name":"f","input":{}}'), False),
    Frames("a block of nothing", "messages", event("content_block_start", '"index":0'), False),
    Frames("a block of another type", "messages", event("content_block_start", '"index":0,"content_block":{"type":["text"]}'), False),
    Frames("a start with content", "messages", event("message_start", '"message":{"content":[{"type":"text","text":"a"}]}'), False),
    Frames("text", "messages", START + event("content_block_delta", '"index":0,"delta":{"type":"text_delta","text":"a"}'), False),
    Frames("an error", "messages", event("error", '"error":{"type":"overloaded_error","message":"no"}'), False),
    Frames("an unknown event", "messages", event("news", '"x":1'), False),
    Frames("a text", "messages", b'data: "a"\n\n', False),
    Frames("beginnings", "responses", CREATED + CREATED.replace(b".created", b".in_progress"), True),
    Frames("a message", "responses", CREATED + event("response.output_item.added", '"output_index":0,"item":{"id":"m","type":"message","status":"in_progress","role":"assistant","content":[]}'), True),
    Frames("reasoning", "responses", event("response.output_item.added", '"item":{"id":"r","type":"reasoning","summary":[],"encrypted_content":"gAAA"}'), True),
    Frames("a part", "responses", event("response.content_part.added", '"part":{"type":"output_text","text":"","annotations":[],"logprobs":[]}'), True),
    Frames("a summary", "responses", event("response.reasoning_summary_part.added", '"part":{"type":"summary_text","text":""}'), True),
    Frames("a part that began", "responses", event("response.content_part.added", '"part":{"type":"output_text","text":"a"}'), False),
    Frames("a message that began", "responses", event("response.output_item.added", '"item":{"type":"message","content":[{"type":"output_text","text":"a"}]}'), False),
    Frames("a call", "responses", event("response.output_item.added", '"item":{"type":"function_call","name":"f","call_id":"c","arguments":""}'), False),
    Frames("a search", "responses", event("response.output_item.added", '"item":{"type":"web_search_call","status":"in_progress"}'), False),
    Frames("text", "responses", event("response.output_text.delta", '"delta":"a"'), False),
    Frames("a response that failed at once", "responses", event("response.failed", '"response":{"status":"failed"}'), False),
    Frames("a response that begins with an error", "responses", CREATED.replace(b'"error":null', b'"error":{"code":"x"}'), False),
    Frames("an item of nothing", "responses", event("response.output_item.added", '"output_index":0'), False),
    Frames("an error", "responses", event("error", '"message":"no"'), False),
    Frames("no parts", "native", native('{"content":{"role":"model"},"index":0}', ',"usageMetadata":{"promptTokenCount":1}'), True),
    Frames("no content", "native", native('{"index":0}'), True),
    Frames("no candidates", "native", b'data: {"responseId":"r"}\n\n', True),
    Frames("an empty text", "native", native('{"content":{"parts":[{"text":""}],"role":"model"}}'), True),
    Frames("a bare line", "native", b"\n", True),
    Frames("text", "native", native('{"content":{"parts":[{"text":"a"}]}}'), False),
    Frames("a signature", "native", native('{"content":{"parts":[{"text":"","thoughtSignature":"a"}]}}'), False),
    Frames("an end", "native", native('{"content":{"parts":[]},"finishReason":"STOP"}'), False),
    Frames("a blocked prompt", "native", b'data: {"promptFeedback":{"blockReason":"SAFETY"}}\n\n', False),
    Frames("an error", "native", b'data: {"error":{"code":500}}\n\n', False),
]
# fmt: on


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.format}: {case.id}")
def test_a_stream_without_content_has_no_output(case: Frames) -> None:
    assert TEXT_FORMATS[case.format].has_no_output(case.frames) == case.has_no_output


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.format}: {case.id}")
def test_the_ends_of_lines_change_nothing(case: Frames) -> None:
    assert TEXT_FORMATS[case.format].has_no_output(case.frames.replace(b"\n", b"\r\n")) == case.has_no_output


STREAMS = sorted(path for name in TEXT_FORMATS for path in (Path(__file__).parent / name).glob("*/stream.sse"))


@pytest.mark.parametrize("path", STREAMS, ids=lambda path: f"{path.parent.parent.name}: {path.parent.name}")
def test_the_start_of_a_stream_has_no_part_of_the_answer(path: Path) -> None:
    codec = TEXT_FORMATS[path.parent.parent.name]
    frames = [frame.raw for frame in sse.split(sse.SseSplitter().whole(path.read_bytes()))]
    begins = next((place for place, frame in enumerate(frames) if not codec.has_no_output(frame)), len(frames))
    assert begins < len(frames)  # every stream has output
    decoder = codec.translating_decoder(pb.GenerateRequest(model="m"))
    message = decoder.feed(b"".join(frames[:begins]))
    for each in message.events if message is not None else ():
        kind = each.WhichOneof("kind")
        assert kind in ("started", "usage", "part_started"), each
        if kind == "part_started":
            assert each.part_started.WhichOneof("kind") in ("text", "reasoning"), each
            assert not each.part_started.text.text, each


@pytest.mark.parametrize("name", TEXT_FORMATS)
def test_the_first_events_of_our_own_faces_have_no_output(name: str) -> None:
    encoder = TEXT_FORMATS[name].stream_encoder(pb.GenerateRequest(model="m"))
    begun = pb.StreamGenerateResponse(
        events=[pb.GenerateEvent(started=pb.GenerationStarted(response_id="r", model="m"))]
    )
    assert TEXT_FORMATS[name].has_no_output(encoder.feed(begun))
    part = pb.GenerateEvent(part_started=pb.Part(text=pb.TextPart()))
    message = pb.StreamGenerateResponse(events=[part, pb.GenerateEvent(text_delta="a")])
    assert not TEXT_FORMATS[name].has_no_output(encoder.feed(message))
    assert not TEXT_FORMATS[name].has_no_output(encoder.error(UmgError(pb.ERROR_REASON_UPSTREAM_CUT, "no")))


@pytest.mark.parametrize("name", TEXT_FORMATS)
def test_a_passed_beginning_is_as_the_provider_sent_it(name: str) -> None:
    encoder = TEXT_FORMATS[name].stream_encoder(pb.GenerateRequest(model="m"))
    started = pb.GenerateEvent(started=pb.GenerationStarted(response_id="r", model="m"))
    sent = encoder.feed(pb.StreamGenerateResponse(events=[started]))
    passed = TEXT_FORMATS[name].passthrough_decoder(pb.GenerateRequest(model="m"))
    message = passed.feed(sent) if sent else None
    assert TEXT_FORMATS[name].has_no_output(streams.frames_of([message] if message is not None else []))
