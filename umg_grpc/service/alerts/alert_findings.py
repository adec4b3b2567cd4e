"""Rules of alerts as functions of facts: each returns the objects whose condition holds now, with a text and numbers.

A condition that has been found holds until it is clearly over: rules of shares also return objects in a band below
their threshold (`is_reached` is false), for which no alert opens, and none ends.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import NamedTuple

from umg_grpc.access.account_levels import KIND_NOUNS
from umg_grpc.access.budget_sources import BudgetState
from umg_grpc.config.alert_settings import BudgetRule, CachedShareRule, ChannelDownRule, ErrorShareRule, SpendJumpRule
from umg_grpc.service.resilience.learned_quirks import LearnedQuirk
from umg_grpc.store.alert_facts import CachedInput, CalledModel, ChannelOutage, CountedCalls, SpentHour

CREDIT_MICROS = 10**6
HELD_PART = 0.8
"""Part of a threshold above which an open alert stays open."""
LEAST_HISTORY_HOURS = 24
"""Hours of usage before the last one without which nothing is compared with them."""
PERIOD_WORDS = {"day": "daily ", "month": "monthly "}
MAX_NAMED = 10
"""Maximum number of names in a summary."""


class Finding(NamedTuple):
    """Condition that holds for an object; `umg.v1.Alert` describes the fields."""

    rule: str
    object: str
    summary: str
    details: Mapping[str, str]
    threshold: int = 0
    period_start: int = 0
    is_reached: bool = True
    """Whether an alert opens; otherwise only an open one stays open."""


def budget_findings(rule: BudgetRule, budgets: Iterable[BudgetState]) -> Iterator[Finding]:
    """Yield a finding for each threshold that a budget has reached."""
    for each in budgets:
        spent, amount = _credits(each.spent), _credits(each.amount)
        kind = f"{'soft ' if each.is_soft else ''}{PERIOD_WORDS.get(each.period, '')}budget"
        budget = f"{kind} of the {KIND_NOUNS.get(each.kind, each.kind)} `{each.name or each.holder_id}`"
        summary = f"The {budget} is spent to {each.percent} %: {spent} of {amount} credits."
        details = {
            "kind": each.kind,
            "id": each.holder_id,
            "name": each.name,
            "period": each.period,
            "soft": str(each.is_soft).lower(),
            "spent_micro_credits": str(each.spent),
            "budget_micro_credits": str(each.amount),
            "percent": str(each.percent),
        }
        for threshold in rule.thresholds:
            if each.percent >= threshold:
                place = f"{each.kind}:{each.account}{'/soft' if each.is_soft else ''}"
                yield Finding("budget", place, summary, details, threshold, each.period_start)


def spend_findings(rule: SpendJumpRule, hour: SpentHour) -> Iterator[Finding]:
    """Yield a finding if the last hour cost a multiple of the mean hour."""
    if hour.hours < LEAST_HISTORY_HOURS:
        return
    limit = max(rule.factor * hour.mean, rule.least_credits * CREDIT_MICROS, 1)
    if hour.last < HELD_PART * limit:
        return
    multiple = f", {hour.last / hour.mean:.1f} times the usual amount" if hour.mean else ""
    mean = f"the mean hour of the week before cost {_credits(hour.mean)}"
    summary = f"The last hour cost {_credits(hour.last)} credits{multiple}: {mean}."
    details = {"last_hour_micro_credits": str(hour.last), "mean_hour_micro_credits": str(round(hour.mean))}
    yield Finding("spend_jump", "", summary, details, is_reached=hour.last >= limit)


def outage_findings(rule: ChannelDownRule, outages: Iterable[ChannelOutage], now_micros: int) -> Iterator[Finding]:
    """Yield a finding for each channel and model whose circuit breaker is not closed for the time of the rule."""
    for each in outages:
        seconds = max(0, now_micros - each.since_micros) // 10**6
        if seconds < rule.after:
            continue
        since = datetime.fromtimestamp(each.since_micros // 10**6, UTC).isoformat()
        place = f"Channel `{each.channel}` is down for model `{each.model}` since {since}"
        summary = f"{place}: calls use other channels, or fail."
        details = {"channel": each.channel, "upstream_model": each.model, "since": since}
        yield Finding("channel_down", f"{each.channel}/{each.model}", summary, details)


def error_findings(rule: ErrorShareRule, calls: Iterable[CountedCalls]) -> Iterator[Finding]:
    """Yield a finding for each model of whose recent calls a share failed."""
    for each in calls:
        share = each.failed / each.calls if each.calls else 0.0
        if each.calls < rule.least_calls or share < HELD_PART * rule.share:
            continue
        minutes = "minute" if rule.minutes == 1 else f"{rule.minutes} minutes"
        counted = f"{each.failed} of {each.calls} calls of model `{each.model}` in the last {minutes} failed"
        details = {"model": each.model, "calls": str(each.calls), "failed": str(each.failed)}
        summary = f"{counted} ({_percent(share)})."
        yield Finding("error_share", each.model, summary, details, is_reached=share >= rule.share)


def unpriced_findings(called: Iterable[CalledModel]) -> Iterator[Finding]:
    """Yield a finding for each model that was called without a price. `called`: only models without a price."""
    by_model = defaultdict[str, list[CalledModel]](list)
    for each in called:
        by_model[each.model].append(each)
    for model, places in by_model.items():
        calls, channels = sum(each.calls for each in places), sorted(each.channel for each in places)
        summary = (
            f"Model `{model}` has no price and was called {calls} times in the last 24 hours at {_names(channels)}: set"
            " its `price`, or `unpriced` to `free` or a default price."
        )
        yield Finding(
            "unpriced_model", model, summary, {"model": model, "calls": str(calls), "channels": ",".join(channels)}
        )


def healed_findings(learned: Iterable[LearnedQuirk]) -> Iterator[Finding]:
    """Yield a finding for each channel and model of which a provider refused members of requests."""
    by_model = defaultdict[tuple[str, str], list[LearnedQuirk]](list)
    for each in learned:
        by_model[each.channel, each.model].append(each)
    for (channel, model), refused in by_model.items():
        members = sorted({each.member for each in refused})
        summary = (
            f"The provider of channel `{channel}` refused {_names(members)} for model `{model}`; requests are adapted"
            " for a day: state it in the config of the channel."
        )
        lines = "; ".join(dict.fromkeys(each.line() for each in refused[:MAX_NAMED]))
        details = {"channel": channel, "upstream_model": model, "members": ",".join(members), "config": lines}
        yield Finding("healed_refusals", f"{channel}/{model}", summary, details)


def cached_findings(
    rule: CachedShareRule, last: Iterable[CachedInput], before: Mapping[str, CachedInput]
) -> Iterator[Finding]:
    """Yield a finding for each model whose share of cached input fell below a part of that of the week before."""
    for each in last:
        usual = before.get(each.model)
        if each.tokens < rule.least_tokens or usual is None or usual.tokens < rule.least_tokens:
            continue
        limit = rule.factor * usual.share
        if each.share >= limit / HELD_PART or not usual.cached:
            continue
        summary = (
            f"Of the input of model `{each.model}` in the last hour {_percent(each.share)} was read from the provider's"
            f" cache, in the week before {_percent(usual.share)}."
        )
        details = {
            "model": each.model,
            "input_tokens": str(each.tokens),
            "cache_read_tokens": str(each.cached),
            "usual_percent": f"{usual.share:.1%}".removesuffix("%"),
        }
        yield Finding("cached_share", each.model, summary, details, is_reached=each.share < limit)


def dead_letter_findings(given_up: Mapping[str, int]) -> Iterator[Finding]:
    """Yield a finding for each server of callers to which notifications about video tasks were given up."""
    for receiver, number in given_up.items():
        count = f"{number} notification" if number == 1 else f"{number} notifications"
        summary = f"{count} about video tasks to {receiver} were given up; `umg tasks callbacks` lists them."
        yield Finding("task_dead_letter", receiver, summary, {"receiver": receiver, "given_up": str(number)})


def _credits(micro_credits: float) -> str:
    """Return an amount for people, rounded down as percents are. Less than a credit has all its decimals, so that small
    budgets are not `0.00`.
    """
    micros = int(micro_credits)
    if micros >= CREDIT_MICROS:
        return f"{micros // 10**4 / 100:,.2f}"
    decimals = f"{micros:06}".rstrip("0")
    return f"0.{decimals:0<2}"


def _percent(share: float) -> str:
    return f"{share * 100:.0f} %"


def _names(names: list[str]) -> str:
    shown = ", ".join(f"`{name}`" for name in names[:MAX_NAMED])
    return f"{shown} and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else shown
