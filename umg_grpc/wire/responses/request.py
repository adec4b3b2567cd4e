"""The request, both directions: a caller's body -> canonical, canonical -> a provider's body."""

from collections.abc import Collection, Mapping
from operator import attrgetter

import msgspec
from msgspec import Raw

from umg_grpc.errors import UmgError
from umg_grpc.quirks import NO_QUIRKS, Quirks
from umg_grpc.v1 import pb
from umg_grpc.wire.format import FaceRequest, UpstreamRequest
from umg_grpc.wire.json import (
    JsonObject,
    check_utf8,
    given,
    invalid,
    json_object,
    missing,
    parse,
    unknown_fields,
    whole,
)
from umg_grpc.wire.quirks import changed_fields
from umg_grpc.wire.report import Report
from umg_grpc.wire.responses import dialect, schema
from umg_grpc.wire.responses.fields import HARMLESS
from umg_grpc.wire.responses.items import InputDecoder
from umg_grpc.wire.responses.options import LOGPROBS, encode_options, report_unsayable
from umg_grpc.wire.responses.tools import add_tools, decode_tools
from umg_grpc.wire.responses.turns import InputEncoder
from umg_grpc.wire.unknown import note_top_level

PATH = "/responses"

# Fields of one name and type on both sides.
SAME = (
    "temperature",
    "top_p",
    "store",
    "user",
    "safety_identifier",
    "service_tier",
    "prompt_cache_key",
)
_same = attrgetter(*SAME)

WHOLE_NUMBERS = ("max_output_tokens", "top_logprobs", "max_tool_calls")
_whole_numbers = attrgetter(*WHOLE_NUMBERS)


# --- caller -> canonical


def decode_request(body: bytes, headers: Mapping[str, str]) -> FaceRequest:
    """The request with its source. Raises UmgError: MALFORMED_BODY, MISSING_FIELD, INVALID_FIELD, UNSUPPORTED_FIELD for
    a background response.
    """
    asked, unknown = _read(body)
    if asked.background:
        message = "`background` is not served: the answer would not be waited for; leave it out"
        raise UmgError(pb.ERROR_REASON_UNSUPPORTED_FIELD, message, field="background")
    request = _begun(body, headers, unknown)
    _decode_prompting(asked, request)
    _decode_options(asked, request)
    if asked.prompt:
        _decode_prompt(asked.prompt, request.prompt_template)
    _require_input(asked.input, request)
    return FaceRequest(request, asked.stream is True)


def decode_count(body: bytes, headers: Mapping[str, str]) -> pb.GenerateRequest:
    """What `POST /v1/responses/input_tokens` counts. Raises UmgError as `decode_request` does.

    `model` is required here, though not by the SDK: what a token is depends on it.
    """
    asked = parse(schema.Prompting, check_utf8(body))
    request = _begun(body, headers, unknown_fields(body, dialect.KNOWN))
    _decode_prompting(asked, request)
    _require_input(asked.input, request)
    return request


def _read(body: bytes) -> tuple[schema.ResponsesRequest, Collection[str]]:
    """Return the body and the names of its unknown fields. Most bodies have none, which one pass finds out."""
    try:
        return _KNOWN.decode(check_utf8(body)), ()
    except (ValueError, RecursionError):
        asked = parse(schema.ResponsesRequest, body)
        return asked, unknown_fields(body, dialect.KNOWN)


_KNOWN = msgspec.json.Decoder(schema.KnownResponsesRequest)


def _begun(body: bytes, headers: Mapping[str, str], unknown: Collection[str]) -> pb.GenerateRequest:
    """Return a request with its source document and nothing else."""
    request = pb.GenerateRequest()
    source = request.source
    source.format, source.body = "responses", body
    note_top_level(unknown, HARMLESS, source)
    if headers:
        source.headers.update(headers)
    return request


def _require_input(items: str | list[Raw] | None, request: pb.GenerateRequest) -> None:
    """Only something else to answer may stand for an input."""
    if items or items == "" or request.instructions or request.previous_response_id or request.conversation_id:
        return
    if not request.HasField("prompt_template"):
        raise missing("input")


def _decode_prompting(asked: schema.Prompting, request: pb.GenerateRequest) -> None:
    request.model = asked.model
    added = list[tuple[Raw, str]]()
    if asked.input is not None:
        items = InputDecoder(request)
        items.decode(asked.input)
        added = items.added
    if asked.instructions:
        request.instructions.add().text.text = asked.instructions
    if asked.tools or given(asked.tool_choice):
        decode_tools(asked, request)
    if added:
        add_tools(added, request)
    if asked.parallel_tool_calls is not None:
        request.parallel_tool_calls = asked.parallel_tool_calls
    if asked.reasoning is not None:
        _decode_reasoning(asked.reasoning, request)
    if asked.text:
        _decode_text(asked.text, request)
    request.truncation = asked.truncation or ""
    if asked.previous_response_id:
        request.previous_response_id = asked.previous_response_id
    if asked.conversation:
        if asked.previous_response_id:
            raise invalid("conversation", "`previous_response_id` is given as well; send one of the two")
        named = asked.conversation
        request.conversation_id = named if isinstance(named, str) else named.id


