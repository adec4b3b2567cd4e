"""Requests that the sandbox rejects, and its reports of ignored fields."""

from dataclasses import dataclass

import pytest

from tests.upstream.sandbox.asking import MODEL, ask, assistant, function, hear, refused, sandbox, text, user
from tests.upstream.sandbox.documented import TEXT_MODELS
from umg_grpc.catalogue import describe
from umg_grpc.upstream.sandbox.models import CONTEXT_TOKENS, OUTPUT_TOKENS, context_tokens, max_output_tokens
from umg_grpc.v1 import pb
from umg_grpc.wire.request_notes import NO_NOTES, RequestNotes

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
    Rejection(id="an unknown block", request=ask(user("Hi", STRANGE)), reason=UNSUPPORTED, field="messages[0].parts[1]"),
    Rejection(id="an unknown item", request=ask(pb.Message(parts=[STRANGE])), reason=UNSUPPORTED, field="messages[0].parts[0]"),
    Rejection(id="an unknown instruction", request=ask("Hi", instructions=[STRANGE]), reason=UNSUPPORTED, field="instructions[0]"),
    Rejection(id="an unknown block in a result", request=ask(user(pb.Part(tool_result=pb.ToolResult(parts=[STRANGE])))), reason=UNSUPPORTED, field="messages[0].parts[0].tool_result.parts[0]"),
    Rejection(id="an unknown block in a document", request=ask(user(pb.Part(media=pb.MediaPart(kind=pb.MEDIA_KIND_DOCUMENT, blocks=pb.DocumentBlocks(parts=[STRANGE]))))), reason=UNSUPPORTED, field="messages[0].parts[0].media.blocks.parts[0]"),
    Rejection(id="an unknown tool", request=ask("Hi", tools=[pb.Tool(opaque=OPAQUE)]), reason=UNSUPPORTED, field="tools[0]"),
    Rejection(id="a part of a newer kind", request=ask(user(pb.Part())), reason=UNSUPPORTED, field="messages[0].parts[0]"),
    Rejection(id="a tool of a newer kind", request=ask("Hi", tools=[pb.Tool()]), reason=UNSUPPORTED, field="tools[0]"),
    Rejection(id="nobody speaks", request=ask(pb.Message(parts=[text("Hi")])), reason=pb.ERROR_REASON_MISSING_FIELD, field="messages[0].role"),
    Rejection(id="another response", request=ask("Hi", previous_response_id="resp_1"), reason=UNTRANSLATABLE, field="previous_response_id"),
    Rejection(id="another conversation", request=ask("Hi", conversation_id="conv_1"), reason=UNTRANSLATABLE, field="conversation_id"),
    Rejection(id="a prompt of a provider", request=ask("Hi", prompt_template=pb.PromptTemplate(prompt_id="p")), reason=UNTRANSLATABLE, field="prompt_template"),
    Rejection(id="what cannot be left out", request=ask("Hi"), reason=UNTRANSLATABLE, field="mcp_servers", notes=RequestNotes(indispensable=["mcp_servers"])),
    Rejection(id="sound alone", request=ask("Hi", output_modalities=["audio"]), reason=UNTRANSLATABLE, field="output_modalities"),
    Rejection(id="a schema that is no JSON", request=ask("Hi", response_format=pb.ResponseFormat(json_schema=pb.JsonSchemaFormat(schema_json="{"))), reason=pb.ERROR_REASON_INVALID_FIELD, field="response_format.json_schema.schema_json"),
]  # fmt: skip


@pytest.mark.parametrize("case", REJECTIONS, ids=lambda case: case.id)
def test_what_cannot_be_left_out_is_refused_by_its_place(case: Rejection) -> None:
    error = refused(case.request, notes=case.notes)
    assert (error.reason, error.metadata["field"]) == (case.reason, case.field)


def test_an_unknown_block_is_named_by_its_type() -> None:
    assert "container_upload" in refused(ask(user(STRANGE))).message


