"""How the model shall think, both directions."""

from collections.abc import Iterator

from umg_grpc.families import ChatWords
from umg_grpc.v1 import pb
from umg_grpc.wire.chat import schema
from umg_grpc.wire.efforts import nearest_effort
from umg_grpc.wire.json import JsonObject, echo, invalid, whole
from umg_grpc.wire.report import Report

THINKING = {"enabled": pb.REASONING_MODE_ENABLED, "disabled": pb.REASONING_MODE_DISABLED}
THINKING_NAMES = {value: name for name, value in THINKING.items()}
LEVELS = ("minimal", "low", "medium", "high", "xhigh")


# --- caller -> canonical


def decode_reasoning(chat: schema.ChatRequest, request: pb.GenerateRequest) -> None:
    """The switches and budgets; `reasoning_effort` is read where every body is. Notes what families judge.

    Not shown: `thinking` beside `enable_thinking`. The one that enables wins, since `disabled` is the table's default.
    """
    judged = request.source.family_fields
    enables = chat.thinking is not None and chat.thinking.type == "enabled"
    if chat.thinking:
        judged.append("thinking")
        if enables or chat.enable_thinking is None:
            request.reasoning.mode = THINKING[chat.thinking.type]
            _set_budget(request, chat.thinking.budget_tokens, "thinking.budget_tokens")
    if chat.enable_thinking is not None:
        judged.append("enable_thinking")
        if not enables:
            request.reasoning.mode = pb.REASONING_MODE_ENABLED if chat.enable_thinking else pb.REASONING_MODE_DISABLED
            request.reasoning.declared_as_enable_thinking = True
    for at, config in _thinking_configs(chat):
        judged.append(at)
        for budget, name in ((config.thinking_budget, "thinking_budget"), (config.camel_budget, "thinkingBudget")):
            if budget is not None:
                _set_budget(request, budget, f"{at}.{name}")
                judged.append(f"{at}.{name}")
        for thoughts in (config.include_thoughts, config.camel_thoughts):
            if thoughts is not None:
                request.reasoning.include_thoughts = thoughts
        for level, name in ((config.thinking_level, "thinking_level"), (config.camel_level, "thinkingLevel")):
            if level is not None:
                request.reasoning.level = _level(level, f"{at}.{name}")
                judged.append(f"{at}.{name}")


def vendor_places(chat: schema.ChatRequest) -> Iterator[tuple[str, schema.VendorG]]:
    """(path, what stands there) of vendor G's part of a body: its spellings, the most particular last."""
    body = chat.extra_body or schema.ExtraBody()
    for at, place in (
        ("google", chat.google),
        ("vendorg", chat.vendorg),
        ("extra_body.google", body.google),
        ("extra_body.vendorg", body.vendorg),
    ):
        if place is not None:
            yield at, place


def _thinking_configs(chat: schema.ChatRequest) -> Iterator[tuple[str, schema.ThinkingConfig]]:
    """(path, config) of every place where a thinking config stands, the most particular last."""
    places: list[tuple[str, schema.VendorG | schema.GenerationConfig]] = [*vendor_places(chat)]
    if chat.generation_config is not None:
        places.insert(0, ("generationConfig", chat.generation_config))
    for at, place in places:
        if place.thinking_config:
            yield f"{at}.thinking_config", place.thinking_config
        if place.camel_config:
            yield f"{at}.thinkingConfig", place.camel_config


def _set_budget(request: pb.GenerateRequest, value: float | None, field: str) -> None:
    budget = whole(value, field)
    if budget is None:
        return
    if budget < -1:
        raise invalid(field, "expected -1 (automatic), 0 (off) or a number of tokens; send one of them")
    request.reasoning.budget_tokens = budget


def _level(value: str, field: str) -> str:
    """A thinking level in lower case. Raises UmgError(INVALID_FIELD)."""
    if value.lower() not in LEVELS:
        known = ", ".join(f"`{name.upper()}`" for name in LEVELS)
        raise invalid(field, f"{echo(repr(value))} is none of its values; send one of {known}")
    return value.lower()


# --- canonical -> provider


def encode_reasoning(request: pb.GenerateRequest, words: ChatWords, stream: bool, report: Report) -> JsonObject:
    """How to think, for a provider of a request that came in another format or in none.

    Beside a switch an effort stays what it was. What the family has no switch for is said as the nearest effort, unless
    there is one.
    """
    reasoning = request.reasoning
    for field in ("summary", "display"):
        if getattr(reasoning, field):
            report.drop(f"reasoning.{field}")
    effort = reasoning.effort or reasoning.level
    switch = {} if effort == "none" else _switch(request, words, stream, report)
    if "extra_body" in switch:
        return switch  # says it all; beside it the endpoint refuses an effort
    if reasoning.HasField("include_thoughts") and effort != "none" and not (switch and reasoning.include_thoughts):
        report.drop("reasoning.include_thoughts")
    if not (switch or effort):
        effort = _nearest_effort(reasoning, words, report)
    return switch | ({"reasoning_effort": effort} if effort else {})


