"""The request, both directions: a caller's body -> canonical, canonical -> a provider's body."""

from collections.abc import Mapping
from operator import attrgetter
from typing import get_args

import msgspec

from umg_grpc.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.chat import dialect, schema
from umg_grpc.wire.chat.content import DETAILS, MessageEncoder, decode_messages
from umg_grpc.wire.chat.tools import decode_tools, encode_search_options, encode_tools
from umg_grpc.wire.format import FaceRequest, UpstreamRequest
from umg_grpc.wire.json import JsonObject, check_utf8, given, invalid, json_object, json_text, missing, parse, whole
from umg_grpc.wire.report import Report
from umg_grpc.wire.schemas import json_schema

PATH = "/chat/completions"

THINKING = {"enabled": pb.REASONING_MODE_ENABLED, "disabled": pb.REASONING_MODE_DISABLED}
THINKING_NAMES = {value: name for name, value in THINKING.items()}

# Fields of one name and type on both sides.
SAME = (
    "temperature",
    "top_p",
    "top_k",
    "presence_penalty",
    "frequency_penalty",
    "logprobs",
    "parallel_tool_calls",
    "store",
    "verbosity",
    "user",
    "safety_identifier",
    "service_tier",
    "prompt_cache_key",
)
_same = attrgetter(*SAME)

# (ours, canonical); of the two limits the newer one wins, so it stands last.
WHOLE_NUMBERS = (
    ("n", "candidate_count"),
    ("seed", "seed"),
    ("top_logprobs", "top_logprobs"),
    ("max_tokens", "max_output_tokens"),
    ("max_completion_tokens", "max_output_tokens"),
)
_whole_numbers = attrgetter(*(name for name, _ in WHOLE_NUMBERS))

WIRE_NAMES = {name: name for name in (*SAME, "seed", "top_logprobs", "prompt_cache_retention")}
WIRE_NAMES |= {"max_output_tokens": "max_tokens", "candidate_count": "n"}
del WIRE_NAMES["top_k"]  # the providers of the format itself refuse it

SERVICE_TIERS = get_args(schema.ServiceTier)

# What no chat provider can be told: without the first the answer would be another.
INDISPENSABLE = ("previous_response_id", "conversation_id", "prompt_template")
UNSAYABLE = (
    "top_k",
    "max_tool_calls",
    "include",
    "truncation",
    "cached_content",
    "cache_control",
    "safety_settings",
    "image_output",
)

# Share of a budget -> effort, with thresholds midway between the budgets that gateways give to the efforts (1024, 8192,
# 24576).
EFFORT_BY_BUDGET = [(0, "none"), (4608, "low"), (16384, "medium")]


# --- caller -> canonical


def decode_request(body: bytes, headers: Mapping[str, str]) -> FaceRequest:
    """The request with its source. Raises UmgError: MALFORMED_BODY, MISSING_FIELD, INVALID_FIELD, UNSUPPORTED_FIELD for
    a file part.

    Family rules are not applied here. Not shown: whether `parameters` or the top level wins; we take the top level.
    """
    chat, unknown = _read(body)
    request = pb.GenerateRequest(model=chat.model)
    decode_messages(chat.messages, request)
    if chat.tools or chat.functions or given(chat.tool_choice) or chat.function_call:
        decode_tools(chat, request)
    _decode_options(chat, request)
    source = request.source
    source.format, source.body = "chat", body
    if unknown:
        source.unknown_field_count = unknown
    if headers:
        source.headers.update(headers)
    return FaceRequest(request, chat.stream is True)


def _read(body: bytes) -> tuple[schema.ChatRequest, int]:
    """The body, and how many fields of it nobody knows. Most bodies have none, which one pass tells."""
    try:
        return _KNOWN.decode(check_utf8(body)), 0
    except (ValueError, RecursionError):
        chat = parse(schema.ChatRequest, body)
        return chat, len(parse(dict[str, msgspec.Raw], body).keys() - dialect.KNOWN)


_KNOWN = msgspec.json.Decoder(schema.KnownChatRequest)


