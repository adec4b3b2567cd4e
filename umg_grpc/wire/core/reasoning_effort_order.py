"""Amounts of reasoning: efforts, their order, and the nearest effort that a model accepts."""

from typing import NamedTuple

from umg_grpc.knowledge.model_quirk_definitions import Quirks
from umg_grpc.v1 import pb
from umg_grpc.wire.dropped_fields_report import Report

# Largest budget of each effort: midway between the budgets that gateways use for the efforts (1024, 8192, 24576).
_NEAREST = [(0, "none"), (4608, "low"), (16384, "medium")]
EFFORT_NAMES = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
"""Efforts of all vendors, lowest first."""
_OFF, _ON = "none", "on"


def nearest_effort(budget_tokens: int) -> str:
    """Return the effort (`none`, `low`, ...) nearest to a budget of tokens; "" for -1, which lets the model choose."""
    if budget_tokens < 0:
        return ""
    return next((effort for limit, effort in _NEAREST if budget_tokens <= limit), "high")


class Reasoning(NamedTuple):
    """Reasoning options as a model accepts them."""

    on: bool | None = None
    """Whether to send the provider's switch for reasoning, and its value; None leaves it out."""
    effort: str = ""
    """Effort to send; "" if there is none. The effort `none` disables reasoning."""


def is_off(reasoning: pb.ReasoningOptions) -> bool:
    """Return whether the options disable reasoning."""
    none = reasoning.HasField("budget_tokens") and reasoning.budget_tokens == 0
    return none or reasoning.mode == pb.REASONING_MODE_DISABLED or "none" in (reasoning.effort, reasoning.level)


def fit_reasoning(reasoning: pb.ReasoningOptions, quirks: Quirks, report: Report, *, has_switch: bool) -> Reasoning:
    """Return the options with which a model reasons as the caller requests, or as near to it as possible.

    A model that cannot stop reasoning gets its lowest effort instead. An effort that a model lacks becomes the nearest
    one. `has_switch`: whether the provider has a switch beside the effort. `report`: collects the changes.
    """
    amount, name = _requested(reasoning)
    if not amount:
        return Reasoning()
    if amount == _OFF:
        return _turned_off(name, quirks, report, has_switch=has_switch)
    if quirks.thinking == "never":
        report.drop(name)
        return Reasoning()
    on = True if has_switch and quirks.thinking != "always" else None
    if amount == _ON:
        return Reasoning(on, "" if on else accepted_effort("medium", quirks))
    effort = accepted_effort(amount, quirks)
    if effort != amount or name == "reasoning.budget_tokens":
        report.drop(name, _named(effort, name) if effort else "enabled" if on else None)
    return Reasoning(on, effort)


def accepted_effort(effort: str, quirks: Quirks) -> str:
    """Return the effort that a model accepts for `effort`: itself, the vendor's equivalent, or the nearest. Of two
    equally near ones it is the lower, but `none` only replaces `none`. "" for a model without efforts.
    """
    efforts = quirks.efforts
    if efforts is None or effort in efforts:
        return effort
    if quirks.nearest_efforts and (mapped := quirks.nearest_efforts.get(effort)) in efforts:
        return str(mapped)
    known = [name for name in efforts if name in EFFORT_NAMES and name != _OFF]
    if not known or effort not in EFFORT_NAMES:
        return next((name for name in efforts if name != _OFF), "")  # a single word for all amounts (`default`)
    place = EFFORT_NAMES.index(effort)
    return min(known, key=lambda name: (abs(EFFORT_NAMES.index(name) - place), EFFORT_NAMES.index(name)))


def higher_effort(one: str, other: str) -> str:
    """Return the higher of two efforts."""
    return max(one, other, key=lambda name: EFFORT_NAMES.index(name) if name in EFFORT_NAMES else -1)


def _requested(reasoning: pb.ReasoningOptions) -> tuple[str, str]:
    """Return (the requested effort, `on` if only reasoning is requested, "" if nothing is; the name of the option)."""
    if is_off(reasoning):
        stated = "effort" if reasoning.effort == _OFF else "level" if reasoning.level == _OFF else "mode"
        if stated == "mode" and reasoning.mode != pb.REASONING_MODE_DISABLED:
            stated = "budget_tokens"
        return _OFF, f"reasoning.{stated}"
    for name in ("effort", "level"):
        if value := getattr(reasoning, name):
            return str(value), f"reasoning.{name}"
    if reasoning.HasField("budget_tokens") and reasoning.budget_tokens > 0:
        return nearest_effort(reasoning.budget_tokens), "reasoning.budget_tokens"
    if reasoning.mode or reasoning.HasField("budget_tokens"):
        return _ON, "reasoning.mode"
    return "", ""


def _turned_off(name: str, quirks: Quirks, report: Report, *, has_switch: bool) -> Reasoning:
    if quirks.thinking == "never":
        return Reasoning()
    efforts = quirks.efforts or ()
    if _OFF in efforts:
        return Reasoning(effort=_OFF)
    if has_switch and quirks.thinking != "always":
        return Reasoning(on=False)
    if quirks.efforts is None and quirks.thinking != "always":
        return Reasoning(effort=_OFF)
    lowest = efforts[0] if efforts else ""
    report.drop(name, _named(lowest, name) if lowest else None)
    return Reasoning(effort=lowest)


def _named(effort: str, name: str) -> str:
    return effort if name in {"reasoning.effort", "reasoning.level"} else f"effort {effort}"
