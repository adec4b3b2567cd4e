"""The fake provider and the codec before the vendor's own code: botocore's service model, parser and client."""

import json
from dataclasses import dataclass, field
from typing import Any

import botocore.session
import pytest
from botocore.awsrequest import AWSRequest, AWSResponse
from botocore.config import Config
from botocore.eventstream import EventStream
from botocore.parsers import create_parser

from tests.support.providers import converse_wire
from tests.support.providers.aws_event_stream import exception
from tests.support.providers.converse import judge
from tests.support.providers.converse_shapes import parameters, service_model
from tests.support.providers.scenarios import INDENTED, THOUGHTS, WEATHER, WORDS, Answer, ScenarioRequest, Usage
from tests.unit.wire.accumulate import accumulate
from umg_grpc.v1 import pb
from umg_grpc.wire import TEXT_FORMATS
from umg_grpc.wire.converse import CONVERSE_FORMAT

Json = dict[str, Any]
REQUEST = pb.GenerateRequest(model="m")
CLAUDE = "us.anthropic.claude-sonnet-5-v1:0"
ANSWERS = (
    Answer(WORDS),
    Answer(WORDS, THOUGHTS, calls=(WEATHER, *INDENTED), usage=Usage(written=4, written_long=3)),
    Answer(finish="blocked"),
)


def events_by_botocore(stream: bytes) -> list[Json]:
    """Return the events of a stream as botocore's own parser reads them."""

    class Raw:
        def stream(self) -> Any:
            yield from (stream[start : start + 7] for start in range(0, len(stream), 7))

        def close(self) -> None: ...

    shape = service_model().shape_for("ConverseStreamOutput")
    return list(EventStream(Raw(), shape, create_parser("rest-json")._event_stream_parser, "ConverseStream"))


@pytest.mark.parametrize("answer", ANSWERS)
def test_the_fake_providers_stream_is_read_by_botocore_and_by_the_codec_equally(answer: Answer) -> None:
    request = ScenarioRequest(model="m", stream=True)
    whole = converse_wire.whole(request, answer, {})
    events = events_by_botocore(b"".join(converse_wire.frames(request, answer, {})))
    assert [next(iter(each)) for each in (events[0], *events[-2:])] == ["messageStart", "messageStop", "metadata"]
    texts = [each["contentBlockDelta"]["delta"].get("text", "") for each in events if "contentBlockDelta" in each]
    assert "".join(texts) == "".join(block.get("text", "") for block in whole["output"]["message"]["content"])
    assert events[-1]["metadata"]["usage"] == whole["usage"]
    decoder = CONVERSE_FORMAT.translating_decoder(REQUEST)
    messages = [decoder.feed(b"".join(converse_wire.frames(request, answer, {}))), decoder.close()]
    streamed = accumulate([message for message in messages if message is not None])
    response = CONVERSE_FORMAT.decode_response(json.dumps(whole).encode(), REQUEST, False)
    for each in (streamed, response):
        for part in each.candidates[0].message.parts:
            if part.HasField("tool_call"):
                part.tool_call.arguments_json = json.dumps(json.loads(part.tool_call.arguments_json))
    response.service_tier = streamed.service_tier
    assert streamed == response


def test_the_fake_providers_response_has_the_shape_of_the_service() -> None:
    whole = converse_wire.whole(ScenarioRequest(model="m"), ANSWERS[1], {})
    shape = service_model().operation_model("Converse").output_shape
    http = {"status_code": 200, "headers": {}, "body": json.dumps(whole).encode()}
    parsed = create_parser("rest-json").parse(http, shape)
    del parsed["ResponseMetadata"]
    assert parsed == whole


def test_botocore_reads_an_exception_of_the_fake_providers_stream() -> None:
    with pytest.raises(Exception, match=r"modelStreamErrorException.*fell over"):
        events_by_botocore(exception("modelStreamErrorException", "the model fell over"))


@dataclass(frozen=True)
class Equal:
    """Request of a caller, and the parameters of the vendor's SDK for the same request."""

    id: str
    face: str
    body: Json
    sdk: Json
    model: str = CLAUDE
    stream: bool = False
    dropped: str = field(default="")


PNG = b"\x89PNG\r\n\x1a\n" + bytes(8)
TOOL = {
    "name": "f",
    "description": "Finds.",
    "input_schema": {"type": "object", "properties": {"q": {"type": "string"}}},
}
SPEC = {"name": "f", "description": "Finds.", "inputSchema": {"json": TOOL["input_schema"]}}


def turn(text: str, role: str = "user") -> Json:
    return {"role": role, "content": [{"text": text}]}