def _decode_options(chat: schema.ChatRequest, request: pb.GenerateRequest) -> None:
    for name, value in zip(SAME, _same(chat), strict=True):
        if value is not None:
            setattr(request, name, value)
    for (name, target), number in zip(WHOLE_NUMBERS, _whole_numbers(chat), strict=True):
        if number is not None:
            setattr(request, target, whole(number, name))
    if chat.stop:
        request.stop_sequences.extend([chat.stop] if isinstance(chat.stop, str) else chat.stop)
    if chat.stream_options:
        request.include_usage = chat.stream_options.include_usage is True
        if chat.stream_options.include_obfuscation is not None:
            request.include_obfuscation = chat.stream_options.include_obfuscation
    if chat.logit_bias:
        request.logit_bias.update(chat.logit_bias)
    if chat.metadata:
        request.metadata.update(chat.metadata)
    if chat.vendorn_thinking_to_content:
        request.thinking_to_content = True
    _decode_cache(chat, request)
    _decode_output(chat, request)
    _decode_reasoning(chat, request)
    _decode_search(chat, request)


def _decode_cache(chat: schema.ChatRequest, request: pb.GenerateRequest) -> None:
    if chat.prompt_cache_retention:
        request.prompt_cache_retention = chat.prompt_cache_retention.replace("-", "_")
    if given(chat.prompt_cache_options):
        request.prompt_cache_options_json = json_object(chat.prompt_cache_options, "prompt_cache_options")
    if given(chat.moderation):
        request.moderation_json = json_object(chat.moderation, "moderation")


def _decode_format(chosen: schema.ResponseFormat, target: pb.ResponseFormat) -> None:
    if chosen.type == "text":
        target.text.SetInParent()
    elif chosen.type == "json_object":
        target.json.SetInParent()
    elif chosen.json_schema is None:
        raise missing("response_format.json_schema")
    else:
        described = chosen.json_schema
        target.json_schema.name = described.name
        target.json_schema.description = described.description or ""
        if given(described.schema):
            target.json_schema.schema_json = json_object(described.schema, "response_format.json_schema.schema")
        if described.strict is not None:
            target.json_schema.strict = described.strict


def _decode_output(chat: schema.ChatRequest, request: pb.GenerateRequest) -> None:
    if chat.response_format:
        _decode_format(chat.response_format, request.response_format)
    if chat.modalities:
        request.output_modalities.extend(chat.modalities)
    if chat.audio:
        voice = chat.audio.voice
        request.audio_output.format = chat.audio.format
        request.audio_output.voice_json = voice if isinstance(voice, str) else msgspec.json.encode(voice).decode()
    if chat.prediction:
        content = chat.prediction.content
        for text in [content] if isinstance(content, str) else [part.text for part in content]:
            request.prediction.add().text.text = text


def _decode_reasoning(chat: schema.ChatRequest, request: pb.GenerateRequest) -> None:
    if chat.reasoning_effort:
        request.reasoning.effort = chat.reasoning_effort
    if chat.thinking:
        request.reasoning.mode = THINKING[chat.thinking.type]
        _set_budget(request, chat.thinking.budget_tokens, "thinking.budget_tokens")
    elif chat.enable_thinking is not None:
        request.reasoning.mode = pb.REASONING_MODE_ENABLED if chat.enable_thinking else pb.REASONING_MODE_DISABLED
        request.reasoning.declared_as_enable_thinking = True
    for at, config in dialect.thinking_configs(chat):
        _set_budget(request, config.thinking_budget, f"{at}.thinking_budget")
        _set_budget(request, config.camel_budget, f"{at}.thinkingBudget")
        for thoughts in (config.include_thoughts, config.camel_thoughts):
            if thoughts is not None:
                request.reasoning.include_thoughts = thoughts
        for level, name in ((config.thinking_level, "thinking_level"), (config.camel_level, "thinkingLevel")):
            if level is not None:
                request.reasoning.level = dialect.level(level, f"{at}.{name}")


def _set_budget(request: pb.GenerateRequest, value: float | None, field: str) -> None:
    budget = whole(value, field)
    if budget is None:
        return
    if budget < -1:
        raise invalid(field, "expected -1 (automatic), 0 (off) or a number of tokens; send one of them")
    request.reasoning.budget_tokens = budget


