"""Encoding of a canonical request as a native body: from other formats, or after a model's rules changed fields."""

import re
from collections.abc import Mapping

from umg_grpc.knowledge.model_quirk_definitions import Quirks
from umg_grpc.v1 import pb
from umg_grpc.wire.core.json_decoding import JsonObject
from umg_grpc.wire.core.prompt_cache_marks import PromptMark, lasts_an_hour
from umg_grpc.wire.dropped_fields_report import Report
from umg_grpc.wire.facts_beside_request import RequestNotes
from umg_grpc.wire.native.encode_messages import ContentEncoder
from umg_grpc.wire.native.generation_config import encode_config
from umg_grpc.wire.native.provider_tool_names import tool_names
from umg_grpc.wire.native.structured_output import add_instructions
from umg_grpc.wire.native.tools import encode_tools
from umg_grpc.wire.unsupported_field_detection import report_unsupported

# Legal keys and values of labels: the provider rejects the whole call for any other.
LABEL_KEY, LABEL_VALUE = re.compile(r"[a-z][\w-]{0,62}"), re.compile(r"[\w-]{0,63}")
SERVICE_TIERS = ("standard", "flex", "priority")

# Fields that no native provider has. Without the indispensable ones the response would be another.
INDISPENSABLE_FIELDS = ("previous_response_id", "conversation_id", "prompt_template", "thread")
UNSUPPORTED_FIELDS = (
    *("logit_bias", "prediction", "speech_language", "max_tool_calls", "verbosity", "include"),
    *("cache_control", "prompt_cache_key", "prompt_cache_options_json", "prompt_cache_retention"),
    *("moderation_json", "user", "safety_identifier", "incremental_output"),
)


def encode_body(
    request: pb.GenerateRequest,
    notes: RequestNotes,
    model: str,
    report: Report,
    quirks: Quirks,
    marks: list[PromptMark],
) -> JsonObject:
    """Return the body for a request of another format. Raise UmgError(UNTRANSLATABLE, UNSUPPORTED_FIELD) for content
    that must not be lost. `marks`: collects prompt cache marks.
    """
    report_unsupported(request, notes, report, indispensable=INDISPENSABLE_FIELDS, unsupported=UNSUPPORTED_FIELDS)
    encoder = _encoder(request, model, report, quirks)
    fields = encoder.encode() | encode_options(request, model, report, quirks)
    add_instructions(fields, request, quirks)
    marks += encoder.marks
    marked = (tool.cache_control for tool in request.tools if tool.HasField("cache_control"))
    marks += (PromptMark(0, 0, lasts_an_hour(mark)) for mark in marked)
    if request.HasField("cache_control"):
        contents = fields["contents"]
        last = len(contents) - 1 if isinstance(contents, list) else 0
        marks.append(PromptMark(last, 0, lasts_an_hour(request.cache_control)))
    return fields


def encode_messages(request: pb.GenerateRequest, model: str, report: Report, quirks: Quirks) -> JsonObject:
    """Return the messages of a request as `contents` and `systemInstruction`; report content left out."""
    return _encoder(request, model, report, quirks).encode()


def _encoder(request: pb.GenerateRequest, model: str, report: Report, quirks: Quirks) -> ContentEncoder:
    marks = quirks.system_place == "first"
    return ContentEncoder(request, model, tool_names(request), report, marks_instructions=marks)


def encode_options(request: pb.GenerateRequest, model: str, report: Report, quirks: Quirks) -> JsonObject:
    """Return all members of a provider's body but the messages and instruction; report options left out or changed."""
    fields = encode_tools(request, tool_names(request), report, quirks)
    if config := encode_config(request, model, report, quirks):
        fields["generationConfig"] = config
    if request.safety_settings:
        fields["safetySettings"] = [
            {"category": setting.category, "threshold": setting.threshold} for setting in request.safety_settings
        ]
    if request.cached_content:
        fields["cachedContent"] = request.cached_content
    if labels := _labels(request.metadata, report):
        fields["labels"] = labels
    if request.service_tier in SERVICE_TIERS:
        fields["serviceTier"] = request.service_tier
    elif request.service_tier:
        report.drop("service_tier")
    if request.HasField("store"):
        fields["store"] = request.store
    return fields


def _labels(metadata: Mapping[str, str], report: Report) -> JsonObject:
    labels: JsonObject = {
        key: value
        for key, value in metadata.items()
        if LABEL_KEY.fullmatch(key) and LABEL_VALUE.fullmatch(value) and (key + value).lower() == key + value
    }
    if len(labels) < len(metadata):
        report.drop("metadata")
    return labels
