"""The quirks of a provider's model, applied to single values of a request while a codec writes it for the provider."""

import hashlib
from collections.abc import Iterator

from umg_grpc.quirks import HASH_CHARACTERS, NO_QUIRKS, Quirks
from umg_grpc.v1 import pb
from umg_grpc.wire.report import Report

SAMPLING = ("temperature", "top_p", "top_k")
SEARCH = ("search", "tools", "tool_choice")
"""Fields that ask for a search."""
DEPTHS = ("effort", "level", "budget_tokens", "mode")
"""Fields of `reasoning` that say how much to think."""
THOUGHTS = "messages.parts.reasoning"
"""In `edited_fields`: what the messages of a chat body hold of reasoning."""


def end_user(request: pb.GenerateRequest, quirks: Quirks, report: Report) -> str:
    """Return the end user's id as the provider takes it: hashed, always to the same id, where its length is refused."""
    if _fits(request.user, quirks):
        return request.user
    report.drop("user", "hashed")
    most = min(quirks.max_user_characters or HASH_CHARACTERS, HASH_CHARACTERS)
    return hashlib.blake2b(request.user.encode(), digest_size=HASH_CHARACTERS // 2).hexdigest()[:most]


def output_limit(request: pb.GenerateRequest, quirks: Quirks, report: Report) -> int | None:
    """Return the caller's limit of the answer's tokens, lowered to the model's own; None where the caller set none."""
    if not request.HasField("max_output_tokens"):
        return None
    if not _exceeds(request, quirks):
        return request.max_output_tokens
    report.drop("max_output_tokens", str(quirks.max_output_tokens))
    return quirks.max_output_tokens


def takes_reasoning(request: pb.GenerateRequest, quirks: Quirks, report: Report) -> bool:
    """Return whether the provider is sent how to think. Report thinking that is asked of a model without it."""
    if quirks.reasoning is not False:
        return True
    if not _is_off(request.reasoning):
        for field, _ in request.reasoning.ListFields():
            if field.name in DEPTHS:
                report.drop(f"reasoning.{field.name}")
    return False


def takes_sampling(request: pb.GenerateRequest, quirks: Quirks, report: Report) -> bool:
    """Return whether the provider takes temperature, top_p and top_k. Report those that it does not take."""
    if quirks.sampling is not False:
        return True
    for name, value in _sampled(request).items():
        if name == "top_k" or value != 1:  # else it is what is usual anyway
            report.drop(name)
    return False


def takes_search(request: pb.GenerateRequest, quirks: Quirks, report: Report) -> bool:
    """Return whether the provider can search beside the request's tools. Report a search that it refuses."""
    if not _refuses_search(request, quirks):
        return True
    report.drop("web_search")
    return False


def changed_fields(request: pb.GenerateRequest, quirks: Quirks) -> list[str]:
    """Return the canonical fields whose encoding the quirks change. A body in the provider's own format is written anew
    in these, and in no other.
    """
    return [] if quirks is NO_QUIRKS else list(_changed(request, quirks))


def _changed(request: pb.GenerateRequest, quirks: Quirks) -> Iterator[str]:
    if not _fits(request.user, quirks):
        yield "user"
    if _exceeds(request, quirks):
        yield "max_output_tokens"
    budgeted = quirks.reasoning_budget is False and request.source.format == "messages"
    if request.HasField("reasoning") and (quirks.reasoning is False or budgeted):
        yield "reasoning"
    if quirks.sampling is False:
        yield from _sampled(request)
    if asks_for_search(request) and _refuses_search(request, quirks):
        yield from SEARCH
    if quirks.custom_tools is False and any(tool.HasField("custom") for tool in request.tools):
        yield from ("tools", "tool_choice", "messages")
    if quirks.reasoning_content is False and _has_thoughts(request):
        yield THOUGHTS


def asks_for_search(request: pb.GenerateRequest) -> bool:
    """Return whether a tool or an option asks the provider to search."""
    option = request.HasField("search") and request.search.mode != "off"
    return option or any(tool.HasField("web_search") for tool in request.tools)


def has_functions(request: pb.GenerateRequest) -> bool:
    """Return whether the model may call tools of the caller's."""
    return any(tool.HasField("function") or tool.HasField("custom") for tool in request.tools)


def _refuses_search(request: pb.GenerateRequest, quirks: Quirks) -> bool:
    return quirks.web_search is False or (quirks.search_with_functions == "drop" and has_functions(request))


def _fits(user: str, quirks: Quirks) -> bool:
    if not user:
        return True
    most, fewest = quirks.max_user_characters, quirks.min_user_characters
    return (most is None or len(user) <= most) and (fewest is None or len(user) >= fewest)


def _exceeds(request: pb.GenerateRequest, quirks: Quirks) -> bool:
    return quirks.max_output_tokens is not None and request.max_output_tokens > quirks.max_output_tokens


def _sampled(request: pb.GenerateRequest) -> dict[str, float]:
    return {field.name: value for field, value in request.ListFields() if field.name in SAMPLING}


def _is_off(reasoning: pb.ReasoningOptions) -> bool:
    none = reasoning.HasField("budget_tokens") and reasoning.budget_tokens == 0
    return none or reasoning.mode == pb.REASONING_MODE_DISABLED or "none" in (reasoning.effort, reasoning.level)


def _has_thoughts(request: pb.GenerateRequest) -> bool:
    return any(part.HasField("reasoning") for message in request.messages for part in message.parts)
