"""Encoding of the options of a responses request to a provider: all fields beside its conversation and tools."""

from typing import assert_never, get_args

from umg_grpc.knowledge.model_quirk_definitions import NO_QUIRKS, Quirks
from umg_grpc.v1 import pb
from umg_grpc.wire.core.json_decoding import JsonObject, json_text
from umg_grpc.wire.core.reasoning_effort_order import fit_reasoning, nearest_effort
from umg_grpc.wire.dropped_fields_report import Report, untranslatable
from umg_grpc.wire.facts_beside_request import RequestNotes
from umg_grpc.wire.model_quirks import copied_fields, supports_reasoning
from umg_grpc.wire.responses import schema
from umg_grpc.wire.responses.content_parts import IMAGE_DETAILS
from umg_grpc.wire.responses.encode_messages import encode_instructions
from umg_grpc.wire.responses.structured_output import encode_json_format
from umg_grpc.wire.responses.tool_choice import encode_choice
from umg_grpc.wire.responses.tools import encode_tools
from umg_grpc.wire.unsupported_field_detection import reject_several_candidates, report_unsupported

LOGPROBS_INCLUDE, ENCRYPTED_INCLUDE = "message.output_text.logprobs", "reasoning.encrypted_content"
SERVICE_TIERS = get_args(schema.ServiceTier)
TRUNCATION_MODES = {"auto": pb.TRUNCATION_AUTO, "disabled": pb.TRUNCATION_DISABLED}
TRUNCATION_NAMES = {value: name for name, value in TRUNCATION_MODES.items()}

# Fields of the same name on both sides.
COPIED_NAMES = {
    name: name
    for name in (
        *("temperature", "top_p", "max_output_tokens", "top_logprobs", "parallel_tool_calls"),
        *("max_tool_calls", "previous_response_id", "user", "safety_identifier"),
        *("service_tier", "prompt_cache_key", "prompt_cache_retention"),
    )
}

# Fields that no responses provider supports.
UNSUPPORTED_FIELDS = (
    *("top_k", "seed", "presence_penalty", "frequency_penalty", "logit_bias", "image_output", "audio_output"),
    *("prediction", "cache_control", "safety_settings", "incremental_output", "speech_language"),
)

# Canonical field -> the fields of a body that contain it, where the name differs.
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

MIN_OUTPUT_TOKENS = 16  # providers reject a lower limit of output tokens


def report_unsupported_fields(request: pb.GenerateRequest, notes: RequestNotes, report: Report) -> None:
    """Report fields that this format lacks, and unknown ones. Raise UmgError(UNTRANSLATABLE, UNSUPPORTED_FIELD) for
    fields whose loss would change the meaning, for example several candidates.
    """
    report_unsupported(request, notes, report, indispensable=("cached_content",), unsupported=UNSUPPORTED_FIELDS)
    reject_several_candidates(request)
    if any(kind != "text" for kind in request.output_modalities):
        report.drop("output_modalities")
    if request.media_detail and request.media_detail not in IMAGE_DETAILS:
        report.drop("media_detail")


def encode_options(request: pb.GenerateRequest, report: Report, quirks: Quirks = NO_QUIRKS) -> JsonObject:
    """Return the body except `model`, `input` and `stream`. Raise UmgError(UNTRANSLATABLE, INVALID_FIELD) for content
    whose loss would change the meaning.
    """
    fields = _encode_copied_fields(request, report, quirks)
    if instructions := encode_instructions(request, report, quirks):
        fields["instructions"] = instructions
    if request.conversation_id:
        fields["conversation"] = request.conversation_id
    if request.truncation:
        fields["truncation"] = TRUNCATION_NAMES[request.truncation]
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
    if supports_reasoning(request, quirks, report):
        fields |= encode_reasoning(request, report, quirks)
    fields |= _encode_storage(request, quirks)
    if request.logprobs and "logprobs" in (quirks.rejects or ()):
        report.drop("logprobs")
    if text := encode_text(request, report, quirks):
        fields["text"] = text
    if request.HasField("include_obfuscation"):
        fields["stream_options"] = {"include_obfuscation": request.include_obfuscation}
    return fields


