"""Adjustment of single values of a request to the quirks of a provider's model (values that it rejects) while a codec
encodes it. `report` records each change.
"""

import hashlib
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Literal

from umg_grpc.base.errors import UmgError
from umg_grpc.knowledge.model_quirk_definitions import HASH_CHARACTERS, NO_QUIRKS, Quirks
from umg_grpc.v1 import pb
from umg_grpc.wire.core.json_decoding import JsonObject
from umg_grpc.wire.core.reasoning_effort_order import higher_effort, is_off
from umg_grpc.wire.dropped_fields_report import Report
from umg_grpc.wire.facts_beside_request import DecodedRequest, RequestNotes

SAMPLING_FIELDS: tuple[Literal["temperature", "top_p", "top_k"], ...] = ("temperature", "top_p", "top_k")
SEARCH_TOOL = "web_search"  # name of the search in a tool choice
SEARCH_MEMBER = "web_search_options"
"""Member of chat bodies that requests a web search, in the `rejects` of models that do not search."""
SEARCH_FIELDS = ("search", "tools", "tool_choice")  # canonical, that may request a web search
REASONING_AMOUNTS = ("effort", "level", "budget_tokens", "mode")  # fields of `reasoning` that set its amount
INPUT_KINDS: Mapping[int, str] = {
    pb.MEDIA_KIND_IMAGE: "image",
    pb.MEDIA_KIND_DOCUMENT: "file",
    pb.MEDIA_KIND_AUDIO: "audio",
    pb.MEDIA_KIND_VIDEO: "video",
}
"""Kind of media -> its name in `Quirks.inputs`."""
NAMED_ALONE = ("named", "named_without_reasoning")
"""Values of `Quirks.tool_choices` for models where a forced tool must be named."""
WITHOUT_REASONING = ("without_reasoning", "named_without_reasoning")
"""Values of `Quirks.tool_choices` for models that must not reason if a tool is forced."""
_PLAIN_USER = re.compile(r"[a-zA-Z0-9_-]+")
REASONING_PARTS = "messages.parts.reasoning"
"""Name in `RequestNotes.edited` for the reasoning in the messages of a chat body."""


