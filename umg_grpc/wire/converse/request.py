"""Converse requests: the canonical request encoded for a provider."""

from dataclasses import replace

import msgspec
from msgspec import Raw

from umg_grpc.knowledge.bedrock_models import BedrockModel, bedrock_model
from umg_grpc.knowledge.model_quirk_definitions import NO_QUIRKS, Quirks
from umg_grpc.v1 import pb
from umg_grpc.wire.converse.cache_points import BlockGroups, fit_marks, has_marks, mark_ends, written
from umg_grpc.wire.converse.encode_messages import MessageEncoder
from umg_grpc.wire.converse.inference_options import encode_options
from umg_grpc.wire.converse.provider_tool_names import tool_names
from umg_grpc.wire.converse.tools import encode_choice, encode_tools
from umg_grpc.wire.core.bedrock_invoke_calls import model_path
from umg_grpc.wire.core.json_decoding import ABSENT_MEMBER, JsonObject, is_present
from umg_grpc.wire.core.local_stop_sequences import local_stops, with_stop_limit
from umg_grpc.wire.core.prompt_cache_breakpoints import is_explicit
from umg_grpc.wire.core.provider_member_changes import fit_members
from umg_grpc.wire.dropped_fields_report import Report
from umg_grpc.wire.facts_beside_request import NO_NOTES, RequestNotes
from umg_grpc.wire.model_quirks import fit_request, with_state
from umg_grpc.wire.text_format_interface import UpstreamRequest
from umg_grpc.wire.unsupported_field_detection import TEXT_UNSUPPORTED, check_text_request

CALL_VERB, STREAM_VERB = "converse", "converse-stream"
STREAM_TYPE = "application/vnd.amazon.eventstream"
STOPS_MEMBER = "inferenceConfig.stopSequences"
UNSUPPORTED_FIELDS = tuple(name for name in TEXT_UNSUPPORTED if name != "metadata")
# Members without a canonical form that callers of other formats may set in their bodies.
PASSED_MEMBERS = ("guardrailConfig", "performanceConfig", "requestMetadata", "serviceTier", "promptVariables")


def encode_request(
    request: pb.GenerateRequest, model: str, stream: bool, quirks: Quirks = NO_QUIRKS, notes: RequestNotes = NO_NOTES
) -> UpstreamRequest:
    """Encode a call of a provider's `POST /model/{modelId}/converse`, or of its stream; of a complete response for
    models that stream no tool calls. Raise UmgError(UNTRANSLATABLE, UNSUPPORTED_FIELD) with the canonical path.
    """
    report = Report()
    quirks = replace(quirks, web_search=False)
    request, notes = fit_request(request, notes, quirks, report)
    quirks = with_state(request, quirks)
    quirks = with_stop_limit(request, quirks, STOPS_MEMBER, None)
    stops = local_stops(request, quirks, report)
    passed = _passed_members(request, notes)
    check_text_request(request, _without_passed(notes, passed), report, unsupported=UNSUPPORTED_FIELDS)
    fields = _encode_fields(request, bedrock_model(model), report, quirks) | passed
    fit_members(fields, quirks, "converse", report)
    is_whole = stream and "toolConfig" in fields and quirks.streams_tools is False
    streams = stream and not is_whole
    headers = {"Accept": STREAM_TYPE} if streams else {}
    path = model_path(model, STREAM_VERB if streams else CALL_VERB)
    body = msgspec.json.encode(fields)
    return UpstreamRequest(path, body, headers, report, local_stops=stops, is_whole=is_whole)


def _passed_members(request: pb.GenerateRequest, notes: RequestNotes) -> dict[str, Raw]:
    """Return members of the caller's body that are sent to the provider unchanged. `notes`: names those members."""
    stated = [name for name in PASSED_MEMBERS if name in notes.indispensable]
    body = msgspec.json.decode(request.source.body, type=dict[str, Raw]) if stated else {}
    return {name: raw for name in stated if is_present(raw := body.get(name, ABSENT_MEMBER))}


def _without_passed(notes: RequestNotes, passed: dict[str, Raw]) -> RequestNotes:
    """Return the notes without the members in `passed`, which the provider receives."""
    if not passed:
        return notes
    return msgspec.structs.replace(notes, indispensable=[name for name in notes.indispensable if name not in passed])


def _encode_fields(request: pb.GenerateRequest, model: BedrockModel, report: Report, quirks: Quirks) -> JsonObject:
    names = tool_names(request)
    turns = MessageEncoder(request, names, model, report, quirks)
    turns.encode()
    tools = encode_tools(request, names, report, quirks, in_history=turns.has_tools)
    choice = encode_choice(request, names, tools, report)
    options = encode_options(request, model, turns, report, quirks, is_forced=bool(choice))
    groups: BlockGroups = {"tools": tools, "system": turns.system, "messages": turns.blocks}
    if quirks.cache_marks and not has_marks(groups) and not is_explicit(request):
        mark_ends(groups, model)
    elif request.HasField("cache_control"):
        _mark_whole(request, turns, report)
    fit_marks(groups, model, report)
    fields: JsonObject = {"system": written(turns.system)} if turns.system else {}
    fields["messages"] = [{"role": turn.role, "content": written(turn.blocks)} for turn in turns.turns]
    if tools:
        fields["toolConfig"] = {"tools": written(tools), **({"toolChoice": choice} if choice else {})}
    return fields | options


def _mark_whole(request: pb.GenerateRequest, turns: MessageEncoder, report: Report) -> None:
    if (last := turns.blocks[-1]).mark is None:
        last.take_mark(pb.Part(cache_control=request.cache_control), report)
