"""Reasoning options of the chat format: decoded from a caller's body, and encoded for a provider."""

from collections.abc import Iterator
from typing import assert_never

from umg_grpc.knowledge.families.text_model_rules import ChatFields
from umg_grpc.knowledge.model_quirk_definitions import NO_QUIRKS, Quirks
from umg_grpc.v1 import pb
from umg_grpc.wire.chat import schema
from umg_grpc.wire.core.json_decoding import JsonObject, echo, invalid, whole
from umg_grpc.wire.core.reasoning_effort_order import fit_reasoning, nearest_effort
from umg_grpc.wire.dropped_fields_report import Report
from umg_grpc.wire.facts_beside_request import RequestNotes

THINKING_MODES = {"enabled": pb.REASONING_MODE_ENABLED, "disabled": pb.REASONING_MODE_DISABLED}
THINKING_NAMES = {value: name for name, value in THINKING_MODES.items()}
EFFORT_ALONE = ("", "reasoning_effort")
"""Values of `ChatFields.thinking` for models without a member that switches reasoning on or off."""
REASONING_LEVELS = ("minimal", "low", "medium", "high", "xhigh")


# --- caller -> canonical


def decode_reasoning(chat: schema.ChatRequest, request: pb.GenerateRequest, notes: RequestNotes) -> None:
    """Decode the members that enable or limit reasoning, except `reasoning_effort`. If `thinking` and `enable_thinking`
    differ, the one that enables wins: the specification leaves this open.
    """
    enables = chat.thinking is not None and chat.thinking.type == "enabled"
    if chat.thinking:
        notes.family.append("thinking")
        if enables or chat.enable_thinking is None:
            request.reasoning.mode = THINKING_MODES[chat.thinking.type]
            _set_budget(request, chat.thinking.budget_tokens, "thinking.budget_tokens")
    if chat.enable_thinking is not None:
        notes.family.append("enable_thinking")
        if not enables:
            request.reasoning.mode = pb.REASONING_MODE_ENABLED if chat.enable_thinking else pb.REASONING_MODE_DISABLED
            request.face_hints.enable_thinking = True
    for at, config in _thinking_configs(chat):
        notes.family.append(at)
        for budget, name in ((config.thinking_budget, "thinking_budget"), (config.camel_budget, "thinkingBudget")):
            if budget is not None:
                _set_budget(request, budget, f"{at}.{name}")
                notes.family.append(f"{at}.{name}")
        for thoughts in (config.include_thoughts, config.camel_thoughts):
            if thoughts is not None:
                request.reasoning.include_thoughts = thoughts
        for level, name in ((config.thinking_level, "thinking_level"), (config.camel_level, "thinkingLevel")):
            if level is not None:
                request.reasoning.level = _level(level, f"{at}.{name}")
                notes.family.append(f"{at}.{name}")


def vendor_members(chat: schema.ChatRequest) -> Iterator[tuple[str, schema.VendorG]]:
    """Yield (path, vendor G's member in a chat body), the most specific path last. Clients use several names."""
    body = chat.extra_body or schema.ExtraBody()
    for at, member in (
        ("google", chat.google),
        ("vendorg", chat.vendorg),
        ("extra_body.google", body.google),
        ("extra_body.vendorg", body.vendorg),
    ):
        if member is not None:
            yield at, member


def _thinking_configs(chat: schema.ChatRequest) -> Iterator[tuple[str, schema.ThinkingConfig]]:
    members: list[tuple[str, schema.VendorG | schema.GenerationConfig]] = [*vendor_members(chat)]
    if chat.generation_config is not None:
        members.insert(0, ("generationConfig", chat.generation_config))
    for at, member in members:
        if member.thinking_config:
            yield f"{at}.thinking_config", member.thinking_config
        if member.camel_config:
            yield f"{at}.thinkingConfig", member.camel_config


def _set_budget(request: pb.GenerateRequest, value: float | None, field: str) -> None:
    budget = whole(value, field)
    if budget is None:
        return
    if budget < -1:
        raise invalid(field, "expected -1 (automatic), 0 (off) or a number of tokens; send one of them")
    request.reasoning.budget_tokens = budget


def _level(value: str, field: str) -> str:
    if value.lower() not in REASONING_LEVELS:
        known = ", ".join(f"`{name.upper()}`" for name in REASONING_LEVELS)
        raise invalid(field, f"{echo(repr(value))} is not one of its values; send one of {known}")
    return value.lower()


# --- canonical -> provider