def end_user(request: pb.GenerateRequest, quirks: Quirks, report: Report) -> str:
    """Return the end user's id, "" without one; a hash, equal in each call, for one that the provider rejects."""
    if _fits(request.user, quirks):
        return request.user
    report.drop("user", "hashed")
    maximum = min(quirks.max_user_characters or HASH_CHARACTERS, HASH_CHARACTERS)
    return hashlib.blake2b(request.user.encode(), digest_size=HASH_CHARACTERS // 2).hexdigest()[:maximum]


def output_limit(request: pb.GenerateRequest, quirks: Quirks, report: Report) -> int | None:
    """Return the caller's maximum of output tokens, lowered to the model's own maximum; None if the caller set none."""
    if not request.HasField("max_output_tokens"):
        return None
    if not _exceeds(request, quirks):
        return request.max_output_tokens
    report.drop("max_output_tokens", str(quirks.max_output_tokens))
    return quirks.max_output_tokens


def copied_fields(
    request: pb.GenerateRequest, names: Mapping[str, str], tiers: Collection[str], quirks: Quirks, report: Report
) -> JsonObject:
    """Return members with adjusted values. `names`: field -> member. `tiers`: of the format; others are dropped."""
    fields: JsonObject = {names[field.name]: value for field, value in request.ListFields() if field.name in names}
    if "user" in fields:
        fields["user"] = end_user(request, quirks, report)
    if (limit := names["max_output_tokens"]) in fields:
        fields[limit] = output_limit(request, quirks, report)
    rejected = rejected_sampling(request, quirks, report)
    fields = {name: value for name, value in fields.items() if name not in rejected}
    if request.service_tier and request.service_tier not in (quirks.service_tiers or tiers):
        del fields["service_tier"]  # value of another format
        report.drop("service_tier")
    return fields


def supports_reasoning(request: pb.GenerateRequest, quirks: Quirks, report: Report) -> bool:
    """Return whether the model accepts reasoning options. If not, record the request's options as dropped."""
    if quirks.reasoning is not False:
        return True
    if not is_off(request.reasoning):
        for field, _ in request.reasoning.ListFields():
            if field.name in REASONING_AMOUNTS:
                report.drop(f"reasoning.{field.name}")
    return False


def rejected_sampling(request: pb.GenerateRequest, quirks: Quirks, report: Report) -> Collection[str]:
    """Return the names of set sampling numbers (temperature, top_p, top_k) that the model rejects. Report them."""
    rejected = _rejected_sampling(request, quirks)
    for name in rejected:
        if name not in report.dropped and (name == "top_k" or getattr(request, name) != 1):  # 1 is the usual default
            report.drop(name)
    return rejected


def may_reason(reasoning: pb.ReasoningOptions, quirks: Quirks) -> bool:
    """Return whether the model reasons with these options, or may reason by default."""
    if quirks.thinking in {"never", "always"}:
        return quirks.thinking == "always"
    if is_off(reasoning):
        return False
    stated = reasoning.effort or reasoning.level or reasoning.mode or reasoning.HasField("budget_tokens")
    return bool(stated) or quirks.thinking != "off"


def with_state(request: pb.GenerateRequest, quirks: Quirks) -> Quirks:
    """Return the quirks for the request. If the model reasons, `rejects` includes the members that it rejects while it
    reasons. If not, it needs no reasoning in earlier turns.
    """
    if quirks.rejects_beside_reasoning is None and quirks.reasoning_required is None:
        return quirks
    return quirks.while_reasoning if may_reason(request.reasoning, quirks) else quirks.without_reasoning


def fit_request(
    request: pb.GenerateRequest, notes: RequestNotes, quirks: Quirks, report: Report
) -> DecodedRequest[pb.GenerateRequest]:
    """Return the request with a tool choice that the model accepts, and names of changed fields in `notes`. Raise
    UmgError(UNTRANSLATABLE) for too many candidates, media that the model does not accept, and an impossible search.
    """
    maximum = quirks.max_candidates
    if maximum is not None and request.candidate_count > maximum:
        message = f"`candidate_count`: this model makes at most {maximum}; call it several times"
        raise UmgError(pb.ERROR_REASON_UNTRANSLATABLE, message, field="candidate_count")
    if quirks.inputs is not None:
        check_inputs(request, quirks.inputs)
    if cannot_search(quirks):
        check_search(request)
    if quirks.tool_choices in {None, "all"} or request.tool_choice.mode != pb.TOOL_CHOICE_MODE_REQUIRED:
        return DecodedRequest(request, notes)
    return _fit_tool_choice(request, notes, quirks, report)


def cannot_search(quirks: Quirks) -> bool:
    """Return whether the provider is known to have no web search for the model."""
    if quirks.web_search is not None:
        return not quirks.web_search
    return quirks.rejects is not None and SEARCH_MEMBER in quirks.rejects


def check_search(request: pb.GenerateRequest) -> None:
    """Raise UmgError(UNTRANSLATABLE) for a necessary search that the provider cannot make. Beside functions, one that
    is not forced is reported: agents always declare it.
    """
    if not requests_search(request) or (has_functions(request) and not chooses_search(request)):
        return
    searches = (f"tools[{index}].web_search" for index, tool in enumerate(request.tools) if tool.HasField("web_search"))
    field = next(searches, "search")
    message = f"`{field}`: the provider of this model cannot search the web; leave it out or use another model"
    raise UmgError(pb.ERROR_REASON_UNTRANSLATABLE, message, field=field)


def check_inputs(request: pb.GenerateRequest, accepted: Collection[str]) -> None:
    """Raise UmgError(UNTRANSLATABLE) for media not in `accepted`. Text documents pass, since they are sent as text."""
    for index, message in enumerate(request.messages):
        for position, part in enumerate(message.parts):
            at = f"messages[{index}].parts[{position}]"
            if part.HasField("media"):
                _check_input(part.media, accepted, at)
            elif part.HasField("tool_result"):
                for inner, nested in enumerate(part.tool_result.parts):
                    if nested.HasField("media"):
                        _check_input(nested.media, accepted, f"{at}.tool_result.parts[{inner}]")


def _check_input(media: pb.MediaPart, accepted: Collection[str], at: str) -> None:
    kind = INPUT_KINDS.get(media.kind, "")
    is_text = kind == "file" and (media.HasField("blocks") or media.mime_type.startswith("text/"))
    if kind and kind not in accepted and not is_text and not media.media_id:
        problem = f"the model accepts no input of kind `{kind}`; leave it out or choose another model"
        raise UmgError(pb.ERROR_REASON_UNTRANSLATABLE, f"`{at}`: {problem}", field=at)


def _fit_tool_choice(
    request: pb.GenerateRequest, notes: RequestNotes, quirks: Quirks, report: Report
) -> DecodedRequest[pb.GenerateRequest]:
    form = quirks.tool_choices
    only_named, only_calm = form in NAMED_ALONE, form in WITHOUT_REASONING
    is_named = len(request.tool_choice.names) == 1 and not request.tool_choice.allowed_tools
    must_stop = only_calm and may_reason(request.reasoning, quirks)
    is_formed = is_named if only_named else form == "without_reasoning" or (form == "required" and not is_named)
    if is_formed and not must_stop:
        return DecodedRequest(request, notes)
    fitted, edited = pb.GenerateRequest(), list[str]()
    fitted.CopyFrom(request)
    tools = [tool for tool in request.tools if tool.HasField("function") or tool.HasField("custom")]
    if only_named and not is_named and len(tools) == 1:
        is_named = True
        fitted.tool_choice.names[:] = [tools[0].function.name or tools[0].custom.name]
        edited.append("tool_choice")
    elif form == "required":
        fitted.tool_choice.ClearField("names")
        if len(tools) > 1:
            report.drop("tool_choice", "required")
        edited.append("tool_choice")
    is_formed = is_named if only_named else form != "none"
    if not is_formed or (must_stop and quirks.thinking == "always"):
        fitted.tool_choice.Clear()
        fitted.tool_choice.mode = pb.TOOL_CHOICE_MODE_AUTO
        report.drop("tool_choice", "auto")
        edited = ["tool_choice"]
    elif must_stop:
        fitted.reasoning.Clear()
        fitted.reasoning.mode = pb.REASONING_MODE_DISABLED
        if request.HasField("reasoning"):
            report.drop("reasoning", "disabled")
        edited.append("reasoning")
    return DecodedRequest(fitted, notes.with_edited(*edited))


def supports_search(request: pb.GenerateRequest, quirks: Quirks, report: Report) -> bool:
    """Return whether the model accepts the web search, beside any functions. If not, record it as dropped."""
    if not _rejects_search(request, quirks):
        return True
    report.drop("web_search")
    return False


def changed_fields(request: pb.GenerateRequest, quirks: Quirks) -> list[str]:
    """Return the canonical fields that must change for the model, even in a body of the provider's own format."""
    return [] if quirks is NO_QUIRKS else list(_list_changed(request, quirks))


def _list_changed(request: pb.GenerateRequest, quirks: Quirks) -> Iterator[str]:
    if not _fits(request.user, quirks):
        yield "user"
    if _exceeds(request, quirks):
        yield "max_output_tokens"
    if quirks.service_tiers is not None and request.service_tier and request.service_tier not in quirks.service_tiers:
        yield "service_tier"
    if request.HasField("reasoning") and _rejects_reasoning(request, quirks):
        yield "reasoning"
    yield from _rejected_sampling(request, quirks)
    if quirks.max_stop_sequences is not None and len(request.stop_sequences) > quirks.max_stop_sequences:
        yield "stop_sequences"
    if requests_search(request) and _rejects_search(request, quirks):
        yield from SEARCH_FIELDS
    if quirks.custom_tools is False and any(tool.HasField("custom") for tool in request.tools):
        yield from ("tools", "tool_choice", "messages")
    if quirks.reasoning_content is False and _has_reasoning(request):
        yield REASONING_PARTS


def requests_search(request: pb.GenerateRequest) -> bool:
    """Return whether a tool or the field `search` requests a web search by the provider."""
    return has_search_option(request) or any(tool.HasField("web_search") for tool in request.tools)


def has_search_option(request: pb.GenerateRequest) -> bool:
    """Return whether the field `search` requests a web search by the provider. Tools are not considered."""
    return request.HasField("search") and request.search.mode != pb.SEARCH_MODE_OFF


def chooses_search(request: pb.GenerateRequest) -> bool:
    """Return whether the tool choice forces the provider's web search."""
    searches = {SEARCH_TOOL, *(tool.web_search.declared_type for tool in request.tools if tool.HasField("web_search"))}
    return bool(request.tool_choice.names) and searches.issuperset(request.tool_choice.names)


def has_functions(request: pb.GenerateRequest) -> bool:
    """Return whether the request declares functions or custom tools, which the caller runs."""
    return any(tool.HasField("function") or tool.HasField("custom") for tool in request.tools)


def _rejects_search(request: pb.GenerateRequest, quirks: Quirks) -> bool:
    return quirks.web_search is False or (quirks.search_with_functions == "drop" and has_functions(request))


def _fits(user: str, quirks: Quirks) -> bool:
    if not user:
        return True
    if quirks.plain_user and _PLAIN_USER.fullmatch(user) is None:
        return False
    maximum, minimum = quirks.max_user_characters, quirks.min_user_characters
    return (maximum is None or len(user) <= maximum) and (minimum is None or len(user) >= minimum)


def _exceeds(request: pb.GenerateRequest, quirks: Quirks) -> bool:
    return quirks.max_output_tokens is not None and request.max_output_tokens > quirks.max_output_tokens


def _rejected_sampling(request: pb.GenerateRequest, quirks: Quirks) -> list[str]:
    match quirks.sampling:
        case None | "all":
            return []
        case "one":
            return ["top_p"] if request.HasField("temperature") and request.HasField("top_p") else []
        case "without_reasoning" if not may_reason(request.reasoning, quirks):
            return []
        case _:  # `never`, and `without_reasoning` while the model reasons
            return [field.name for field, _ in request.ListFields() if field.name in SAMPLING_FIELDS]


def _rejects_reasoning(request: pb.GenerateRequest, quirks: Quirks) -> bool:
    reasoning, source_format = request.reasoning, request.source.format
    if quirks.reasoning is False or quirks.thinking == "never":
        return True
    stated = reasoning.effort or reasoning.level
    if source_format == "chat" and reasoning.effort == "none" and quirks.reasoning_form not in {None, "effort"}:
        return True  # the vendor has a switch of its own
    if stated and quirks.efforts is not None and stated not in quirks.efforts:
        return True
    if quirks.thinking == "always" and is_off(reasoning):
        return True
    if reasoning.mode == pb.REASONING_MODE_DISABLED:
        limit = quirks.max_effort_when_off
        return limit is not None and bool(stated) and higher_effort(limit, stated) != limit
    if reasoning.mode == pb.REASONING_MODE_ADAPTIVE and quirks.adaptive is False:
        return True
    if not reasoning.HasField("budget_tokens"):
        return source_format == "chat" and bool(reasoning.mode) and quirks.reasoning_form == "effort"
    if quirks.budget_range is not None and reasoning.budget_tokens >= 0:
        return not quirks.budget_range[0] <= reasoning.budget_tokens <= quirks.budget_range[1]
    return quirks.reasoning_budget is False and source_format in {"messages", "native"}


def _has_reasoning(request: pb.GenerateRequest) -> bool:
    return any(part.HasField("reasoning") for message in request.messages for part in message.parts)
