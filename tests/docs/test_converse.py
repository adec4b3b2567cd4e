"""Section of docs/fields.md on Bedrock's Converse: compared with the vendor's own service model, with the members that
requests are written with, and with the members of responses that are decoded.
"""

import copy
import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.docs.flat import covers
from tests.pairs.table import LEAST
from tests.support.providers.converse import judge
from tests.support.providers.converse_shapes import parameters, service_model
from tests.unit.schema.test_fields import ROWS, Row, is_in_the_schema, names
from umg_grpc.v1 import pb
from umg_grpc.wire import TEXT_FORMATS
from umg_grpc.wire.converse import CONVERSE_FORMAT

Json = dict[str, Any]
ROWS_OF_PAGE = [row for row in ROWS if row.section == "Bedrock's Converse"]
REQUEST = [row for row in ROWS_OF_PAGE if row.kind == "Member of a request"]
RESPONSE = [row for row in ROWS_OF_PAGE if row.kind == "Member of a response or an event"]
CLAUDE = "anthropic.claude-sonnet-5-v1:0"
BLOCKS = re.compile(r"^(messages\[\]|output\.message)\.content\[\]")
OPEN = {"additionalModelRequestFields", "additionalModelResponseFields", "requestMetadata", "promptVariables", "input", "json"}  # fmt: skip
"""Members below which names are of the caller or of the model's maker."""


def members(shape: Any, path: str = "", above: tuple[str, ...] = ()) -> Iterator[str]:
    match shape.type_name:
        case "structure" if shape.members and shape.name not in above:
            for name, member in shape.members.items():
                yield from members(member, f"{path}.{name}".lstrip("."), (*above, shape.name))
        case "list":
            yield from members(shape.member, f"{path}[]", above)
        case _:
            yield path.removesuffix("[]")


def written(value: Any, path: str = "") -> Iterator[str]:
    if isinstance(value, dict) and value and path.rpartition(".")[2] not in OPEN:
        for name, member in value.items():
            yield from written(member, f"{path}.{name}".lstrip("."))
    elif isinstance(value, list) and value:
        for member in value:
            yield from written(member, f"{path}[]")
    else:
        yield path.removesuffix("[]")


def short(paths: Iterator[str]) -> set[str]:
    return {BLOCKS.sub("content[]", path).replace("toolConfig.tools[]", "tools[]") for path in paths}


def documented(rows: list[Row]) -> set[str]:
    return {name for row in rows for name in names(row.cells[0])}


def assert_same(paths: set[str], page: set[str]) -> None:
    """Fail unless each path is covered by a name of the page, and each name covers one."""
    assert {path for path in paths if not any(covers(name, path) for name in page)} == set()
    assert {name for name in page if not any(covers(name, path) for path in paths)} == set()


def shape_of(operation: str, side: str) -> Any:
    return getattr(service_model().operation_model(operation), f"{side}_shape")


def test_the_page_has_the_members_of_a_request() -> None:
    assert_same(short(members(shape_of("Converse", "input"))), documented(REQUEST))


def test_the_page_has_the_members_of_a_response_and_of_events() -> None:
    events = {path.removeprefix("stream.") for path in members(shape_of("ConverseStream", "output"))}
    assert_same(short(members(shape_of("Converse", "output"))) | events, documented(RESPONSE))


def test_the_homes_are_in_the_schema() -> None:
    homes = [name for row in ROWS_OF_PAGE for name in names(row.cells[1])]
    assert [name for name in homes if not is_in_the_schema(name)] == []


# --- requests: members that the encoder writes


def text(words: str) -> pb.Part:
    return pb.Part(text=pb.TextPart(text=words))


PIECES = pb.DocumentBlocks(parts=[text("a")])
MARKED = pb.CacheControl(ttl=pb.CACHE_TTL_ONE_HOUR)


def media(kind: "pb.MediaKind.ValueType", mime: str, **fields: Any) -> pb.Part:
    return pb.Part(media=pb.MediaPart(kind=kind, mime_type=mime, **fields))