def encode_reasoning(
    request: pb.GenerateRequest, words: ChatFields, stream: bool, report: Report, quirks: Quirks = NO_QUIRKS
) -> JsonObject:
    """Return the members of a chat body for reasoning options from another format or gRPC. An effort is sent beside the
    member by which the family enables reasoning. Options without a member become the nearest effort, unless the request
    has one. `words`: members that the family accepts.
    """
    if not request.HasField("reasoning") and words.thinking in EFFORT_ALONE and not _is_known(quirks):
        return {}  # the most frequent case
    reasoning = request.reasoning
    for field in ("summary", "display"):
        if getattr(reasoning, field):
            report.drop(f"reasoning.{field}")
    if _is_known(quirks):
        return _encode_fitted(reasoning, quirks, report)
    effort = reasoning.effort or reasoning.level
    switch = {} if effort == "none" else _switch(request, words, stream, report)
    if "extra_body" in switch:
        return switch  # complete: the endpoint rejects an effort beside it
    if reasoning.HasField("include_thoughts") and effort != "none" and not (switch and reasoning.include_thoughts):
        report.drop("reasoning.include_thoughts")
    if not (switch or effort):
        effort = _nearest_effort(reasoning, words, report)
    return switch | ({"reasoning_effort": effort} if effort else {})


def _is_known(quirks: Quirks) -> bool:
    return not (quirks.reasoning_form is None and quirks.efforts is None and quirks.thinking is None)


def _encode_fitted(reasoning: pb.ReasoningOptions, quirks: Quirks, report: Report) -> JsonObject:
    form = quirks.reasoning_form or "effort"
    fitted = fit_reasoning(reasoning, quirks, report, has_switch=form != "effort")
    if form == "enable_thinking" and fitted.effort == "none":  # the switch has the effect for each model
        fitted = fitted._replace(on=False, effort="")
    fields: JsonObject = {"reasoning_effort": fitted.effort} if fitted.effort else {}
    match form:
        case "effort":
            pass
        case "thinking":
            if fitted.on is not None:
                fields["thinking"] = {"type": "enabled" if fitted.on else "disabled"}
        case "enable_thinking":
            if fitted.on is not None:
                fields["enable_thinking"] = fitted.on
            if fitted.on and reasoning.budget_tokens > 0:
                fields = {"enable_thinking": True, "thinking_budget": reasoning.budget_tokens}
                report.forget("reasoning.budget_tokens")
        case "reasoning":
            return _router_reasoning(reasoning, fitted.on, fitted.effort, report)
        case unhandled:
            assert_never(unhandled)
    return fields


def _router_reasoning(reasoning: pb.ReasoningOptions, on: bool | None, effort: str, report: Report) -> JsonObject:
    if on and reasoning.budget_tokens > 0:
        report.forget("reasoning.budget_tokens")
        return {"reasoning": {"max_tokens": reasoning.budget_tokens}}
    if effort:
        return {"reasoning": {"effort": effort}}
    return {} if on is None else {"reasoning": {"enabled": on}}


def _switch(request: pb.GenerateRequest, words: ChatFields, stream: bool, report: Report) -> JsonObject:
    """Return the member by which the family switches reasoning on or off; {} without a switch or a choice."""
    reasoning = request.reasoning
    match words.thinking:
        case "thinking":
            return _thinking(reasoning, report)
        case "enable_thinking":
            return _enable_thinking(reasoning, stream, report)
        case "budget":
            return _vendor_config(reasoning, _budget(reasoning), request.source.format)
        case "level":
            return _vendor_config(reasoning, _level_of(reasoning, report), request.source.format)
        case "" if not request.HasField("source"):  # callers of other formats know neither, nor may their provider
            switch = declared_switch(request)
            if "enable_thinking" in switch and reasoning.HasField("budget_tokens"):
                report.drop("reasoning.budget_tokens")
            return switch
        case "reasoning_effort" | "":
            return {}
        case unhandled:
            assert_never(unhandled)


def _thinking(reasoning: pb.ReasoningOptions, report: Report) -> JsonObject:
    if _is_disabled(reasoning):
        return {"thinking": {"type": "disabled"}}
    if not (reasoning.mode or reasoning.HasField("budget_tokens")):
        return {}
    if reasoning.mode and reasoning.mode not in THINKING_NAMES:
        report.drop("reasoning.mode", "enabled")
    budget: JsonObject = {"budget_tokens": reasoning.budget_tokens} if reasoning.budget_tokens > 0 else {}
    return {"thinking": {"type": "enabled", **budget}}


