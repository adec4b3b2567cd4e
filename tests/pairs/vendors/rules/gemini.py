"""Rules of Google's native generation, on the Gemini API and Vertex."""

import re

from tests.pairs.vendors.refusal import Json, Rules, VendorCall
from tests.support.providers.native import Native
from tests.support.providers.server import ReceivedRequest, RefusedError

VERSION = re.compile(r"gemini-(\d+)(?:\.(\d+))?")
BUDGETS = {"pro": (128, 32768), "flash": (0, 24576)}
PENALTIES = ("presencePenalty", "frequencyPenalty")
SIGNED_SINCE, LEVELS_ONLY_SINCE, NO_MINIMAL_SINCE = (3, 0), (3, 5), (3, 7)
AUTOMATIC = -1


def native(call: VendorCall) -> Rules:
    """Yield the refusals of a body of `:generateContent`."""
    config = call.body.get("generationConfig") or {}
    yield from _judge_thinking(call, config.get("thinkingConfig") or {})
    if call.vendor == "gemini":
        if any(config.get(name) is not None for name in PENALTIES):
            yield call.refuse("gemini.penalty")
        if config.get("responseLogprobs"):
            yield call.refuse("gemini.logprobs")
    limit = config.get("maxOutputTokens")
    if limit is not None and call.limit is not None and limit > call.limit:
        yield call.refuse("gemini.limit", value=limit, limit=call.limit + 1)
    if version(call) >= SIGNED_SINCE and _has_unsigned_call(call.body):
        yield call.refuse("gemini.signature")
    try:
        path = f"/v1beta/models/{call.model}:generateContent"
        Native(alternates=False).read(ReceivedRequest("POST", path, {}, call.headers, call.raw))
    except RefusedError as refused:
        if refused.message != "Corrupted thought signature.":
            yield call.refuse("gemini.shape", at=refused.at or "", value=refused.message)


def version(call: VendorCall) -> tuple[int, int]:
    """Return the version that the id has; of an alias, that of the newest."""
    found = VERSION.match(call.model)
    return (int(found[1]), int(found[2] or 0)) if found else (4, 0)


def levels(call: VendorCall) -> tuple[str, ...]:
    """Return the levels of thinking that the model takes; none before 3."""
    number = version(call)
    if number < SIGNED_SINCE:
        return ()
    is_flash = "flash" in call.model and (number < NO_MINIMAL_SINCE or "lite" in call.model)
    has_minimal = is_flash and call.flags.get("supports_minimal_reasoning_effort") is not False
    top = ("XHIGH",) if call.flags.get("supports_xhigh_reasoning_effort") else ()
    return (*(("MINIMAL",) if has_minimal else ()), "LOW", "MEDIUM", "HIGH", *top)


def budgets(call: VendorCall) -> tuple[int, int] | None:
    """Return the least and most tokens of a budget; None for a model without budgets."""
    if version(call) >= LEVELS_ONLY_SINCE:
        return None
    return BUDGETS["pro" if "pro" in call.model else "flash"]


def _judge_thinking(call: VendorCall, thinking: Json) -> Rules:
    level, budget = thinking.get("thinkingLevel"), thinking.get("thinkingBudget")
    if level is not None and str(level).upper() not in levels(call):
        yield call.refuse("gemini.level", value=level)
    if budget is None:
        return
    known = budgets(call)
    if known is None:
        yield call.refuse("gemini.no-budget")
    elif budget != AUTOMATIC and not known[0] <= budget <= known[1]:
        yield call.refuse("gemini.budget", value=budget, low=known[0], high=known[1])


def _has_unsigned_call(body: Json) -> bool:
    """Return whether the first call of a step in the current turn has no signature."""
    contents = body.get("contents") or []
    questions = [
        index
        for index, content in enumerate(contents)
        if content.get("role") != "model" and any("functionResponse" not in part for part in content.get("parts") or ())
    ]
    for content in contents[questions[-1] + 1 if questions else 0 :]:
        calls = [part for part in content.get("parts") or () if "functionCall" in part]
        if calls and not calls[0].get("thoughtSignature"):
            return True
    return False