EQUAL = [
    Equal(
        id="a system prompt and sampling",
        face="chat",
        body={"messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}], "max_tokens": 9, "temperature": 0.5, "top_p": 0.9, "stop": ["END"]},
        sdk={"system": [{"text": "Be brief."}], "messages": [turn("Hi")], "inferenceConfig": {"maxTokens": 9, "temperature": 0.5, "topP": 0.9, "stopSequences": ["END"]}, "additionalModelResponseFieldPaths": ["/stop_sequence"]},
    ),
    Equal(
        id="a stream of a model of another maker",
        face="responses",
        body={"input": "Hi"},
        sdk={"messages": [turn("Hi")]},
        model="us.amazon.nova-pro-v1:0",
        stream=True,
    ),
    Equal(
        id="an application inference profile by its ARN",
        face="messages",
        body={"max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}]},
        sdk={"messages": [turn("Hi")], "inferenceConfig": {"maxTokens": 9}},
        model="arn:aws:bedrock:us-east-1:123456789012:application-inference-profile/a1b2c3d4e5f6",
    ),
    Equal(
        id="tools, calls, results, reasoning and cache points",
        face="messages",
        body={
            "max_tokens": 5000,
            "thinking": {"type": "enabled", "budget_tokens": 2000},
            "tools": [TOOL | {"cache_control": {"type": "ephemeral", "ttl": "1h"}}],
            "tool_choice": {"type": "auto"},
            "system": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
            "messages": [
                {"role": "user", "content": "Look"},
                {"role": "assistant", "content": [{"type": "thinking", "thinking": "Hm.", "signature": converse_wire.signature("Hm.")}, {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"q": "x"}}]},
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "no", "is_error": True, "cache_control": {"type": "ephemeral"}}]},
            ],
        },
        sdk={
            "messages": [
                turn("Look"),
                {"role": "assistant", "content": [{"reasoningContent": {"reasoningText": {"text": "Hm.", "signature": converse_wire.signature("Hm.")}}}, {"toolUse": {"toolUseId": "toolu_1", "name": "f", "input": {"q": "x"}}}]},
                {"role": "user", "content": [{"toolResult": {"toolUseId": "toolu_1", "content": [{"text": "no"}], "status": "error"}}, {"cachePoint": {"type": "default"}}]},
            ],
            "system": [{"text": "Be brief."}, {"cachePoint": {"type": "default"}}],
            "toolConfig": {"tools": [{"toolSpec": SPEC}, {"cachePoint": {"type": "default", "ttl": "1h"}}]},
            "inferenceConfig": {"maxTokens": 5000},
            "additionalModelRequestFields": {"thinking": {"type": "enabled", "budget_tokens": 2000}},
        },
    ),
    Equal(
        id="media",
        face="messages",
        body={
            "max_tokens": 9,
            "messages": [{"role": "user", "content": [
                {"type": "text", "text": "See"},
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgoAAAAAAAAAAA=="}},
                {"type": "document", "title": "Plan (2)", "source": {"type": "text", "media_type": "text/plain", "data": "words"}, "citations": {"enabled": True}},
            ]}],
        },
        sdk={
            "messages": [{"role": "user", "content": [
                {"text": "See"},
                {"image": {"format": "png", "source": {"bytes": PNG}}},
                {"document": {"name": "Plan (2)", "format": "txt", "source": {"bytes": b"words"}, "citations": {"enabled": True}}},
            ]}],
            "inferenceConfig": {"maxTokens": 9},
        },
    ),
    Equal(
        id="a schema of the response, a forced tool, labels and a tier",
        face="chat",
        body={
            "messages": [{"role": "user", "content": "Hi"}],
            "tools": [{"type": "function", "function": {"name": "f", "description": "Finds.", "parameters": TOOL["input_schema"]}}],
            "tool_choice": {"type": "function", "function": {"name": "f"}},
            "response_format": {"type": "json_schema", "json_schema": {"name": "city", "schema": {"type": "object"}}},
            "metadata": {"team": "a"},
            "service_tier": "flex",
            "guardrailConfig": {"guardrailIdentifier": "abc", "guardrailVersion": "1"},
        },
        sdk={
            "messages": [turn("Hi")],
            "toolConfig": {"tools": [{"toolSpec": SPEC}], "toolChoice": {"tool": {"name": "f"}}},
            "outputConfig": {"textFormat": {"type": "json_schema", "structure": {"jsonSchema": {"name": "city", "schema": '{"type": "object"}'}}}},
            "requestMetadata": {"team": "a"},
            "serviceTier": {"type": "flex"},
            "guardrailConfig": {"guardrailIdentifier": "abc", "guardrailVersion": "1"},
        },
    ),
]  # fmt: skip


def sent_by_botocore(case: Equal) -> AWSRequest:
    """Return the HTTP request that the vendor's own client sends for parameters."""
    session = botocore.session.get_session()
    session.set_credentials("AKID", "secret")
    client = session.create_client("bedrock-runtime", "us-east-1", config=Config(retries={"max_attempts": 0}))
    sent: list[AWSRequest] = []

    def answer(request: AWSRequest, **_: Any) -> AWSResponse:
        sent.append(request)
        return AWSResponse(request.url, 500, {}, None)

    client.meta.events.register("before-send.bedrock-runtime.*", answer)
    call = client.converse_stream if case.stream else client.converse
    with pytest.raises(Exception):  # noqa: B017, PT011 - whatever it makes of no response
        call(modelId=case.model, **case.sdk)
    return sent[0]


@pytest.mark.parametrize("case", EQUAL, ids=lambda case: case.id)
def test_a_request_equals_that_of_the_vendors_own_client(case: Equal) -> None:
    body = json.dumps({"model": "m"} | case.body).encode()
    request, _, notes = TEXT_FORMATS[case.face].decode_request(body, {}, "m")
    encoded = CONVERSE_FORMAT.encode_request(request, case.model, case.stream, notes=notes)
    judge(parameters(json.loads(encoded.body), case.model))
    theirs = sent_by_botocore(case)
    assert json.loads(encoded.body) == json.loads(theirs.body)
    assert f"https://bedrock-runtime.us-east-1.amazonaws.com{encoded.path}" == theirs.url.replace("%3A", ":")
    assert encoded.report.header() == case.dropped