def _decode_options(asked: schema.ResponsesRequest, request: pb.GenerateRequest) -> None:
    for name, value in zip(SAME, _same(asked), strict=True):
        if value is not None:
            setattr(request, name, value)
    for name, number in zip(WHOLE_NUMBERS, _whole_numbers(asked), strict=True):
        if number is not None:
            setattr(request, name, whole(number, name))
    if asked.include:
        request.include.extend(asked.include)
        if LOGPROBS in asked.include:
            request.logprobs = True
    if asked.metadata:
        request.metadata.update(asked.metadata)
    if asked.stream_options and asked.stream_options.include_obfuscation is not None:
        request.include_obfuscation = asked.stream_options.include_obfuscation
    if asked.prompt_cache_retention:
        request.prompt_cache_retention = asked.prompt_cache_retention.replace("-", "_")
    if given(asked.prompt_cache_options):
        request.prompt_cache_options_json = json_object(asked.prompt_cache_options, "prompt_cache_options")
    if given(asked.moderation):
        request.moderation_json = json_object(asked.moderation, "moderation")
    if given(asked.context_management):
        request.source.uncarried_fields.append("context_management")


def _decode_prompt(prompt: schema.Prompt, target: pb.PromptTemplate) -> None:
    target.prompt_id, target.version = prompt.id, prompt.version or ""
    if given(prompt.variables):
        target.variables_json = json_object(prompt.variables, "prompt.variables")


def _decode_reasoning(said: schema.Reasoning, request: pb.GenerateRequest) -> None:
    """Without an effort it is medium (text document, "POST /v1/responses")."""
    request.reasoning.effort = said.effort or "medium"
    request.reasoning.summary = said.summary or said.generate_summary or ""
    for name in ("context", "mode"):
        if getattr(said, name) is not None:
            request.source.uncarried_fields.append(f"reasoning.{name}")


def _decode_text(text: schema.TextOptions, request: pb.GenerateRequest) -> None:
    request.verbosity = text.verbosity or ""
    if text.format is None:
        return
    target = request.response_format
    match text.format.type:
        case "text":
            target.text.SetInParent()
        case "json_object":
            target.json.SetInParent()
        case "json_schema":
            if text.format.name is None:
                raise missing("text.format.name")
            if not given(text.format.schema):
                raise missing("text.format.schema")
            described = target.json_schema
            described.name, described.description = text.format.name, text.format.description or ""
            described.schema_json = json_object(text.format.schema, "text.format.schema")
            if text.format.strict is not None:
                described.strict = text.format.strict


# --- canonical -> provider


def encode_request(
    request: pb.GenerateRequest, model: str, stream: bool, quirks: Quirks = NO_QUIRKS
) -> UpstreamRequest:
    """The call of `POST /responses`. Raises UmgError(UNTRANSLATABLE, UNSUPPORTED_FIELD) with the canonical path in
    `field`.
    """
    report = Report()
    if request.source.format == "responses":
        changed = changed_fields(request, quirks)
        edited = dict.fromkeys([*request.source.edited_fields, *changed])
        anew = _edited(request, edited, report, quirks, changed) if edited else {}
        body = dialect.rebuild(request, model, stream, anew, report, edited)
        return UpstreamRequest(PATH, body, dict(request.source.headers), report)
    report_unsayable(request, report)
    fields: JsonObject = {"model": model, "input": InputEncoder(request, report).encode()}
    fields |= encode_options(request, report, quirks)
    if stream:
        fields["stream"] = True
    else:
        fields.pop("stream_options", None)  # refused without a stream
    return UpstreamRequest(PATH, msgspec.json.encode(fields), {}, report)


def _edited(
    request: pb.GenerateRequest, edited: Collection[str], report: Report, quirks: Quirks, changed: Collection[str]
) -> JsonObject:
    """What the fields are now that were changed after decoding; only those go into the body. What the provider refuses
    (`changed`) is reported.
    """
    names, own = {name for field in edited for name in dialect.wire_names(field)}, Report()
    fields = encode_options(request, own, quirks)
    for name, instead in own.dropped.items():
        if name.partition(".")[0] in {*changed, *(("web_search",) if "search" in changed else ())}:
            report.drop(name, instead)
    if "input" in names:
        fields["input"] = InputEncoder(request, report).encode()
    return fields
