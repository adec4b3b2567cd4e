"""Reasoning options of messages (`thinking`, effort): decoded from a caller's body, encoded for a provider."""

from dataclasses import dataclass

from umg_grpc.knowledge.model_quirk_definitions import Quirks
from umg_grpc.v1 import pb
from umg_grpc.wire.core.json_decoding import JsonObject, invalid, missing, whole
from umg_grpc.wire.core.reasoning_effort_order import accepted_effort, fit_reasoning, higher_effort, nearest_effort
from umg_grpc.wire.dropped_fields_report import Report
from umg_grpc.wire.messages import schema

THINKING_MODES = {
    "enabled": pb.REASONING_MODE_ENABLED,
    "disabled": pb.REASONING_MODE_DISABLED,
    "adaptive": pb.REASONING_MODE_ADAPTIVE,
    "between_tools": pb.REASONING_MODE_BETWEEN_TOOLS,
}

MIN_BUDGET = 1025  # "greater than 1024" (text document, Limits); the vendor takes 1024 too
DEFAULT_BUDGET = 8192

# Effort -> (reasoning tokens, maximum share of the response): tokens as other gateways set them, shares as the document
# does (chat, `reasoning_effort`).
LEVEL_BUDGETS = {
    "minimal": (MIN_BUDGET, 0.1),
    "low": (1280, 0.2),
    "medium": (DEFAULT_BUDGET, 0.5),
    "high": (24576, 0.8),
    "xhigh": (32000, 0.9),
    "max": (32000, 0.9),
}
FORMAT_EFFORTS = ("low", "medium", "high", "xhigh", "max")  # values that the format itself has

MIN_TOP_P = 0.95  # minimum of `top_p` beside thinking


# --- caller -> canonical


def decode_thinking(thinking: schema.Thinking, reasoning: pb.ReasoningOptions) -> None:
    """Decode `thinking` into mode, budget and display. Raise UmgError: MISSING_FIELD for `enabled` without a budget;
    INVALID_FIELD for a budget that is too small or has another type.
    """
    reasoning.mode, field = THINKING_MODES[thinking.type], "thinking.budget_tokens"
    budget = whole(thinking.budget_tokens, field)
    if thinking.type != "enabled":
        if budget is not None:
            raise invalid(field, f"`{thinking.type}` takes none; leave it out, or send `enabled`")
    elif budget is None:
        raise missing(field)
    elif budget < MIN_BUDGET:
        raise invalid(field, f"expected a number greater than {MIN_BUDGET - 1}, got {budget}; raise it")
    else:
        reasoning.budget_tokens = budget
    reasoning.display = thinking.display or ""


# --- canonical -> provider


@dataclass(frozen=True, slots=True)
class Plan:
    """Reasoning options for a provider: `thinking` (None: not sent), effort ("": not sent), budget in tokens or 0."""

    switch: JsonObject | None = None  # `thinking`
    effort: str = ""  # `output_config.effort`
    budget: int = 0  # reasoning tokens, 0 where the switch has none

    @property
    def on(self) -> bool:
        """Whether thinking is enabled, so that the provider's rules for it apply: temperature 1, no forced tool."""
        return self.switch is not None and self.switch["type"] != "disabled"


THINKING_OFF: JsonObject = {"type": "disabled"}


def plan_reasoning(request: pb.GenerateRequest, report: Report, quirks: Quirks) -> Plan:
    """Return the `thinking` and effort nearest to the request's options. Report options changed or left out."""
    reasoning = request.reasoning
    if reasoning.summary:
        report.drop("reasoning.summary")
    planned = _plan_thinking(request, report, quirks)
    if reasoning.HasField("include_thoughts") and reasoning.include_thoughts != planned.on:
        report.drop("reasoning.include_thoughts")  # reasoning is always shown, and there is none without thinking
    if reasoning.display and planned.switch is not None and planned.switch["type"] in {"enabled", "adaptive"}:
        planned.switch["display"] = reasoning.display
    elif reasoning.display:
        report.drop("reasoning.display")
    return planned


def _plan_thinking(request: pb.GenerateRequest, report: Report, quirks: Quirks) -> Plan:
    reasoning = request.reasoning
    effort, mode = reasoning.effort, reasoning.mode
    own_effort = ""
    if request.source.format in {"", "messages"} and effort in FORMAT_EFFORTS:
        own_effort, effort = accepted_effort(effort, quirks), ""  # written for this format
        if own_effort != reasoning.effort:
            report.drop("reasoning.effort", own_effort or None)
    budget = reasoning.budget_tokens if reasoning.HasField("budget_tokens") else None
    if mode == pb.REASONING_MODE_DISABLED or budget == 0 or "none" in {effort, reasoning.level}:
        return _turned_off(reasoning, own_effort, quirks, report)
    if mode == pb.REASONING_MODE_BETWEEN_TOOLS:
        return Plan({"type": "between_tools"}, own_effort)
    prefers_adaptive = quirks.adaptive and budget is None and effort in {"", *(quirks.efforts or FORMAT_EFFORTS)}
    if quirks.reasoning_budget is False or prefers_adaptive:
        return _adaptive(reasoning, own_effort or effort or reasoning.level, report, quirks)
    if mode == pb.REASONING_MODE_ADAPTIVE or budget == -1:
        if quirks.adaptive is False:
            report.drop("reasoning.mode" if mode else "reasoning.budget_tokens", "enabled")
            return _enabled(_budget(request, own_effort or effort or reasoning.level), own_effort)
        return Plan({"type": "adaptive"}, own_effort)
    if budget is None:
        return _by_effort(request, effort, own_effort, report)
    for name in ("level", "effort"):
        if (value := getattr(reasoning, name)) and value != own_effort:
            report.drop(f"reasoning.{name}")
    if budget < MIN_BUDGET:
        budget = MIN_BUDGET
        report.drop("reasoning.budget_tokens", str(budget))
    return _enabled(budget, own_effort)