PICTURE = media(pb.MEDIA_KIND_IMAGE, "image/png", data=b"\x89PNG\r\n\x1a\n")
FILM = media(pb.MEDIA_KIND_VIDEO, "video/mp4", data=b"a")
PDF = media(pb.MEDIA_KIND_DOCUMENT, "application/pdf", data=b"%PDF-1.4", context="a", citable=True)
IN_PIECES = media(pb.MEDIA_KIND_DOCUMENT, "", blocks=PIECES)
FOUND = media(pb.MEDIA_KIND_DOCUMENT, "", blocks=PIECES, origin="a", citable=True)


def reasoning(state: str, **fields: Any) -> pb.Part:
    return pb.Part(reasoning=pb.ReasoningPart(**fields), state=pb.ReasoningState(data="YWI=", format=state))


def call(name: str) -> pb.Part:
    return pb.Part(tool_call=pb.ToolCall(call_id=name, name="f", arguments_json="{}"))


WHOLE = pb.GenerateRequest(
    model="m",
    instructions=[text("a")],
    tools=[pb.Tool(function=pb.FunctionTool(name="f", description="a", parameters_json='{"type":"object","properties":{},"additionalProperties":false}', strict=True), cache_control=MARKED)],
    tool_choice=pb.ToolChoice(mode=pb.TOOL_CHOICE_MODE_AUTO),
    messages=[
        pb.Message(role=pb.ROLE_USER, parts=[
            PICTURE, FILM, PDF, IN_PIECES, FOUND, media(pb.MEDIA_KIND_AUDIO, "audio/wav", data=b"RIFF"), text("a"),
        ]),
        pb.Message(role=pb.ROLE_ASSISTANT, parts=[
            reasoning("messages", texts=["a"]), reasoning("converse", redacted=True), call("a"), call("b"),
        ]),
        pb.Message(role=pb.ROLE_TOOL, parts=[
            pb.Part(tool_result=pb.ToolResult(call_id="a", parts=[text("a"), PICTURE, PDF, FILM, FOUND], is_error=True)),
            pb.Part(tool_result=pb.ToolResult(call_id="b", result_json='{"a":1}')),
        ]),
        pb.Message(role=pb.ROLE_USER, parts=[pb.Part(text=pb.TextPart(text="a"), cache_control=MARKED)]),
    ],
    max_output_tokens=9, temperature=0.5, top_p=0.5, top_k=5, stop_sequences=["a"],
    reasoning=pb.ReasoningOptions(effort="low"),
    response_format=pb.ResponseFormat(json_schema=pb.JsonSchemaFormat(schema_json='{"type":"object"}', name="a", description="a")),
    metadata={"a": "b"}, service_tier="flex",
)  # fmt: skip
WHOLE.instructions[0].cache_control.CopyFrom(MARKED)
PASSED = {"guardrailConfig": {"guardrailIdentifier": "a"}, "performanceConfig": {"latency": "optimized"}, "promptVariables": {"a": {"text": "b"}}}  # fmt: skip


def bodies() -> Iterator[Json]:
    forced = pb.GenerateRequest()
    for names_ in ((), ("f",)):
        forced.CopyFrom(WHOLE)
        forced.ClearField("reasoning")
        forced.tool_choice.CopyFrom(pb.ToolChoice(mode=pb.TOOL_CHOICE_MODE_REQUIRED, names=names_))
        yield json.loads(CONVERSE_FORMAT.encode_request(forced, CLAUDE, False).body)
    upstream = CONVERSE_FORMAT.encode_request(WHOLE, CLAUDE, False)
    yield json.loads(upstream.body) | {"modelId": CLAUDE}
    request, _, notes = TEXT_FORMATS["chat"].decode_request(json.dumps(LEAST["chat"] | PASSED).encode(), {}, "m")
    yield json.loads(CONVERSE_FORMAT.encode_request(request, CLAUDE, False, notes=notes).body)


