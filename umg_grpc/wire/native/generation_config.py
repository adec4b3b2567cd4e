"""Generation options of native (`generationConfig`): decoded from a caller's body, encoded for a provider."""

from msgspec import Raw

from umg_grpc.knowledge.model_quirk_definitions import Quirks
from umg_grpc.v1 import pb
from umg_grpc.wire.core.json_decoding import INT64_MAX, JsonObject, is_present, json_object, whole
from umg_grpc.wire.core.reasoning_effort_order import fit_reasoning
from umg_grpc.wire.dropped_fields_report import Report
from umg_grpc.wire.model_quirks import output_limit, rejected_sampling, supports_reasoning
from umg_grpc.wire.native import schema
from umg_grpc.wire.native.content_parts import RESOLUTION_PREFIX, resolution
from umg_grpc.wire.native.encode_messages import generation
from umg_grpc.wire.native.proto_json_normalization import Notes, read
from umg_grpc.wire.native.structured_output import ENUM_TYPE, JSON_TYPE, TEXT_TYPE, encode_format

CONFIG_PATH = "generationConfig"

# Canonical field -> native field of the same type.
COPIED_FIELDS = {
    "temperature": "temperature",
    "top_p": "topP",
    "top_k": "topK",
    "presence_penalty": "presencePenalty",
    "frequency_penalty": "frequencyPenalty",
    "logprobs": "responseLogprobs",
    "max_output_tokens": "maxOutputTokens",
    "candidate_count": "candidateCount",
    "seed": "seed",
    "top_logprobs": "logprobs",
}
NUMBER_FIELDS = ("temperature", "top_p", "top_k", "presence_penalty", "frequency_penalty")
# (field of the struct, canonical field, name in the body)
WHOLE_NUMBERS = (
    ("max_output_tokens", "max_output_tokens", "maxOutputTokens"),
    ("candidate_count", "candidate_count", "candidateCount"),
    ("logprobs", "top_logprobs", "logprobs"),
)
SEED_RANGE = range(-(2**31), 2**31)  # 32 bits, as the provider requires

MEDIA_RESOLUTIONS = ("low", "medium", "high")

# Budget of an effort as other gateways set it (reference, 6.4: Gemini compat endpoint). An effort without a level of
# its own name has its level below.
EFFORT_BUDGETS = {"none": 0, "minimal": 1024, "low": 1024, "medium": 8192, "high": 24576, "xhigh": 24576, "max": 24576}
LEVELS_SINCE = 3  # first generation that takes levels
EFFORT_LEVELS = {"none": "MINIMAL", "xhigh": "HIGH", "max": "HIGH"}
SHOWING_MODES = (pb.REASONING_MODE_ENABLED, pb.REASONING_MODE_ADAPTIVE)  # modes of a format that shows its reasoning


# --- caller -> canonical


def decode_config(config: schema.GenerationConfig, request: pb.GenerateRequest, notes: Notes) -> None:
    """Decode `generationConfig`. `notes`: receives members without a canonical form. Raise UmgError with the path."""
    for name in NUMBER_FIELDS:
        if (value := getattr(config, name)) is not None:
            setattr(request, name, value)
    for name, target, path in WHOLE_NUMBERS:
        if (number := whole(getattr(config, name), f"{CONFIG_PATH}.{path}")) is not None:
            setattr(request, target, number)
    if (seed := whole(config.seed, f"{CONFIG_PATH}.seed", INT64_MAX)) is not None:
        request.seed = seed
    if config.response_logprobs is not None:
        request.logprobs = config.response_logprobs
    request.stop_sequences.extend(config.stop_sequences or ())
    request.media_detail = resolution(config.media_resolution)
    modalities = (word.lower() for word in config.response_modalities or ())
    request.output_modalities.extend(word for word in modalities if word != "modality_unspecified")
    _decode_format(config, request, notes)
    if config.thinking_config is not None:
        _decode_thinking(config.thinking_config, request.reasoning)
    if config.image_config is not None:
        _decode_images(config.image_config, request.image_output)
    if is_present(config.speech_config):
        _decode_speech(config.speech_config, request, notes)


def _decode_format(config: schema.GenerationConfig, request: pb.GenerateRequest, notes: Notes) -> None:
    mime = (config.response_mime_type or "").strip().lower()
    native = is_present(config.response_schema) and not is_present(config.response_json_schema)
    schema_json = ""
    for raw, name in ((config.response_schema, "responseSchema"), (config.response_json_schema, "responseJsonSchema")):
        if is_present(raw):
            schema_json = json_object(raw, f"{CONFIG_PATH}.{name}")
    target = request.response_format
    if mime == ENUM_TYPE:
        target.enum_text.schema_json, target.enum_text.native_schema = schema_json, native
    elif schema_json:
        target.json_schema.schema_json, target.json_schema.native_schema = schema_json, native
    elif mime == JSON_TYPE:
        target.json.SetInParent()
    elif mime == TEXT_TYPE:
        target.text.SetInParent()
    if mime not in {"", JSON_TYPE, ENUM_TYPE, TEXT_TYPE}:
        notes.request.uncarried.append(f"{CONFIG_PATH}.responseMimeType")