def _decode_search(chat: schema.ChatRequest, request: pb.GenerateRequest) -> None:
    if (options := chat.web_search_options) is not None:
        request.search.SetInParent()
        request.search.context_size = options.search_context_size or ""
        if options.user_location:
            place, target = options.user_location.approximate, request.search.user_location
            target.SetInParent()
            target.country, target.region = place.country or "", place.region or ""
            target.city, target.timezone = place.city or "", place.timezone or ""
    if (famx := chat.search_parameters) is not None:
        request.search.mode = famx.mode or "auto"  # not shown; the provider's own default
        if famx.return_citations is not None:
            request.search.return_citations = famx.return_citations
        for name in ("sources", "from_date", "to_date", "max_search_results"):
            if given(getattr(famx, name)):
                request.source.uncarried_fields.append(f"search_parameters.{name}")
    if chat.parameters:
        _decode_parameters(chat.parameters, request)
    for kind in dialect.search_tools(chat):
        request.tools.add().web_search.declared_type = kind


def _decode_parameters(parameters: schema.Parameters, request: pb.GenerateRequest) -> None:
    """The container of family famQ."""
    for name in ("temperature", "top_p"):
        value = getattr(parameters, name)
        if value is not None and not request.HasField(name):
            setattr(request, name, value)
    if parameters.incremental_output is not None:
        request.incremental_output = parameters.incremental_output
    if parameters.enable_search is not None:
        request.search.mode = "on" if parameters.enable_search else "off"
    if parameters.search_options:
        request.search.region = parameters.search_options.region or ""
        if (
            days := whole(parameters.search_options.recency_days, "parameters.search_options.recency_days")
        ) is not None:
            request.search.recency_days = days
    if parameters.asr_options:
        request.speech_language = parameters.asr_options.language or ""


# --- canonical -> provider


def encode_request(request: pb.GenerateRequest, model: str, stream: bool) -> UpstreamRequest:
    """The call of `POST /chat/completions`. Raises UmgError(UNTRANSLATABLE, UNSUPPORTED_FIELD) with the canonical path
    in `field`.
    """
    report = Report()
    if request.source.format == "chat":
        return UpstreamRequest(
            PATH, dialect.rebuild(request, model, stream, report), dict(request.source.headers), report
        )
    said = {field.name for field, _ in request.ListFields()}
    for field in [*request.source.indispensable_fields, *(field for field in INDISPENSABLE if field in said)]:
        message = f"`{field}`: this model's provider cannot be told; leave it out or choose another model"
        raise UmgError(pb.ERROR_REASON_UNTRANSLATABLE, message, field=field)
    for field in [*request.source.uncarried_fields, *(field for field in UNSAYABLE if field in said)]:
        report.drop(field)
    if request.media_detail and request.media_detail not in DETAILS:
        report.drop("media_detail")
    report.unknown += request.source.unknown_field_count
    fields: JsonObject = {"model": model, "messages": MessageEncoder(request, report).encode()}
    fields |= encode_tools(request, report)
    fields |= _encode_sampling(request, report)
    fields |= _encode_output(request)
    fields |= _encode_reasoning(request, report)
    fields |= _encode_search(request)
    if request.tools and "tools" not in fields:
        fields.pop("parallel_tool_calls", None)  # refused without tools
    if stream:
        options: JsonObject = {"include_usage": True}
        if request.HasField("include_obfuscation"):
            options["include_obfuscation"] = request.include_obfuscation
        fields |= {"stream": True, "stream_options": options}
    return UpstreamRequest(PATH, msgspec.json.encode(fields), {}, report)


def _encode_sampling(request: pb.GenerateRequest, report: Report) -> JsonObject:
    fields: JsonObject = {
        WIRE_NAMES[field.name]: value for field, value in request.ListFields() if field.name in WIRE_NAMES
    }
    if request.service_tier and request.service_tier not in SERVICE_TIERS:
        del fields["service_tier"]  # another format's word
        report.drop("service_tier")
    if request.stop_sequences:
        fields["stop"] = list(request.stop_sequences)
    if request.logit_bias:
        fields["logit_bias"] = dict(request.logit_bias)
    if request.metadata:
        fields["metadata"] = dict(request.metadata)
    if request.prompt_cache_options_json:
        fields["prompt_cache_options"] = json_text(request.prompt_cache_options_json, "prompt_cache_options_json")
    if request.moderation_json:
        fields["moderation"] = json_text(request.moderation_json, "moderation_json")
    return fields