def test_a_request_writes_the_members_that_have_a_home() -> None:
    sent = [row for row in REQUEST if "never sent" not in row.cells[1]]
    assert_same(short(path for body in bodies() for path in written(body)), documented(sent))


# --- responses: which members change the decoded response


CITATION = {"title": "a", "source": "a", "sourceContent": [{"text": "a"}], "location": {"searchResultLocation": {"searchResultIndex": 1, "start": 1, "end": 2}}}  # fmt: skip
ANSWER: Json = {
    "output": {"message": {"role": "assistant", "content": [
        {"text": "a"},
        {"citationsContent": {"content": [{"text": "a"}], "citations": [CITATION]}},
        {"toolUse": {"toolUseId": "a", "name": "f", "input": {"a": 1}}},
        {"toolUse": {"toolUseId": "b", "name": "g", "input": {"a": 1}, "type": "server_tool_use"}},
        {"reasoningContent": {"reasoningText": {"text": "a", "signature": "a"}}},
        {"reasoningContent": {"redactedContent": "YWI="}},
        {"image": {"format": "gif", "source": {"bytes": "YWI="}}},
        *({name: {"a": 1}} for name in ("document", "video", "audio", "toolResult", "guardContent", "cachePoint", "searchResult", "toolAddition", "toolRemoval")),
        {"image": {"source": {"s3Location": {"uri": "a"}}}},
        {"image": {"error": {"message": "a"}}},
    ]}},
    "stopReason": "stop_sequence",
    "additionalModelResponseFields": {"stop_sequence": "a"},
    "usage": {"inputTokens": 3, "outputTokens": 2, "totalTokens": 20, "cacheReadInputTokens": 2, "cacheWriteInputTokens": 3, "cacheDetails": [{"ttl": "1h", "inputTokens": 2}]},
    "serviceTier": {"type": "flex"},
    "trace": {"guardrail": {"actionReason": "a", "modelOutput": ["a"], "inputAssessment": {}, "outputAssessments": {}}, "promptRouter": {"invokedModelId": "a"}},
    "metrics": {"latencyMs": 1},
    "performanceConfig": {"latency": "standard"},
}  # fmt: skip


def removals(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield (path of a leaf, the value without it)."""
    if isinstance(value, dict) and value and path.rpartition(".")[2] not in OPEN:
        for name, member in value.items():
            rest = {key: each for key, each in value.items() if key != name}
            if not isinstance(member, dict | list) or not member or name in OPEN:
                yield f"{path}.{name}".lstrip("."), rest
            yield from ((at, {**value, name: less}) for at, less in removals(member, f"{path}.{name}".lstrip(".")))
    elif isinstance(value, list):
        for index, member in enumerate(value):
            if not isinstance(member, dict | list):
                yield path, [*value[:index], *value[index + 1 :]]
            yield from ((at, [*value[:index], less, *value[index + 1 :]]) for at, less in removals(member, f"{path}[]"))


def decoded(body: Json) -> pb.GenerateResponse:
    return CONVERSE_FORMAT.decode_response(json.dumps(body).encode(), pb.GenerateRequest(model="m"), False)


REMOVALS = [(BLOCKS.sub("content[]", path), body) for path, body in removals(copy.deepcopy(ANSWER))]


@pytest.mark.parametrize(("path", "body"), REMOVALS, ids=[f"{at}-{path}" for at, (path, _) in enumerate(REMOVALS)])
def test_a_member_of_a_response_changes_the_decoded_one_as_documented(path: str, body: Json) -> None:
    homes = [row.cells[1] for row in RESPONSE if any(covers(name, path) for name in names(row.cells[0]))]
    assert homes, path
    assert (decoded(body) == decoded(ANSWER)) == all(
        home == "a constant" or home.startswith("none: ignored") for home in homes
    )


def test_the_measured_request_is_one_that_the_service_accepts() -> None:
    body = next(bodies())
    body["messages"][1]["content"] = [block for block in body["messages"][1]["content"] if "toolUse" in block]
    judge(parameters(body, CLAUDE))
