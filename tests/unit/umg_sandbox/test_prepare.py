"""Requests that the sandbox rejects, and its reports of ignored fields."""

from dataclasses import dataclass

import pytest

from tests.unit.umg_sandbox.documented import TEXT_MODELS
from tests.unit.umg_sandbox.sandbox_calls import (
    MODEL,
    assistant,
    function,
    generate,
    make_request,
    refused,
    sandbox,
    text,
    user,
)
from umg_grpc.knowledge.model_catalogue import describe
from umg_grpc.v1 import pb
from umg_grpc.wire.facts_beside_request import NO_NOTES, RequestNotes
from umg_sandbox.simulated_token_limits import CONTEXT_TOKENS, OUTPUT_TOKENS, context_tokens, max_output_tokens

OPAQUE = pb.OpaquePart(format="messages", type="container_upload", json="{}")
STRANGE = pb.Part(opaque=OPAQUE)


@dataclass(frozen=True)
class Rejection:
    id: str
    request: pb.GenerateRequest
    reason: "pb.ErrorReason.ValueType"
    field: str
    notes: RequestNotes = NO_NOTES


UNSUPPORTED = pb.ERROR_REASON_UNSUPPORTED_FIELD
UNTRANSLATABLE = pb.ERROR_REASON_UNTRANSLATABLE
REJECTIONS = [
    Rejection(id="an unknown block", request=make_request(user("Hi", STRANGE)), reason=UNSUPPORTED, field="messages[0].parts[1]"),
    Rejection(id="an unknown item", request=make_request(pb.Message(parts=[STRANGE])), reason=UNSUPPORTED, field="messages[0].parts[0]"),
    Rejection(id="an unknown instruction", request=make_request("Hi", instructions=[STRANGE]), reason=UNSUPPORTED, field="instructions[0]"),
    Rejection(id="an unknown block in a result", request=make_request(user(pb.Part(tool_result=pb.ToolResult(parts=[STRANGE])))), reason=UNSUPPORTED, field="messages[0].parts[0].tool_result.parts[0]"),
    Rejection(id="an unknown block in a document", request=make_request(user(pb.Part(media=pb.MediaPart(kind=pb.MEDIA_KIND_DOCUMENT, blocks=pb.DocumentBlocks(parts=[STRANGE]))))), reason=UNSUPPORTED, field="messages[0].parts[0].media.blocks.parts[0]"),
    Rejection(id="an unknown tool", request=make_request("Hi", tools=[pb.Tool(opaque=OPAQUE)]), reason=UNSUPPORTED, field="tools[0]"),
    Rejection(id="a part of a newer kind", request=make_request(user(pb.Part())), reason=UNSUPPORTED, field="messages[0].parts[0]"),
    Rejection(id="a tool of a newer kind", request=make_request("Hi", tools=[pb.Tool()]), reason=UNSUPPORTED, field="tools[0]"),
    Rejection(id="a message without a role", request=make_request(pb.Message(parts=[text("Hi")])), reason=pb.ERROR_REASON_MISSING_FIELD, field="messages[0].role"),
    Rejection(id="another response", request=make_request("Hi", previous_response_id="resp_1"), reason=UNTRANSLATABLE, field="previous_response_id"),
    Rejection(id="another conversation", request=make_request("Hi", conversation_id="conv_1"), reason=UNTRANSLATABLE, field="conversation_id"),
    Rejection(id="a prompt of a provider", request=make_request("Hi", prompt_template=pb.PromptTemplate(prompt_id="p")), reason=UNTRANSLATABLE, field="prompt_template"),
    Rejection(id="an indispensable field", request=make_request("Hi"), reason=UNTRANSLATABLE, field="mcp_servers", notes=RequestNotes(indispensable=["mcp_servers"])),
    Rejection(id="sound alone", request=make_request("Hi", output_modalities=["audio"]), reason=UNTRANSLATABLE, field="output_modalities"),
    Rejection(id="a schema that is no JSON", request=make_request("Hi", response_format=pb.ResponseFormat(json_schema=pb.JsonSchemaFormat(schema_json="{"))), reason=pb.ERROR_REASON_INVALID_FIELD, field="response_format.json_schema.schema_json"),
]  # fmt: skip


@pytest.mark.parametrize("case", REJECTIONS, ids=lambda case: case.id)
def test_an_indispensable_field_without_support_is_refused_by_its_path(case: Rejection) -> None:
    error = refused(case.request, notes=case.notes)
    assert (error.reason, error.metadata["field"]) == (case.reason, case.field)


def test_an_unknown_block_is_named_by_its_type() -> None:
    assert "container_upload" in refused(make_request(user(STRANGE))).message