def _encode_output(request: pb.GenerateRequest) -> JsonObject:
    fields = JsonObject()
    match request.response_format.WhichOneof("kind"):
        case "text":
            fields["response_format"] = {"type": "text"}
        case "json":
            fields["response_format"] = {"type": "json_object"}
        case "json_schema":
            fields["response_format"] = {
                "type": "json_schema",
                "json_schema": _encode_schema(request.response_format.json_schema),
            }
        case "enum_text":
            raise UmgError(
                pb.ERROR_REASON_UNTRANSLATABLE,
                "`response_format`: chat has no bare enum; ask for JSON",
                field="response_format",
            )
    if request.output_modalities:
        fields["modalities"] = list(request.output_modalities)
    if request.HasField("audio_output"):
        voice = request.audio_output.voice_json
        named = json_text(voice, "audio_output.voice_json") if voice.startswith("{") else voice
        fields["audio"] = {"format": request.audio_output.format, "voice": named}
    if request.prediction:
        for position, part in enumerate(request.prediction):
            if not part.HasField("text"):
                field = f"prediction[{position}]"
                raise UmgError(pb.ERROR_REASON_UNTRANSLATABLE, f"{field}: a prediction is text in chat", field=field)
        parts = [{"type": "text", "text": part.text.text} for part in request.prediction]
        fields["prediction"] = {"type": "content", "content": parts if len(parts) > 1 else parts[0]["text"]}
    return fields


def _encode_schema(described: pb.JsonSchemaFormat) -> JsonObject:
    fields: JsonObject = {"name": described.name or "answer"}  # required here, absent in messages and native
    if described.description:
        fields["description"] = described.description
    if described.schema_json:
        fields["schema"] = json_schema(
            described.schema_json, described.native_schema, "response_format.json_schema.schema_json"
        )
    if described.HasField("strict"):
        fields["strict"] = described.strict
    return fields


def _encode_reasoning(request: pb.GenerateRequest, report: Report) -> JsonObject:
    """Effort where there is one, else what comes nearest to it.

    The switches `thinking` and `enable_thinking` are our document's: they are sent for a request that was written for
    it (no source of another format), since other providers refuse them.
    """
    reasoning = request.reasoning
    for field in ("summary", "display"):
        if getattr(reasoning, field):
            report.drop(f"reasoning.{field}")
    if reasoning.HasField("include_thoughts"):
        report.drop("reasoning.include_thoughts")
    effort = reasoning.effort or reasoning.level
    fields = JsonObject()
    if reasoning.mode in THINKING_NAMES and not request.HasField("source"):
        enabled = reasoning.mode == pb.REASONING_MODE_ENABLED
        switch: JsonObject = {"type": THINKING_NAMES[reasoning.mode]}
        if reasoning.HasField("budget_tokens"):
            switch["budget_tokens"] = reasoning.budget_tokens
        fields = {"enable_thinking": enabled} if reasoning.declared_as_enable_thinking else {"thinking": switch}
        if reasoning.declared_as_enable_thinking and reasoning.HasField("budget_tokens"):
            report.drop("reasoning.budget_tokens")
    elif reasoning.HasField("budget_tokens"):
        nearest = _effort(reasoning.budget_tokens)
        effort = effort or nearest
        report.drop("reasoning.budget_tokens", f"effort {effort}" if effort else None)
    elif reasoning.mode:
        report.drop("reasoning.mode")
    if effort:
        fields["reasoning_effort"] = effort
    return fields


def _effort(budget: int) -> str:
    """The nearest effort; "" for -1, where the model decides."""
    if budget < 0:
        return ""
    return next((effort for limit, effort in EFFORT_BY_BUDGET if budget <= limit), "high")


def _encode_search(request: pb.GenerateRequest) -> JsonObject:
    fields, search = JsonObject(), request.search
    parameters = JsonObject()
    if request.HasField("incremental_output"):
        parameters["incremental_output"] = request.incremental_output
    if request.speech_language:
        parameters["asr_options"] = {"language": request.speech_language}
    area = {field.name: value for field, value in search.ListFields() if field.name in ("region", "recency_days")}
    if area:
        parameters["search_options"] = area
    if search.HasField("return_citations") or (search.mode and not parameters):
        fields["search_parameters"] = {
            field.name: value for field, value in search.ListFields() if field.name in ("mode", "return_citations")
        }
    elif search.mode:
        parameters["enable_search"] = search.mode != "off"
    if parameters:
        fields["parameters"] = parameters
    if (
        search.context_size
        or search.HasField("user_location")
        or (request.HasField("search") and not search.ListFields())
    ):
        location = search.user_location if search.HasField("user_location") else None
        fields["web_search_options"] = encode_search_options(search.context_size, location)
    return fields
