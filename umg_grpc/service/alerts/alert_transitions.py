"""Transitions of alerts: which alerts open, are due for a reminder, and end, by the conditions that were found."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import NamedTuple

from umg_grpc.service.alerts.alert_findings import Finding
from umg_grpc.store.alert_table import AlertIdentity, AlertState, new_alert_id
from umg_grpc.v1 import pb

CALM_SECONDS: Mapping[str, int] = MappingProxyType(
    {"spend_jump": 300, "channel_down": 60, "error_share": 300, "cached_share": 600}
)
"""Rule -> seconds for which its condition must not be found before its alert ends, so that it does not open again at
once. Conditions of the other rules end by a decision or a date.
"""
MAX_OPENED = 50
"""Maximum number of alerts that open in one evaluation, so that it is short; the next one opens further ones."""


class AlertTransition(NamedTuple):
    """Change of an alert, and the event of which its receivers are notified, None if they are not."""

    state: AlertState
    event: "pb.AlertEvent.ValueType | None" = None
    is_new: bool = False


def transitions(
    known: Iterable[AlertState], found: Iterable[Finding], now_micros: int, remind_seconds: float
) -> list[AlertTransition]:
    """Return the changes of alerts. `known`: the open alerts; `found`: all conditions that hold at `now_micros`."""
    alerts = {each.identity: each for each in known}
    findings = {_identity(each): each for each in found}
    opened = [each for identity, each in findings.items() if identity not in alerts and each.is_reached]
    changes = [AlertTransition(_opened(each, now_micros), pb.ALERT_EVENT_OPENED, True) for each in opened[:MAX_OPENED]]
    for identity, alert in alerts.items():
        finding = findings.get(identity)
        change = _ended(alert, now_micros) if finding is None else _held(alert, finding, now_micros, remind_seconds)
        if change is not None:
            changes.append(change)
    return list(_without_lower_thresholds(changes, findings))


def _identity(finding: Finding) -> AlertIdentity:
    return finding.rule, finding.object, finding.threshold, finding.period_start


def _opened(finding: Finding, now: int) -> AlertState:
    return AlertState(
        alert_id=new_alert_id(),
        rule=finding.rule,
        object=finding.object,
        threshold=finding.threshold,
        period_start=finding.period_start,
        summary=finding.summary,
        details=finding.details,
        open_micros=now,
        notify_micros=now,
    )


def _held(alert: AlertState, finding: Finding, now: int, remind_seconds: float) -> AlertTransition | None:
    if now - alert.notify_micros >= remind_seconds * 1e6:
        current = replace(alert, summary=finding.summary, details=finding.details)
        return AlertTransition(replace(current, notify_micros=now, calm_micros=None), pb.ALERT_EVENT_REMINDED)
    return AlertTransition(replace(alert, calm_micros=None)) if alert.calm_micros is not None else None


def _ended(alert: AlertState, now: int) -> AlertTransition | None:
    calm_since = now if alert.calm_micros is None else alert.calm_micros
    if now - calm_since >= CALM_SECONDS.get(alert.rule, 0) * 10**6:
        return AlertTransition(replace(alert, close_micros=now, notify_micros=now), pb.ALERT_EVENT_RECOVERED)
    return AlertTransition(replace(alert, calm_micros=now)) if alert.calm_micros is None else None


def _without_lower_thresholds(
    changes: Sequence[AlertTransition], findings: Iterable[AlertIdentity]
) -> Iterator[AlertTransition]:
    """Yield the changes. Of several thresholds of one object only the highest has a notification: of the ones that open
    or end together, and of all that hold for a reminder.
    """
    highest = dict[tuple[object, ...], int]()
    groups = [(_group(each.state.identity, each.event), each.state.threshold) for each in changes]
    groups += [(_group(each, pb.ALERT_EVENT_REMINDED), each[2]) for each in findings]
    for group, threshold in groups:
        highest[group] = max(highest.get(group, 0), threshold)
    for each in changes:
        is_lower = each.state.threshold < highest[_group(each.state.identity, each.event)]
        yield each._replace(event=None) if is_lower else each


def _group(identity: AlertIdentity, event: object) -> tuple[object, ...]:
    rule, place, _, period_start = identity
    return rule, place, period_start, event
