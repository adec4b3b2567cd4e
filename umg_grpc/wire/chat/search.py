"""Web search asked for by an option, and what else family famQ has in its container, both directions."""

from collections.abc import Iterator

from umg_grpc.families import ChatWords
from umg_grpc.quirks import NO_QUIRKS, Quirks
from umg_grpc.v1 import pb
from umg_grpc.wire.chat import schema
from umg_grpc.wire.chat.reasoning import vendor_places
from umg_grpc.wire.chat.tools import SEARCH_KEYS, encode_search_options
from umg_grpc.wire.json import JsonObject, given, json_object, whole
from umg_grpc.wire.quirks import takes_search
from umg_grpc.wire.report import Report

# --- caller -> canonical


def decode_search(chat: schema.ChatRequest, request: pb.GenerateRequest) -> None:
    """`web_search_options`, `search_parameters`, `parameters`, and the search tools of vendor G. Notes what families
    judge.
    """
    judged = request.source.family_fields
    if (options := chat.web_search_options) is not None:
        judged.append("web_search_options")
        request.search.SetInParent()
        request.search.context_size = options.search_context_size or ""
        if options.user_location:
            place, target = options.user_location.approximate, request.search.user_location
            target.SetInParent()
            target.country, target.region = place.country or "", place.region or ""
            target.city, target.timezone = place.city or "", place.timezone or ""
    if (famx := chat.search_parameters) is not None:
        judged.append("search_parameters")
        request.search.mode = famx.mode or "auto"  # not shown; the provider's own default
        if famx.return_citations is not None:
            request.search.return_citations = famx.return_citations
        for name in ("sources", "from_date", "to_date", "max_search_results"):
            if given(getattr(famx, name)):
                request.source.uncarried_fields.append(f"search_parameters.{name}")
    if chat.parameters is not None:
        judged.append("parameters")
        _decode_parameters(chat.parameters, request)
    for at, place_of_vendor in vendor_places(chat):
        if at not in judged:
            judged.append(at)
        for kind in _search_tools(place_of_vendor, at):
            request.tools.add().web_search.declared_type = kind


def _search_tools(place: schema.VendorG, at: str) -> Iterator[str]:
    """The search tools of `extra_body.vendorg.tools`, by the keys under which they were asked for. Raises
    UmgError(INVALID_FIELD).
    """
    for index, tool in enumerate(place.tools or ()):
        for key, options in tool.items():
            if key in SEARCH_KEYS and given(options):
                json_object(options, f"{at}.tools[{index}].{key}")
                yield key


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
        field = "parameters.search_options.recency_days"
        if (days := whole(parameters.search_options.recency_days, field)) is not None:
            request.search.recency_days = days
    if parameters.asr_options:
        request.speech_language = parameters.asr_options.language or ""


# --- canonical -> provider


def encode_search(
    request: pb.GenerateRequest, words: ChatWords, report: Report, quirks: Quirks = NO_QUIRKS
) -> JsonObject:
    """Whether to search, and `parameters`, in the words of the model's family: what it has none for is reported."""
    search, parameters = request.search, _encode_parameters(request, words, report)
    fields = JsonObject()
    contained = "enable_search" in words.parameters and (bool(parameters) or not words.search_parameters)
    if words.search_parameters and (search.HasField("return_citations") or (search.mode and not contained)):
        fields["search_parameters"] = {
            field.name: value for field, value in search.ListFields() if field.name in ("mode", "return_citations")
        }
    elif contained and (search.mode or (request.HasField("search") and not words.search_parameters)):
        parameters["enable_search"] = search.mode != "off"
    if search.HasField("return_citations") and not (search.return_citations or words.search_parameters):
        report.drop("search.return_citations")
    if parameters:
        fields["parameters"] = parameters
    placed = bool(search.context_size) or search.HasField("user_location")
    elsewhere = "search_parameters" in fields or not parameters.keys().isdisjoint({"enable_search", "search_options"})
    asked = request.HasField("search") and not elsewhere
    wanted = search.mode != "off" and (placed or asked)  # off is what saying nothing means
    if wanted and takes_search(request, quirks, report):
        location = search.user_location if search.HasField("user_location") else None
        fields["web_search_options"] = encode_search_options(search.context_size, location)
    return fields


def _encode_parameters(request: pb.GenerateRequest, words: ChatWords, report: Report) -> JsonObject:
    """What stands in `parameters`, less the wish to search itself."""
    said: list[tuple[str, object, list[str]]] = [  # (name there, value, what is lost where it is not said there)
        (name, getattr(request, name), []) for name in ("temperature", "top_p") if request.HasField(name)
    ]
    if request.HasField("incremental_output"):
        said.append(("incremental_output", request.incremental_output, ["incremental_output"]))
    if request.speech_language:
        said.append(("asr_options", {"language": request.speech_language}, ["speech_language"]))
    fields = request.search.ListFields()
    if area := {field.name: value for field, value in fields if field.name in ("region", "recency_days")}:
        said.append(("search_options", area, [f"search.{name}" for name in area]))
    parameters = JsonObject()
    for name, value, lost in said:
        if name in words.parameters:
            parameters[name] = value
        else:
            for field in lost:
                report.drop(field)
    return parameters