def test_what_is_not_honoured_is_reported() -> None:
    notes = RequestNotes(uncarried=["context_management", "speed"])
    request = pb.GenerateRequest(
        messages=[user("Hi")],
        source=pb.SourceDocument(format="messages"),
        output_modalities=["text", "audio"],
        audio_output=pb.AudioOutputOptions(format="wav"),
        moderation_json="{}",
    )
    assert (
        hear(request, notes=notes).dropped
        == "output_modalities, context_management, speed, audio_output, moderation_json"
    )


def test_sampling_is_accepted_without_a_word() -> None:
    request = ask(
        "Hi", temperature=0.3, top_p=0.5, top_k=4, seed=1, presence_penalty=1, logit_bias={"1": 2}, verbosity="low",
        metadata={"a": "b"}, user="u", store=True, service_tier="flex", safety_settings=[pb.SafetySetting(category="C")],
    )  # fmt: skip
    assert hear(request).dropped == ""


def test_a_conversation_that_holds_all_that_a_provider_may_have_said_goes_on() -> None:
    turn = assistant(
        pb.Part(reasoning=pb.ReasoningPart(texts=["hm"], summaries=["h"])),
        pb.Part(server_tool_call=pb.ServerToolCall(call_id="s", name="web_search", queries=["q"])),
        pb.Part(server_tool_result=pb.ServerToolResult(call_id="s", results=[pb.SearchResult(url="https://a.test")])),
        "Here",
        pb.Part(refusal=pb.RefusalPart(text="no")),
    )
    assert "Go on" in hear(ask("Hi", turn, user("Go on"))).text


@pytest.mark.parametrize("model", [*TEXT_MODELS, "gpt-4o"])
def test_a_prompt_that_is_longer_than_the_context_is_refused(model: str) -> None:
    most = context_tokens(model)
    fits, too_long = "word" * most, "word" * most + "s"
    assert hear(ask(fits), model).usage.input_tokens == most
    error = refused(ask(too_long), model)
    assert (error.reason, error.metadata) == (pb.ERROR_REASON_CONTEXT_TOO_LONG, {"field": "messages"})
    assert hear(ask(too_long, truncation=pb.TRUNCATION_AUTO), model).finish == "STOP"


def test_a_model_takes_what_callers_are_told_of_it_and_any_other_id_has_limits_too() -> None:
    for model in TEXT_MODELS:
        known = describe(model)
        assert known is not None
        assert (context_tokens(model), max_output_tokens(model)) == (known.input_token_limit, known.output_token_limit)
    assert (context_tokens("gpt-4o"), max_output_tokens("gpt-4o")) == (CONTEXT_TOKENS, OUTPUT_TOKENS)


def test_every_documented_model_is_there() -> None:
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
    Work(id="a few words", request=ask("Hi"), slow=False),
    Work(id="any object", request=ask("Hi", response_format=pb.ResponseFormat(json=pb.JsonFormat())), slow=False),
    Work(id="an answer in a schema", request=ask("Hi", response_format=json_schema("{}")), slow=True),
    Work(id="a tool", request=ask("Hi", tools=[function("f", "{}")]), slow=True),
    Work(id="a long text", request=ask("Hi " * 10_000), slow=True),
]


@pytest.mark.parametrize("case", WORK, ids=lambda case: case.id)
def test_what_takes_long_is_left_to_a_thread(case: Work) -> None:
    upstream = sandbox()
    assert upstream.is_slow(case.request, case.request.ByteSize()), "the first count reads a vocabulary"
    upstream.prepare(ask("Hi"), MODEL, stream=False)
    assert upstream.is_slow(case.request, case.request.ByteSize()) == case.slow


def test_many_answers_share_one_budget() -> None:
    fields = '{"type":"array","minItems":1500,"items":{"type":"integer","minimum":1}}'
    assert hear(ask("Hi", response_format=json_schema(fields))).text.startswith("[")
    error = refused(ask("Hi", response_format=json_schema(fields), candidate_count=100))
    assert error.metadata == {"field": "response_format.json_schema.schema_json"}


def test_a_malformed_keyword_is_named_by_its_path() -> None:
    error = refused(ask("Hi", response_format=json_schema('{"properties":{"a":{"minLength":"3"}}}')))
    assert error.metadata == {"field": "response_format.json_schema.schema_json.properties.a.minLength"}