def test_fields_without_support_are_reported() -> None:
    notes = RequestNotes(uncarried=["context_management", "speed"])
    request = pb.GenerateRequest(
        messages=[user("Hi")],
        source=pb.SourceDocument(format="messages"),
        output_modalities=["text", "audio"],
        audio_output=pb.AudioOutputOptions(format="wav"),
        moderation_json="{}",
    )
    assert (
        generate(request, notes=notes).dropped
        == "output_modalities, context_management, speed, audio_output, moderation_json"
    )


def test_sampling_options_are_accepted_and_not_reported() -> None:
    request = make_request(
        "Hi", temperature=0.3, top_p=0.5, top_k=4, seed=1, presence_penalty=1, logit_bias={"1": 2}, verbosity="low",
        metadata={"a": "b"}, user="u", store=True, service_tier="flex", safety_settings=[pb.SafetySetting(category="C")],
    )  # fmt: skip
    assert generate(request).dropped == ""


def test_a_conversation_with_every_kind_of_part_is_continued() -> None:
    turn = assistant(
        pb.Part(reasoning=pb.ReasoningPart(texts=["hm"], summaries=["h"])),
        pb.Part(server_tool_call=pb.ServerToolCall(call_id="s", name="web_search", queries=["q"])),
        pb.Part(server_tool_result=pb.ServerToolResult(call_id="s", results=[pb.SearchResult(url="https://a.test")])),
        "Here",
        pb.Part(refusal=pb.RefusalPart(text="no")),
    )
    assert "Go on" in generate(make_request("Hi", turn, user("Go on"))).text


@pytest.mark.parametrize("model", [*TEXT_MODELS, "gpt-4o"])
def test_a_prompt_that_is_longer_than_the_context_is_refused(model: str) -> None:
    most = context_tokens(model)
    fits, too_long = "word" * most, "word" * most + "s"
    assert generate(make_request(fits), model).usage.input_tokens == most
    error = refused(make_request(too_long), model)
    assert (error.reason, error.metadata) == (pb.ERROR_REASON_CONTEXT_TOO_LONG, {"field": "messages"})
    assert generate(make_request(too_long, truncation=pb.TRUNCATION_AUTO), model).finish == "STOP"


def test_a_model_has_the_limits_of_the_catalogue_and_any_other_id_has_default_limits() -> None:
    for model in TEXT_MODELS:
        known = describe(model)
        assert known is not None
        assert (context_tokens(model), max_output_tokens(model)) == (known.input_token_limit, known.output_token_limit)
    assert (context_tokens("gpt-4o"), max_output_tokens("gpt-4o")) == (CONTEXT_TOKENS, OUTPUT_TOKENS)


def test_the_catalogue_has_every_documented_model() -> None:
    named = "famG-2.5-flash famG-2.5-pro famG-3-pro famO-5-mini famO-5 famC-sonnet-4-5 famQ-3-max famR-1 famX-4"
    assert set(named.split()) <= set(TEXT_MODELS)


def json_schema(schema: str) -> pb.ResponseFormat:
    return pb.ResponseFormat(json_schema=pb.JsonSchemaFormat(schema_json=schema))


@dataclass(frozen=True)
class Work:
    id: str
    request: pb.GenerateRequest
    slow: bool


WORK = [
    Work(id="a few words", request=make_request("Hi"), slow=False),
    Work(
        id="any object", request=make_request("Hi", response_format=pb.ResponseFormat(json=pb.JsonFormat())), slow=False
    ),
    Work(id="a response in a schema", request=make_request("Hi", response_format=json_schema("{}")), slow=True),
    Work(id="a tool", request=make_request("Hi", tools=[function("f", "{}")]), slow=True),
    Work(id="a long text", request=make_request("Hi " * 10_000), slow=True),
]


@pytest.mark.parametrize("case", WORK, ids=lambda case: case.id)
def test_expensive_work_runs_in_a_thread(case: Work) -> None:
    upstream = sandbox()
    assert upstream.is_slow(case.request, case.request.ByteSize()), "the first count reads a vocabulary"
    upstream.prepare(make_request("Hi"), MODEL, stream=False)
    assert upstream.is_slow(case.request, case.request.ByteSize()) == case.slow


def test_the_candidates_of_a_request_share_one_budget() -> None:
    fields = '{"type":"array","minItems":1500,"items":{"type":"integer","minimum":1}}'
    assert generate(make_request("Hi", response_format=json_schema(fields))).text.startswith("[")
    error = refused(make_request("Hi", response_format=json_schema(fields), candidate_count=100))
    assert error.metadata == {"field": "response_format.json_schema.schema_json"}


def test_a_malformed_keyword_is_named_by_its_path() -> None:
    error = refused(make_request("Hi", response_format=json_schema('{"properties":{"a":{"minLength":"3"}}}')))
    assert error.metadata == {"field": "response_format.json_schema.schema_json.properties.a.minLength"}