def _encode_copied_fields(request: pb.GenerateRequest, report: Report, quirks: Quirks) -> JsonObject:
    fields = copied_fields(request, COPIED_NAMES, SERVICE_TIERS, quirks, report)
    if request.HasField("max_output_tokens") and request.max_output_tokens < MIN_OUTPUT_TOKENS and _is_foreign(request):
        fields["max_output_tokens"] = MIN_OUTPUT_TOKENS
        report.drop("max_output_tokens", str(MIN_OUTPUT_TOKENS))
    return fields


def _is_foreign(request: pb.GenerateRequest) -> bool:
    return request.source.format not in ("", "responses")


def encode_prompt(prompt: pb.PromptTemplate) -> JsonObject:
    """Return the member `prompt` of a stored template. Raise UmgError(INVALID_FIELD) if variables are not JSON."""
    fields: JsonObject = {"id": prompt.prompt_id}
    if prompt.version:
        fields["version"] = prompt.version
    if prompt.variables_json:
        fields["variables"] = json_text(prompt.variables_json, "prompt_template.variables_json")
    return fields


def encode_text(request: pb.GenerateRequest, report: Report, quirks: Quirks = NO_QUIRKS) -> JsonObject:
    """Return the member `text`; {} if the request sets neither format nor verbosity. Report unenforced constraints.
    Raise UmgError(UNTRANSLATABLE) for a response that must be one value of an enumeration.
    """
    fields = JsonObject()
    match request.response_format.WhichOneof("kind"):
        case "text":
            fields["format"] = {"type": "text"}
        case "json" | "json_schema":
            if form := encode_json_format(request.response_format, report, quirks):
                fields["format"] = form
        case "enum_text":
            raise untranslatable("response_format", "responses has no bare enum; request JSON")
        case None:
            pass
        case unhandled:
            assert_never(unhandled)
    if request.verbosity:
        fields["verbosity"] = request.verbosity
    return fields


def encode_reasoning(request: pb.GenerateRequest, report: Report, quirks: Quirks = NO_QUIRKS) -> JsonObject:
    """Return {"reasoning": {...}} with the effort, and a summary for callers that want to see reasoning; {} without
    options. A budget or mode becomes the nearest effort, which is reported.
    """
    reasoning = request.reasoning
    effort = reasoning.effort or reasoning.level
    if reasoning.display:
        report.drop("reasoning.display")
    if quirks.efforts is not None or quirks.thinking is not None:
        effort = fit_reasoning(reasoning, quirks, report, has_switch=False).effort
    elif reasoning.HasField("budget_tokens") and not effort:
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
    if reasoning.summary:
        return "" if reasoning.summary == "none" else reasoning.summary
    seen = reasoning.include_thoughts if reasoning.HasField("include_thoughts") else reasoning.mode in SHOWING_MODES
    return "auto" if seen and effort != "none" and reasoning.display != "omitted" else ""


SHOWING_MODES = (pb.REASONING_MODE_ENABLED, pb.REASONING_MODE_ADAPTIVE, pb.REASONING_MODE_BETWEEN_TOOLS)


def _encode_storage(request: pb.GenerateRequest, quirks: Quirks) -> JsonObject:
    """Return `store` and `include`. Other formats' requests are stored on demand only: callers could not read them."""
    include, fields = list(request.include), JsonObject()
    if "logprobs" in (quirks.rejects or ()):  # an element of `include` requests them in this format
        include = [name for name in include if name != LOGPROBS_INCLUDE]
    elif request.logprobs and LOGPROBS_INCLUDE not in include:
        include.append(LOGPROBS_INCLUDE)
    if request.HasField("store"):
        fields["store"] = request.store
    elif request.source.format != "responses":
        fields["store"] = False
    if (
        fields.get("store") is False
        and quirks.reasoning is not False
        and _uses_reasoning(request)
        and ENCRYPTED_INCLUDE not in include
    ):
        include.append(ENCRYPTED_INCLUDE)
    if include:
        fields["include"] = include
    return fields


def _uses_reasoning(request: pb.GenerateRequest) -> bool:
    """Return whether a request of another format enables reasoning or has a state. False for callers of this format,
    which set `include` themselves.
    """
    if request.source.format == "responses":
        return False  # a caller of this format sets `include` itself
    reasoning = request.reasoning
    off = reasoning.mode == pb.REASONING_MODE_DISABLED or "none" in (reasoning.effort, reasoning.level)
    none = reasoning.HasField("budget_tokens") and reasoning.budget_tokens == 0
    if request.HasField("reasoning") and not off and not none:
        return True
    return any(part.state.format == "responses" for message in request.messages for part in message.parts)