def _switch(request: pb.GenerateRequest, words: ChatWords, stream: bool, report: Report) -> JsonObject:
    """`thinking` or `enable_thinking`; nothing where neither says anything to the model."""
    reasoning = request.reasoning
    match words.thinking:
        case "thinking":
            return _thinking(reasoning, report)
        case "enable_thinking":
            return _enable_thinking(reasoning, stream, report)
        case "budget":
            return _vendors_config(reasoning, _budget(reasoning), request.source.format)
        case "level":
            return _vendors_config(reasoning, _level_of(reasoning, report), request.source.format)
        case "" if not request.HasField("source"):  # callers of other formats know of neither, nor may their provider
            switch = own_switch(reasoning)
            if "enable_thinking" in switch and reasoning.HasField("budget_tokens"):
                report.drop("reasoning.budget_tokens")
            return switch
        case _:
            return {}


def _thinking(reasoning: pb.ReasoningOptions, report: Report) -> JsonObject:
    """`thinking`. Not shown: a word for thinking as much as the model likes; enabled without a budget comes nearest."""
    if _off(reasoning):
        return {"thinking": {"type": "disabled"}}
    if not (reasoning.mode or reasoning.HasField("budget_tokens")):
        return {}
    if reasoning.mode and reasoning.mode not in THINKING_NAMES:
        report.drop("reasoning.mode", "enabled")
    budget: JsonObject = {"budget_tokens": reasoning.budget_tokens} if reasoning.budget_tokens > 0 else {}
    return {"thinking": {"type": "enabled", **budget}}


def _vendors_config(reasoning: pb.ReasoningOptions, config: JsonObject, asked_in: str) -> JsonObject:
    """`extra_body.google.thinking_config`, under the name that vendor G's chat endpoint reads; nothing where the model
    is told nothing. Thoughts are shown there when that is said, as in native; in the other formats whoever asks for
    thinking is shown them.
    """
    shown = reasoning.include_thoughts if reasoning.HasField("include_thoughts") else asked_in != "native"
    if config and (shown or reasoning.HasField("include_thoughts")):
        config["include_thoughts"] = shown
    return {"extra_body": {"google": {"thinking_config": config}}} if config else {}


def _budget(reasoning: pb.ReasoningOptions) -> JsonObject:
    if reasoning.HasField("budget_tokens"):
        return {"thinking_budget": reasoning.budget_tokens}
    return {"thinking_budget": 0 if _off(reasoning) else -1} if reasoning.mode else {}


def _level_of(reasoning: pb.ReasoningOptions, report: Report) -> JsonObject:
    """A model with levels has none for off; what thinks as much as it likes does so at its highest."""
    if _off(reasoning) or not (reasoning.level or reasoning.mode or reasoning.HasField("budget_tokens")):
        return {}
    if not reasoning.level and reasoning.budget_tokens > 0:
        report.drop("reasoning.budget_tokens", "level high")
    return {"thinking_level": reasoning.level or "high"}


def _enable_thinking(reasoning: pb.ReasoningOptions, stream: bool, report: Report) -> JsonObject:
    """`enable_thinking`, which needs a stream (text document, chat rule 3): without one the model does not think."""
    if not (reasoning.mode or reasoning.HasField("budget_tokens")):
        return {}
    if _off(reasoning):
        return {"enable_thinking": False}
    if reasoning.budget_tokens > 0:
        report.drop("reasoning.budget_tokens")
    if not stream:
        report.drop("reasoning.mode", "disabled")
    return {"enable_thinking": stream}


def _off(reasoning: pb.ReasoningOptions) -> bool:
    none = reasoning.HasField("budget_tokens") and reasoning.budget_tokens == 0
    return none or reasoning.mode == pb.REASONING_MODE_DISABLED


def _nearest_effort(reasoning: pb.ReasoningOptions, words: ChatWords, report: Report) -> str:
    """The effort that is nearest to a budget or a mode, with a report of the change; "" for none."""
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


def encode_own_reasoning(request: pb.GenerateRequest) -> JsonObject:
    """What a caller of chat said, all of it, as it is now: once. Vendor G refuses an effort beside a budget or a level,
    and an effort of none says what `thinking` would.
    """
    reasoning = request.reasoning
    fields = own_switch(reasoning) if reasoning.effort != "none" else {}
    config = _thinking_config(reasoning)
    if config:
        fields["extra_body"] = {"google": {"thinking_config": config}}
    if reasoning.effort and config.keys().isdisjoint({"thinking_budget", "thinking_level"}):
        fields["reasoning_effort"] = reasoning.effort
    return fields


def own_switch(reasoning: pb.ReasoningOptions) -> JsonObject:
    """The switch that was named, `thinking` or `enable_thinking`; nothing where neither was."""
    if reasoning.mode not in THINKING_NAMES:
        return {}
    if reasoning.declared_as_enable_thinking:
        return {"enable_thinking": reasoning.mode == pb.REASONING_MODE_ENABLED}
    switch: JsonObject = {"type": THINKING_NAMES[reasoning.mode]}
    if reasoning.HasField("budget_tokens"):
        switch["budget_tokens"] = reasoning.budget_tokens
    return {"thinking": switch}


def _thinking_config(reasoning: pb.ReasoningOptions) -> JsonObject:
    """Vendor G's `thinking_config`, less what a switch says already."""
    config = JsonObject()
    if reasoning.HasField("budget_tokens") and reasoning.mode not in THINKING_NAMES:
        config["thinking_budget"] = reasoning.budget_tokens
    if reasoning.level:
        config["thinking_level"] = reasoning.level
    if reasoning.HasField("include_thoughts"):
        config["include_thoughts"] = reasoning.include_thoughts
    return config