def _turned_off(reasoning: pb.ReasoningOptions, own_effort: str, quirks: Quirks, report: Report) -> Plan:
    """Return disabled thinking. For a model that cannot stop thinking, return the lowest effort, and report it."""
    if quirks.thinking == "always":
        if not own_effort:
            return Plan(effort=fit_reasoning(reasoning, quirks, report, has_switch=False).effort)
        report.drop("reasoning.mode", f"effort {own_effort}")
        return Plan(effort=own_effort)
    limit = quirks.max_effort_when_off
    if limit is not None and own_effort and higher_effort(limit, own_effort) != limit:
        report.drop("reasoning.effort", limit)
        own_effort = limit
    return Plan(dict(THINKING_OFF), own_effort)


def _adaptive(reasoning: pb.ReasoningOptions, requested: str, report: Report, quirks: Quirks) -> Plan:
    """Return adaptive thinking with an effort, for a model without reasoning budgets. Without options it is empty."""
    budget = reasoning.budget_tokens if reasoning.HasField("budget_tokens") else -1
    if not requested and budget > 0:
        requested = nearest_effort(budget)
        report.drop("reasoning.budget_tokens", f"effort {requested}")
    if not requested and not reasoning.mode and not reasoning.HasField("budget_tokens"):
        return Plan()
    effort = requested if requested in FORMAT_EFFORTS or not requested else FORMAT_EFFORTS[0]
    effort = accepted_effort(effort, quirks) if effort else ""
    if effort != requested:
        report.drop("reasoning.effort", effort)
    shown = not reasoning.HasField("include_thoughts") or reasoning.include_thoughts
    # these models omit their reasoning by default
    return Plan({"type": "adaptive", **({"display": "summarized"} if shown else {})}, effort)


def _by_effort(request: pb.GenerateRequest, effort: str, own_effort: str, report: Report) -> Plan:
    """Return thinking with the budget of the effort or level, or the default if only enabled; else `own_effort`."""
    reasoning = request.reasoning
    level = effort or reasoning.level
    if not level and reasoning.mode != pb.REASONING_MODE_ENABLED:
        return Plan(effort=own_effort)
    budget = _budget(request, level)
    if level:
        report.drop("reasoning.effort" if effort else "reasoning.level", f"budget_tokens {budget}")
    return _enabled(budget, own_effort)


def _budget(request: pb.GenerateRequest, level: str) -> int:
    budget, share = LEVEL_BUDGETS.get(level, (DEFAULT_BUDGET, 0.5))
    if request.HasField("max_output_tokens"):
        return max(MIN_BUDGET, min(budget, int(request.max_output_tokens * share)))
    return budget


def _enabled(budget: int, own_effort: str) -> Plan:
    return Plan({"type": "enabled", "budget_tokens": budget}, own_effort, budget)


def disable_if_rejected(planned: Plan, forced: bool, lacks_reasoning: bool, report: Report) -> Plan:
    """Return `planned`, or disabled thinking (reported) if the provider would reject it. `forced`: the model must call
    a tool. `lacks_reasoning`: the response to continue called a tool without reasoning.
    """
    if not planned.on or not (forced or (lacks_reasoning and planned.budget)):
        return planned
    report.drop("reasoning", "disabled")
    return Plan(dict(THINKING_OFF), planned.effort)


def limit_budget(planned: Plan, maximum: int, reasoning: pb.ReasoningOptions, report: Report) -> Plan:
    """Return `planned` with at most `maximum` tokens of budget; disabled below the minimum. Report each change by the
    name of the caller's option in `reasoning`.
    """
    if planned.budget <= maximum:
        return planned
    if maximum < MIN_BUDGET:
        report.drop("reasoning", "disabled")
        return Plan(dict(THINKING_OFF), planned.effort)
    if reasoning.HasField("budget_tokens"):
        report.record_final("reasoning.budget_tokens", str(maximum))
    else:
        report.record_final("reasoning.effort" if reasoning.effort else "reasoning.level", f"budget_tokens {maximum}")
    return Plan({**(planned.switch or {}), "budget_tokens": maximum}, planned.effort, maximum)
