"""How the model shall think, both directions."""

from dataclasses import dataclass

from umg_grpc.quirks import Quirks
from umg_grpc.v1 import pb
from umg_grpc.wire.efforts import nearest_effort
from umg_grpc.wire.json import JsonObject, invalid, missing, whole
from umg_grpc.wire.messages import schema
from umg_grpc.wire.report import Report

MODES = {
    "enabled": pb.REASONING_MODE_ENABLED,
    "disabled": pb.REASONING_MODE_DISABLED,
    "adaptive": pb.REASONING_MODE_ADAPTIVE,
    "between_tools": pb.REASONING_MODE_BETWEEN_TOOLS,
}

MIN_BUDGET = 1025  # "greater than 1024" (text document, Limits); the vendor takes 1024 too
DEFAULT_BUDGET = 8192

# Effort -> (tokens to think, at most this share of the answer): what gateways give, and the document's shares of a
# budget (chat, `reasoning_effort`).
BUDGETS = {
    "minimal": (MIN_BUDGET, 0.1),
    "low": (1280, 0.2),
    "medium": (DEFAULT_BUDGET, 0.5),
    "high": (24576, 0.8),
    "xhigh": (32000, 0.9),
    "max": (32000, 0.9),
}
EFFORTS = ("low", "medium", "high", "xhigh", "max")  # that the format has itself

LEAST_TOP_P = 0.95  # beside thinking


# --- caller -> canonical


def decode_thinking(thinking: schema.Thinking, reasoning: pb.ReasoningOptions) -> None:
    """Fills in the switch. Raises UmgError(MISSING_FIELD, INVALID_FIELD)."""
    reasoning.mode, field = MODES[thinking.type], "thinking.budget_tokens"
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
    """How a provider is told to think."""

    switch: JsonObject | None = None  # `thinking`
    effort: str = ""  # `output_config.effort`
    budget: int = 0  # tokens to think, 0 where the switch has none

    @property
    def on(self) -> bool:
        """Whether the rules for thinking hold: temperature 1, no forced tool."""
        return self.switch is not None and self.switch["type"] != "disabled"


OFF: JsonObject = {"type": "disabled"}


def plan(request: pb.GenerateRequest, report: Report, quirks: Quirks) -> Plan:
    """The switch and the effort that say what the request does, or come nearest to it."""
    reasoning = request.reasoning
    if reasoning.summary:
        report.drop("reasoning.summary")
    made = _switch(request, report, takes_budget=quirks.reasoning_budget is not False)
    if reasoning.HasField("include_thoughts") and reasoning.include_thoughts != made.on:
        report.drop("reasoning.include_thoughts")  # thoughts are shown, and only what was thought
    if reasoning.display and made.switch is not None and made.switch["type"] in {"enabled", "adaptive"}:
        made.switch["display"] = reasoning.display
    elif reasoning.display:
        report.drop("reasoning.display")
    return made


def _switch(request: pb.GenerateRequest, report: Report, *, takes_budget: bool) -> Plan:
    reasoning = request.reasoning
    effort, mode = reasoning.effort, reasoning.mode
    said = ""
    if request.source.format in {"", "messages"} and effort in EFFORTS:
        said, effort = effort, ""  # written for this format
    budget = reasoning.budget_tokens if reasoning.HasField("budget_tokens") else None
    if mode == pb.REASONING_MODE_DISABLED or budget == 0 or "none" in {effort, reasoning.level}:
        return Plan(dict(OFF), said)
    if mode == pb.REASONING_MODE_BETWEEN_TOOLS:
        return Plan({"type": "between_tools"}, said)
    if not takes_budget:
        return _adaptive(reasoning, said or effort or reasoning.level, report)
    if mode == pb.REASONING_MODE_ADAPTIVE or budget == -1:
        return Plan({"type": "adaptive"}, said)
    if budget is None:
        return _by_effort(request, effort, said, report)
    for name in ("level", "effort"):
        if (value := getattr(reasoning, name)) and value != said:
            report.drop(f"reasoning.{name}")
    if budget < MIN_BUDGET:
        budget = MIN_BUDGET
        report.drop("reasoning.budget_tokens", str(budget))
    return _enabled(budget, said)


def _adaptive(reasoning: pb.ReasoningOptions, asked: str, report: Report) -> Plan:
    """Return adaptive thinking, for a model that takes no budget, at the effort that is given or comes nearest."""
    budget = reasoning.budget_tokens if reasoning.HasField("budget_tokens") else -1
    if not asked and budget > 0:
        asked = nearest_effort(budget)
        report.drop("reasoning.budget_tokens", f"effort {asked}")
    if not asked and not reasoning.mode and not reasoning.HasField("budget_tokens"):
        return Plan()
    effort = asked if asked in EFFORTS or not asked else EFFORTS[0]
    if effort != asked:
        report.drop("reasoning.effort", effort)
    shown = not reasoning.HasField("include_thoughts") or reasoning.include_thoughts
    # these models omit their thoughts by default
    return Plan({"type": "adaptive", **({"display": "summarized"} if shown else {})}, effort)


def _by_effort(request: pb.GenerateRequest, effort: str, said: str, report: Report) -> Plan:
    """Tokens to think for an effort or a level of another format; the default where thinking is just switched on."""
    reasoning = request.reasoning
    word = effort or reasoning.level
    if not word and reasoning.mode != pb.REASONING_MODE_ENABLED:
        return Plan(effort=said)
    budget, share = BUDGETS.get(word, (DEFAULT_BUDGET, 0.5))
    if request.HasField("max_output_tokens"):
        budget = max(MIN_BUDGET, min(budget, int(request.max_output_tokens * share)))
    if word:
        report.drop("reasoning.effort" if effort else "reasoning.level", f"budget_tokens {budget}")
    return _enabled(budget, said)


def _enabled(budget: int, said: str) -> Plan:
    return Plan({"type": "enabled", "budget_tokens": budget}, said, budget)


def allowed(made: Plan, forced: bool, unthought: bool, report: Report) -> Plan:
    """The plan, or thinking switched off where the provider would refuse it: `forced`, a tool has to be called;
    `unthought`, the turn that goes on has called a tool and its thoughts are gone.
    """
    if not made.on or not (forced or (unthought and made.budget)):
        return made
    report.drop("reasoning", "disabled")
    return Plan(dict(OFF), made.effort)


def within(made: Plan, most: int, reasoning: pb.ReasoningOptions, report: Report) -> Plan:
    """Return the plan with at most `most` tokens to think; switched off where a provider takes no fewer."""
    if made.budget <= most:
        return made
    if most < MIN_BUDGET:
        report.drop("reasoning", "disabled")
        return Plan(dict(OFF), made.effort)
    if reasoning.HasField("budget_tokens"):
        report.restate("reasoning.budget_tokens", str(most))
    else:
        report.restate("reasoning.effort" if reasoning.effort else "reasoning.level", f"budget_tokens {most}")
    return Plan({**(made.switch or {}), "budget_tokens": most}, made.effort, most)
