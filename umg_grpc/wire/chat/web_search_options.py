"""Web search that a chat body requests by options, not by a tool, and the other `parameters` of family famQ."""

from collections.abc import Iterator

from umg_grpc.knowledge.families.text_model_rules import ChatFields
from umg_grpc.knowledge.model_quirk_definitions import Quirks
from umg_grpc.v1 import pb
from umg_grpc.wire.chat import schema
from umg_grpc.wire.chat.reasoning_options import vendor_members
from umg_grpc.wire.chat.tools import SEARCH_KEYS, encode_search_options
from umg_grpc.wire.core.json_decoding import JsonObject, is_present, json_object, whole
from umg_grpc.wire.dropped_fields_report import Report
from umg_grpc.wire.facts_beside_request import RequestNotes
from umg_grpc.wire.model_quirks import supports_search

SEARCH_MODES = {"off": pb.SEARCH_MODE_OFF, "auto": pb.SEARCH_MODE_AUTO, "on": pb.SEARCH_MODE_ON}
MODE_NAMES = {value: name for name, value in SEARCH_MODES.items()}

# --- caller -> canonical


def decode_search(chat: schema.ChatRequest, request: pb.GenerateRequest, notes: RequestNotes) -> None:
    """Decode the members for a web search. `notes`: receives members of one family or without a canonical form."""
    if (options := chat.web_search_options) is not None:
        notes.family.append("web_search_options")
        request.search.SetInParent()
        request.search.context_size = options.search_context_size or ""
        if options.user_location:
            approximate, target = options.user_location.approximate, request.search.user_location
            target.SetInParent()
            target.country, target.region = approximate.country or "", approximate.region or ""
            target.city, target.timezone = approximate.city or "", approximate.timezone or ""
    if (famx := chat.search_parameters) is not None:
        notes.family.append("search_parameters")
        request.search.mode = SEARCH_MODES[famx.mode or "auto"]  # not shown in the document; the provider's own default
        if famx.return_citations is not None:
            request.search.return_citations = famx.return_citations
        for name in ("sources", "from_date", "to_date", "max_search_results"):
            if is_present(getattr(famx, name)):
                notes.uncarried.append(f"search_parameters.{name}")
    if chat.parameters is not None:
        notes.family.append("parameters")
        _decode_parameters(chat.parameters, request)
    for at, vendor_member in vendor_members(chat):
        if at not in notes.family:
            notes.family.append(at)
        for kind in _search_tools(vendor_member, at):
            request.tools.add().web_search.declared_type = kind


def _search_tools(vendor: schema.VendorG, at: str) -> Iterator[str]:
    for index, tool in enumerate(vendor.tools or ()):
        for key, options in tool.items():
            if key in SEARCH_KEYS and is_present(options):
                json_object(options, f"{at}.tools[{index}].{key}")
                yield key


def _decode_parameters(parameters: schema.Parameters, request: pb.GenerateRequest) -> None:
    """Decode famQ's `parameters`. An option of the top level is kept. Raise UmgError(INVALID_FIELD)."""
    for name in ("temperature", "top_p"):
        value = getattr(parameters, name)
        if value is not None and not request.HasField(name):
            setattr(request, name, value)
    if parameters.incremental_output is not None:
        request.incremental_output = parameters.incremental_output
    if parameters.enable_search is not None:
        request.search.mode = pb.SEARCH_MODE_ON if parameters.enable_search else pb.SEARCH_MODE_OFF
    if parameters.search_options:
        request.search.region = parameters.search_options.region or ""
        field = "parameters.search_options.recency_days"
        if (days := whole(parameters.search_options.recency_days, field)) is not None:
            request.search.recency_days = days
    if parameters.asr_options:
        request.speech_language = parameters.asr_options.language or ""


# --- canonical -> provider


def encode_search(request: pb.GenerateRequest, words: ChatFields, report: Report, quirks: Quirks) -> JsonObject:
    """Return the search options and `parameters` in the family's members (`words`); report options without a member."""
    if not (request.HasField("search") or "temperature" in words.parameters or _has_parameters(request)):
        return {}  # the most frequent case
    search, parameters = request.search, _encode_parameters(request, words, report)
    fields = JsonObject()
    in_parameters = "enable_search" in words.parameters and (bool(parameters) or not words.search_parameters)
    if words.search_parameters and (search.HasField("return_citations") or (search.mode and not in_parameters)):
        fields["search_parameters"] = _encode_search_parameters(search)
    elif in_parameters and (search.mode or (request.HasField("search") and not words.search_parameters)):
        parameters["enable_search"] = search.mode != pb.SEARCH_MODE_OFF
    if search.HasField("return_citations") and not (search.return_citations or words.search_parameters):
        report.drop("search.return_citations")
    if parameters:
        fields["parameters"] = parameters
    placed = bool(search.context_size) or search.HasField("user_location")
    elsewhere = "search_parameters" in fields or not parameters.keys().isdisjoint({"enable_search", "search_options"})
    requested = request.HasField("search") and not elsewhere
    wanted = search.mode != pb.SEARCH_MODE_OFF and (placed or requested)  # `off` is the same as no option
    if wanted and supports_search(request, quirks, report):
        location = search.user_location if search.HasField("user_location") else None
        fields["web_search_options"] = encode_search_options(search.context_size, location)
    return fields


def _has_parameters(request: pb.GenerateRequest) -> bool:
    return bool(request.speech_language) or request.HasField("incremental_output")


def _encode_search_parameters(search: pb.SearchOptions) -> JsonObject:
    fields: JsonObject = {"mode": MODE_NAMES[search.mode]} if search.mode else {}
    if search.HasField("return_citations"):
        fields["return_citations"] = search.return_citations
    return fields


def _encode_parameters(request: pb.GenerateRequest, words: ChatFields, report: Report) -> JsonObject:
    # (name, value, canonical fields that are lost if `parameters` does not have it)
    candidates: list[tuple[str, object, list[str]]] = [
        (name, getattr(request, name), []) for name in ("temperature", "top_p") if request.HasField(name)
    ]
    if request.HasField("incremental_output"):
        candidates.append(("incremental_output", request.incremental_output, ["incremental_output"]))
    if request.speech_language:
        candidates.append(("asr_options", {"language": request.speech_language}, ["speech_language"]))
    fields = request.search.ListFields()
    if area := {field.name: value for field, value in fields if field.name in ("region", "recency_days")}:
        candidates.append(("search_options", area, [f"search.{name}" for name in area]))
    parameters = JsonObject()
    for name, value, lost in candidates:
        if name in words.parameters:
            parameters[name] = value
        else:
            for field in lost:
                report.drop(field)
    return parameters
