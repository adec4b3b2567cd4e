"""Adjustment of single values of a request to the quirks of a provider's model (values that it rejects), while a
codec encodes the request. Each change is recorded in the `report` of dropped fields.
"""

import hashlib
from collections.abc import Collection, Iterator, Mapping

from umg_grpc.knowledge.quirks import HASH_CHARACTERS, NO_QUIRKS, Quirks
from umg_grpc.v1 import pb
from umg_grpc.wire.core.json import JsonObject
from umg_grpc.wire.dropped_fields_report import Report

SAMPLING = ("temperature", "top_p", "top_k")
SEARCH = ("search", "tools", "tool_choice")
"""Canonical fields in which a request may request a web search."""
REASONING_AMOUNTS = ("effort", "level", "budget_tokens", "mode")
"""Fields of `reasoning` that set the amount of reasoning."""
THOUGHTS = "messages.parts.reasoning"
"""Name in `RequestNotes.edited` for the reasoning in the messages of a chat body."""


def end_user(request: pb.GenerateRequest, quirks: Quirks, report: Report) -> str:
    """Return the end user's id as the provider accepts it, "" if there is none. An id of a length that the provider
    rejects is replaced by a hash, which is the same in each call.
    """
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
    """Return the members of a provider's body that have the same values in the canonical request, adjusted to the
    quirks.

    `names`: canonical field -> member of the body. `tiers`: service tiers of the provider's format; others are
    dropped.
    """
    fields: JsonObject = {names[field.name]: value for field, value in request.ListFields() if field.name in names}
    if "user" in fields:
        fields["user"] = end_user(request, quirks, report)
    if (limit := names["max_output_tokens"]) in fields:
        fields[limit] = output_limit(request, quirks, report)
    if not supports_sampling(request, quirks, report):
        fields = {name: value for name, value in fields.items() if name not in SAMPLING}
    if request.service_tier and request.service_tier not in tiers:
        del fields["service_tier"]  # value of another format
        report.drop("service_tier")
    return fields


def supports_reasoning(request: pb.GenerateRequest, quirks: Quirks, report: Report) -> bool:
    """Return whether the model accepts reasoning options. If it does not, record those of the request as dropped."""
    if quirks.reasoning is not False:
        return True
    if not _is_off(request.reasoning):
        for field, _ in request.reasoning.ListFields():
            if field.name in REASONING_AMOUNTS:
                report.drop(f"reasoning.{field.name}")
    return False


def supports_sampling(request: pb.GenerateRequest, quirks: Quirks, report: Report) -> bool:
    """Return whether the model accepts temperature, top_p and top_k. If it does not, record those of the request as
    dropped.
    """
    if quirks.sampling != "never":
        return True
    for name, value in _sampled(request).items():
        if name == "top_k" or value != 1:  # 1 is the usual default
            report.drop(name)
    return False


def supports_search(request: pb.GenerateRequest, quirks: Quirks, report: Report) -> bool:
    """Return whether the model accepts the request's web search, if there are functions together with them. If it
    does not, record the search as dropped.
    """
    if not _rejects_search(request, quirks):
        return True
    report.drop("web_search")
    return False


def changed_fields(request: pb.GenerateRequest, quirks: Quirks) -> list[str]:
    """Return the names of the canonical fields whose values must change for the model; an empty list if it accepts
    all.

    A body in the provider's own format is rewritten only in these fields.
    """
    return [] if quirks is NO_QUIRKS else list(_list_changed(request, quirks))


def _list_changed(request: pb.GenerateRequest, quirks: Quirks) -> Iterator[str]:
    if not _fits(request.user, quirks):
        yield "user"
    if _exceeds(request, quirks):
        yield "max_output_tokens"
    budgeted = quirks.reasoning_budget is False and request.source.format == "messages"
    if request.HasField("reasoning") and (quirks.reasoning is False or budgeted):
        yield "reasoning"
    if quirks.sampling == "never":
        yield from _sampled(request)
    if requests_search(request) and _rejects_search(request, quirks):
        yield from SEARCH
    if quirks.custom_tools is False and any(tool.HasField("custom") for tool in request.tools):
        yield from ("tools", "tool_choice", "messages")
    if quirks.reasoning_content is False and _has_reasoning(request):
        yield THOUGHTS


def requests_search(request: pb.GenerateRequest) -> bool:
    """Return whether a tool or the field `search` requests a web search by the provider."""
    return has_search_option(request) or any(tool.HasField("web_search") for tool in request.tools)


def has_search_option(request: pb.GenerateRequest) -> bool:
    """Return whether the field `search`, independent of the tools, requests a web search by the provider."""
    return request.HasField("search") and request.search.mode != pb.SEARCH_MODE_OFF


def has_functions(request: pb.GenerateRequest) -> bool:
    """Return whether the request declares functions or custom tools, which the caller runs."""
    return any(tool.HasField("function") or tool.HasField("custom") for tool in request.tools)


def _rejects_search(request: pb.GenerateRequest, quirks: Quirks) -> bool:
    return quirks.web_search is False or (quirks.search_with_functions == "drop" and has_functions(request))


def _fits(user: str, quirks: Quirks) -> bool:
    if not user:
        return True
    maximum, minimum = quirks.max_user_characters, quirks.min_user_characters
    return (maximum is None or len(user) <= maximum) and (minimum is None or len(user) >= minimum)


def _exceeds(request: pb.GenerateRequest, quirks: Quirks) -> bool:
    return quirks.max_output_tokens is not None and request.max_output_tokens > quirks.max_output_tokens


def _sampled(request: pb.GenerateRequest) -> dict[str, float]:
    return {field.name: value for field, value in request.ListFields() if field.name in SAMPLING}


def _is_off(reasoning: pb.ReasoningOptions) -> bool:
    none = reasoning.HasField("budget_tokens") and reasoning.budget_tokens == 0
    return none or reasoning.mode == pb.REASONING_MODE_DISABLED or "none" in (reasoning.effort, reasoning.level)


def _has_reasoning(request: pb.GenerateRequest) -> bool:
    return any(part.HasField("reasoning") for message in request.messages for part in message.parts)