def _vendor_config(reasoning: pb.ReasoningOptions, config: JsonObject, source_format: str) -> JsonObject:
    shown = reasoning.include_thoughts if reasoning.HasField("include_thoughts") else source_format != "native"
    if config and (shown or reasoning.HasField("include_thoughts")):
        config["include_thoughts"] = shown
    return {"extra_body": {"google": {"thinking_config": config}}} if config else {}


def _budget(reasoning: pb.ReasoningOptions) -> JsonObject:
    if reasoning.HasField("budget_tokens"):
        return {"thinking_budget": reasoning.budget_tokens}
    return {"thinking_budget": 0 if _is_disabled(reasoning) else -1} if reasoning.mode else {}


def _level_of(reasoning: pb.ReasoningOptions, report: Report) -> JsonObject:
    if _is_disabled(reasoning) or not (reasoning.level or reasoning.mode or reasoning.HasField("budget_tokens")):
        return {}
    if not reasoning.level and reasoning.budget_tokens > 0:
        report.drop("reasoning.budget_tokens", "level high")
    return {"thinking_level": reasoning.level or "high"}


def _enable_thinking(reasoning: pb.ReasoningOptions, stream: bool, report: Report) -> JsonObject:
    """Return `enable_thinking`. Without a stream it is false, and reported: family famQ reasons in streams only."""
    if not (reasoning.mode or reasoning.HasField("budget_tokens")):
        return {}
    if _is_disabled(reasoning):
        return {"enable_thinking": False}
    if reasoning.budget_tokens > 0:
        report.drop("reasoning.budget_tokens")
    if not stream:
        report.drop("reasoning.mode", "disabled")
    return {"enable_thinking": stream}


def _is_disabled(reasoning: pb.ReasoningOptions) -> bool:
    none = reasoning.HasField("budget_tokens") and reasoning.budget_tokens == 0
    return none or reasoning.mode == pb.REASONING_MODE_DISABLED


def _nearest_effort(reasoning: pb.ReasoningOptions, words: ChatFields, report: Report) -> str:
    """Return the effort nearest to the request's budget or mode, and report the change; "" if the provider decides."""
    if reasoning.HasField("budget_tokens") and not (reasoning.mode and reasoning.budget_tokens < 0):
        effort = nearest_effort(reasoning.budget_tokens)
        report.drop("reasoning.budget_tokens", f"effort {effort}" if effort else None)
        return effort
    if not reasoning.mode:
        return ""
    effort = EFFORT_BY_MODE.get(reasoning.mode, "") if words.thinking else ""
    report.drop("reasoning.mode", f"effort {effort}" if effort else None)
    return effort


EFFORT_BY_MODE = {pb.REASONING_MODE_ENABLED: "medium", pb.REASONING_MODE_DISABLED: "none"}


def encode_chat_reasoning(request: pb.GenerateRequest, report: Report, quirks: Quirks) -> JsonObject:
    """Return the members for reasoning options changed after a chat body was decoded, each once. Vendor G rejects an
    effort beside a budget or a level. The effort `none` means disabled `thinking`.
    """
    if _is_known(quirks):
        return _encode_fitted(request.reasoning, quirks, report)
    reasoning = request.reasoning
    fields = declared_switch(request) if reasoning.effort != "none" else {}
    config = _thinking_config(reasoning)
    if config:
        fields["extra_body"] = {"google": {"thinking_config": config}}
    if reasoning.effort and config.keys().isdisjoint({"thinking_budget", "thinking_level"}):
        fields["reasoning_effort"] = reasoning.effort
    return fields


def declared_switch(request: pb.GenerateRequest) -> JsonObject:
    """Return the member (`thinking`, `enable_thinking`) by which the caller turned reasoning on or off; {} if none."""
    reasoning = request.reasoning
    if reasoning.mode not in THINKING_NAMES:
        return {}
    if request.face_hints.enable_thinking:
        return {"enable_thinking": reasoning.mode == pb.REASONING_MODE_ENABLED}
    switch: JsonObject = {"type": THINKING_NAMES[reasoning.mode]}
    if reasoning.HasField("budget_tokens"):
        switch["budget_tokens"] = reasoning.budget_tokens
    return {"thinking": switch}


def _thinking_config(reasoning: pb.ReasoningOptions) -> JsonObject:
    """Return the members of vendor G's `thinking_config`, without the budget if the member `thinking` contains it."""
    config = JsonObject()
    if reasoning.HasField("budget_tokens") and reasoning.mode not in THINKING_NAMES:
        config["thinking_budget"] = reasoning.budget_tokens
    if reasoning.level:
        config["thinking_level"] = reasoning.level
    if reasoning.HasField("include_thoughts"):
        config["include_thoughts"] = reasoning.include_thoughts
    return config