def _decode_thinking(config: schema.ThinkingConfig, reasoning: pb.ReasoningOptions) -> None:
    reasoning.SetInParent()
    if (budget := whole(config.thinking_budget, f"{CONFIG_PATH}.thinkingConfig.thinkingBudget")) is not None:
        reasoning.budget_tokens = budget
    if config.thinking_level and config.thinking_level != "THINKING_LEVEL_UNSPECIFIED":
        reasoning.level = config.thinking_level.lower()
    if config.include_thoughts is not None:
        reasoning.include_thoughts = config.include_thoughts


def _decode_images(config: schema.ImageConfig, target: pb.ImageOutputOptions) -> None:
    target.SetInParent()
    target.aspect_ratio, target.image_size = config.aspect_ratio or "", config.image_size or ""
    options = config.image_output_options
    target.mime_type = (options.mime_type if options else None) or config.output_mime_type or ""


def _decode_speech(raw: Raw, request: pb.GenerateRequest, notes: Notes) -> None:
    speech = read(schema.SpeechConfig, raw, notes, f"{CONFIG_PATH}.speechConfig")
    voice = speech.voice_config.prebuilt_voice_config if speech.voice_config else None
    if voice and voice.voice_name:
        request.audio_output.voice_json = voice.voice_name
    if (
        is_present(speech.language_code)
        or is_present(speech.multi_speaker_voice_config)
        or not (voice and voice.voice_name)
    ):
        notes.request.uncarried.append(f"{CONFIG_PATH}.speechConfig")


# --- canonical -> provider


def encode_config(request: pb.GenerateRequest, model: str, report: Report, quirks: Quirks) -> JsonObject:
    """Return `generationConfig`; report lost options. Raise UmgError(INVALID_FIELD) for a schema that is not JSON."""
    fields: JsonObject = {
        COPIED_FIELDS[field.name]: value for field, value in request.ListFields() if field.name in COPIED_FIELDS
    }
    if not request.top_logprobs and not request.logprobs:
        fields.pop("logprobs", None)  # 0 alone requests none; the provider refuses it
    if (limit := output_limit(request, quirks, report)) is not None:
        fields["maxOutputTokens"] = limit
    for name in rejected_sampling(request, quirks, report):
        fields.pop(COPIED_FIELDS[name], None)
    if request.HasField("seed") and request.seed not in SEED_RANGE:
        del fields["seed"]
        report.drop("seed")
    if stops := request.stop_sequences[: quirks.max_stop_sequences]:
        fields["stopSequences"] = list(stops)
    fields |= encode_format(request, report, quirks)
    if request.output_modalities:
        fields["responseModalities"] = [word.upper() for word in request.output_modalities]
    if request.media_detail in MEDIA_RESOLUTIONS:
        fields["mediaResolution"] = RESOLUTION_PREFIX + request.media_detail.upper()
    elif request.media_detail:
        report.drop("media_detail")
    if request.HasField("audio_output"):
        fields |= _encode_speech(request.audio_output, report)
    has_reasoning = request.HasField("reasoning") and supports_reasoning(request, quirks, report)
    if has_reasoning and (thinking := _encode_thinking(request, model, report, quirks)):
        fields["thinkingConfig"] = thinking
    if request.HasField("image_output"):
        fields["imageConfig"] = _encode_images(request.image_output)
    return fields


def _encode_speech(audio: pb.AudioOutputOptions, report: Report) -> JsonObject:
    if audio.format:
        report.drop("audio_output.format")
    if not audio.voice_json:
        return {}
    if audio.voice_json.startswith("{"):  # an object of another provider's account
        report.drop("audio_output.voice_json")
        return {}
    return {"speechConfig": {"voiceConfig": {"prebuiltVoiceConfig": {"voiceName": audio.voice_json}}}}


def _encode_images(images: pb.ImageOutputOptions) -> JsonObject:
    fields: JsonObject = {}
    if images.aspect_ratio:
        fields["aspectRatio"] = images.aspect_ratio
    if images.image_size:
        fields["imageSize"] = images.image_size
    if images.mime_type:
        fields["imageOutputOptions"] = {"mimeType": images.mime_type}
    return fields


