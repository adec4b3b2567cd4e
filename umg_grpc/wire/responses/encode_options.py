"""All of a request beside its conversation and tools: canonical -> a provider's body."""

from typing import get_args

from umg_grpc.quirks import NO_QUIRKS, Quirks
from umg_grpc.v1 import pb
from umg_grpc.wire.efforts import nearest_effort
from umg_grpc.wire.json import JsonObject, json_text
from umg_grpc.wire.quirks import SAMPLING, end_user, output_limit, takes_reasoning, takes_sampling
from umg_grpc.wire.report import Report, untranslatable
from umg_grpc.wire.responses import schema
from umg_grpc.wire.responses.content import DETAILS
from umg_grpc.wire.responses.tools import encode_choice, encode_tools
from umg_grpc.wire.responses.turns import encode_instructions
from umg_grpc.wire.schemas import json_schema
from umg_grpc.wire.unsaid import note_unsaid, refuse_several_answers

LOGPROBS, ENCRYPTED = "message.output_text.logprobs", "reasoning.encrypted_content"
SERVICE_TIERS = get_args(schema.ServiceTier)

# Fields of one name on both sides.
SAME = frozenset(
    {
        "temperature",
        "top_p",
        "max_output_tokens",
        "top_logprobs",
        "parallel_tool_calls",
        "max_tool_calls",
        "previous_response_id",
        "truncation",
        "user",
        "safety_identifier",
        "service_tier",
        "prompt_cache_key",
        "prompt_cache_retention",
    }
)

# What no responses provider can be told.
UNSAYABLE = (
    "top_k",
    "stop_sequences",
    "seed",
    "presence_penalty",
    "frequency_penalty",
    "logit_bias",
    "image_output",
    "audio_output",
    "prediction",
    "cache_control",
    "safety_settings",
    "incremental_output",
    "speech_language",
)

# Canonical field -> the fields of a body that say it, where the name is another.
WIRE_NAMES = {
    "messages": ("input",),
    "logprobs": ("include",),
    "search": ("tools",),
    "response_format": ("text",),
    "verbosity": ("text",),
    "conversation_id": ("conversation",),
    "prompt_template": ("prompt",),
    "include_obfuscation": ("stream_options",),
    "prompt_cache_options_json": ("prompt_cache_options",),
    "moderation_json": ("moderation",),
}

FEWEST_TOKENS = 16  # of an answer: providers refuse less


def report_unsayable(request: pb.GenerateRequest, report: Report) -> None:
    """Notes what this format has no words for, and what only the source document holds."""
    note_unsaid(request, report, indispensable=("cached_content",), unsayable=UNSAYABLE)
    refuse_several_answers(request)
    if any(kind != "text" for kind in request.output_modalities):
        report.drop("output_modalities")
    if request.media_detail and request.media_detail not in DETAILS:
        report.drop("media_detail")


def encode_options(request: pb.GenerateRequest, report: Report, quirks: Quirks = NO_QUIRKS) -> JsonObject:
    """All fields save `model`, `input` and `stream`. Raises UmgError for what would change the meaning."""
    fields = _encode_same(request, report, quirks)
    if instructions := encode_instructions(request, report):
        fields["instructions"] = instructions
    if request.conversation_id:
        fields["conversation"] = request.conversation_id
    if request.HasField("prompt_template"):
        fields["prompt"] = encode_prompt(request.prompt_template)
    if request.metadata:
        fields["metadata"] = dict(request.metadata)
    if request.prompt_cache_options_json:
        fields["prompt_cache_options"] = json_text(request.prompt_cache_options_json, "prompt_cache_options_json")
    if request.moderation_json:
        fields["moderation"] = json_text(request.moderation_json, "moderation_json")
    tools = encode_tools(request, report, quirks)
    if tools:
        fields["tools"] = tools
    fields |= encode_choice(request, report, tools)
    if takes_reasoning(request, quirks, report):
        fields |= encode_reasoning(request, report)
    fields |= _encode_storage(request, quirks)
    if text := encode_text(request):
        fields["text"] = text
    if request.HasField("include_obfuscation"):
        fields["stream_options"] = {"include_obfuscation": request.include_obfuscation}
    return fields


def _encode_same(request: pb.GenerateRequest, report: Report, quirks: Quirks) -> JsonObject:
    """Return the fields of one name on both sides, within what the provider takes."""
    fields: JsonObject = {field.name: value for field, value in request.ListFields() if field.name in SAME}
    if "user" in fields:
        fields["user"] = end_user(request, quirks, report)
    if "max_output_tokens" in fields:
        fields["max_output_tokens"] = output_limit(request, quirks, report)
    if not takes_sampling(request, quirks, report):
        fields = {name: value for name, value in fields.items() if name not in SAMPLING}
    if request.service_tier and request.service_tier not in SERVICE_TIERS:
        del fields["service_tier"]  # another format's word
        report.drop("service_tier")
    if request.HasField("max_output_tokens") and request.max_output_tokens < FEWEST_TOKENS and _is_foreign(request):
        fields["max_output_tokens"] = FEWEST_TOKENS
        report.drop("max_output_tokens", str(FEWEST_TOKENS))
    return fields