def _encode_thinking(request: pb.GenerateRequest, model: str, report: Report, quirks: Quirks) -> JsonObject:
    """Return `thinkingConfig` with a budget or a level: providers reject both together. Unless the caller decides,
    reasoning text is requested if the caller's format has it.
    """
    reasoning = request.reasoning
    states_budget = reasoning.budget_tokens > 0 and not (reasoning.effort or reasoning.level)
    if quirks.efforts and not (states_budget and quirks.reasoning_budget is None):
        fitted = fit_reasoning(reasoning, quirks, report, has_switch=False)
        fields: JsonObject = {"thinkingLevel": fitted.effort.upper()} if fitted.effort else {}
    elif quirks.reasoning_budget:
        has_no_levels = quirks.efforts == () and bool(reasoning.level)
        budget = _budget_of_level(reasoning, report) if has_no_levels else _encode_effort(reasoning, 0, model, report)
        fields = _fitted_budget(budget, reasoning, quirks, report)
    else:
        fields = _encode_effort(reasoning, generation(model) or generation(request.model), model, report)
    if reasoning.HasField("include_thoughts"):
        fields["includeThoughts"] = reasoning.include_thoughts
    elif fields.get("thinkingBudget") != 0 and _shows_reasoning(reasoning):
        fields["includeThoughts"] = True
    if reasoning.summary not in ("", "auto", "none"):
        report.drop("reasoning.summary", "auto")
    return fields


def _budget_of_level(reasoning: pb.ReasoningOptions, report: Report) -> JsonObject:
    if reasoning.HasField("budget_tokens"):
        report.drop("reasoning.level")
        return {"thinkingBudget": reasoning.budget_tokens}
    budget = EFFORT_BUDGETS.get(reasoning.level)
    report.drop("reasoning.level", None if budget is None else f"budget {budget}")
    return {} if budget is None else {"thinkingBudget": budget}


def _fitted_budget(fields: JsonObject, reasoning: pb.ReasoningOptions, quirks: Quirks, report: Report) -> JsonObject:
    budget = fields.get("thinkingBudget")
    if quirks.budget_range is None or not isinstance(budget, int) or budget < 0:
        return fields
    fitted = min(max(budget, quirks.budget_range[0]), quirks.budget_range[1])
    if fitted != budget:
        stated = {field.name for field, _ in reasoning.ListFields()}
        named = next((name for name in ("effort", "level", "budget_tokens") if name in stated), "mode")
        report.record_final(f"reasoning.{named}", f"budget {fitted}")
    return {**fields, "thinkingBudget": fitted}


def _shows_reasoning(reasoning: pb.ReasoningOptions) -> bool:
    return (reasoning.mode in SHOWING_MODES and reasoning.display != "omitted") or reasoning.summary not in ("", "none")


def _encode_effort(reasoning: pb.ReasoningOptions, known: int, model: str, report: Report) -> JsonObject:
    """Return the amount of reasoning as a level or a budget; {} if the model decides. A level or budget, set by rules
    of the family, has precedence over the effort. An effort alone becomes a level for generations with levels, else a
    budget, which newer models accept, too.
    """
    if reasoning.level:
        if reasoning.HasField("budget_tokens"):
            report.drop("reasoning.budget_tokens", f"level {reasoning.level}")
        return {"thinkingLevel": reasoning.level.upper()}
    if reasoning.HasField("budget_tokens"):
        return {"thinkingBudget": reasoning.budget_tokens}
    if reasoning.mode == pb.REASONING_MODE_BETWEEN_TOOLS:
        report.drop("reasoning.mode")
    off = reasoning.mode == pb.REASONING_MODE_DISABLED
    effort = "none" if off else reasoning.effort
    if known >= LEVELS_SINCE:
        if not effort:
            return {}  # the model decides by itself
        level = EFFORT_LEVELS.get(effort, effort.upper())
        if effort == "none" and "flash" not in model:
            level = "LOW"  # the lowest level that larger models accept
        if level.lower() != effort:
            report.drop("reasoning.mode" if off else "reasoning.effort", f"level {level.lower()}")
        return {"thinkingLevel": level}
    if off:
        return {"thinkingBudget": 0}
    if effort:
        budget = EFFORT_BUDGETS.get(effort)
        report.drop("reasoning.effort", None if budget is None else f"budget {budget}")
        return {} if budget is None else {"thinkingBudget": budget}
    if reasoning.mode == pb.REASONING_MODE_ENABLED:
        report.drop("reasoning.mode", "budget -1")
    return {"thinkingBudget": -1} if reasoning.mode in SHOWING_MODES else {}