def _is_foreign(request: pb.GenerateRequest) -> bool:
    return request.source.format not in ("", "responses")


def encode_prompt(prompt: pb.PromptTemplate) -> JsonObject:
    """`prompt`."""
    fields: JsonObject = {"id": prompt.prompt_id}
    if prompt.version:
        fields["version"] = prompt.version
    if prompt.variables_json:
        fields["variables"] = json_text(prompt.variables_json, "prompt_template.variables_json")
    return fields


def encode_text(request: pb.GenerateRequest) -> JsonObject:
    """`text`; empty where nothing is said of it. Raises UmgError(UNTRANSLATABLE)."""
    fields = JsonObject()
    match request.response_format.WhichOneof("kind"):
        case "text":
            fields["format"] = {"type": "text"}
        case "json":
            fields["format"] = {"type": "json_object"}
        case "json_schema":
            fields["format"] = _encode_schema(request.response_format.json_schema)
        case "enum_text":
            raise untranslatable("response_format", "responses has no bare enum; ask for JSON")
    if request.verbosity:
        fields["verbosity"] = request.verbosity
    return fields


def _encode_schema(described: pb.JsonSchemaFormat) -> JsonObject:
    field = "response_format.json_schema.schema_json"
    fields: JsonObject = {"type": "json_schema", "name": described.name or "answer"}  # required here
    if described.description:
        fields["description"] = described.description
    fields["schema"] = json_schema(described.schema_json or "{}", described.native_schema, field)
    if described.HasField("strict"):
        fields["strict"] = described.strict
    return fields


def encode_reasoning(request: pb.GenerateRequest, report: Report) -> JsonObject:
    """`reasoning`: effort where there is one, else what comes nearest to it; a summary to see the thoughts."""
    reasoning = request.reasoning
    effort = reasoning.effort or reasoning.level
    if reasoning.display:
        report.drop("reasoning.display")
    if reasoning.HasField("budget_tokens") and not effort:
        effort = nearest_effort(reasoning.budget_tokens)
        report.drop("reasoning.budget_tokens", f"effort {effort}" if effort else None)
    elif reasoning.mode == pb.REASONING_MODE_DISABLED:
        effort = "none"
    elif reasoning.mode and not effort:
        effort = "medium" if reasoning.mode == pb.REASONING_MODE_ENABLED else ""
        report.drop("reasoning.mode", f"effort {effort}" if effort else None)
    fields: JsonObject = {"effort": effort} if effort else {}
    if summary := _summary(reasoning, effort):
        fields["summary"] = summary
    return {"reasoning": fields} if fields else {}


def _summary(reasoning: pb.ReasoningOptions, effort: str) -> str:
    """Thoughts are seen as summaries only; `none` is our document's word for leaving it out."""
    if reasoning.summary:
        return "" if reasoning.summary == "none" else reasoning.summary
    seen = reasoning.include_thoughts if reasoning.HasField("include_thoughts") else reasoning.mode in SHOWING
    return "auto" if seen and effort != "none" and reasoning.display != "omitted" else ""


SHOWING = (pb.REASONING_MODE_ENABLED, pb.REASONING_MODE_ADAPTIVE, pb.REASONING_MODE_BETWEEN_TOOLS)


def _encode_storage(request: pb.GenerateRequest, quirks: Quirks) -> JsonObject:
    """`store` and `include`.

    A caller of another format does not know of stored responses: nothing is stored for it, and the reasoning's state
    travels in the answer. It is asked for where there is reasoning: models without refuse the wish.
    """
    include, fields = list(request.include), JsonObject()
    if request.logprobs and LOGPROBS not in include:
        include.append(LOGPROBS)
    if request.HasField("store"):
        fields["store"] = request.store
    elif request.source.format != "responses":
        fields["store"] = False
    if (
        fields.get("store") is False
        and quirks.reasoning is not False
        and _reasons(request)
        and ENCRYPTED not in include
    ):
        include.append(ENCRYPTED)
    if include:
        fields["include"] = include
    return fields


def _reasons(request: pb.GenerateRequest) -> bool:
    """Whether the model is asked to think, or was before."""
    if request.source.format == "responses":
        return False  # its caller says by itself what to include
    reasoning = request.reasoning
    off = reasoning.mode == pb.REASONING_MODE_DISABLED or "none" in (reasoning.effort, reasoning.level)
    none = reasoning.HasField("budget_tokens") and reasoning.budget_tokens == 0
    if request.HasField("reasoning") and not off and not none:
        return True
    return any(part.state.format == "responses" for message in request.messages for part in message.parts)
