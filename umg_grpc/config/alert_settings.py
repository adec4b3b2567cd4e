"""Settings of alerts: receivers of notifications, and rules, whose structs are the entries of the config file."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Annotated, Literal, TypeAlias

import msgspec

from umg_grpc.config.file_sections import ConfigEntry

Percent = Annotated[int, msgspec.Meta(ge=1, le=1000)]
Share = Annotated[float, msgspec.Meta(gt=0, le=1)]
Factor = Annotated[float, msgspec.Meta(gt=1, le=1_000_000)]
Count = Annotated[int, msgspec.Meta(ge=1, le=1_000_000_000_000)]
Port = Annotated[int, msgspec.Meta(ge=1, le=65_535)]
Timeout = Annotated[float, msgspec.Meta(gt=0, le=60)]


class WebhookReceiver(ConfigEntry, frozen=True, kw_only=True, tag="webhook", tag_field="kind"):
    """Receiver at a URL, which gets `umg.v1.AlertNotification` as JSON, signed as Standard Webhooks describe it."""

    url: str
    """URL to which each notification is posted."""
    secret: str
    """Secret of the signatures: `whsec_` and the base64 of 24 to 64 random bytes, usually from `${ENV}`."""
    timeout: Timeout = 10
    """Most seconds of an attempt."""


class SlackReceiver(ConfigEntry, frozen=True, kw_only=True, tag="slack", tag_field="kind"):
    """Receiver at the URL of an incoming webhook of Slack, or of a program that takes its messages."""

    url: str
    """URL of the incoming webhook, which is a secret, usually from `${ENV}`."""
    timeout: Timeout = 10
    """Most seconds of an attempt."""


class EmailReceiver(ConfigEntry, frozen=True, kw_only=True, tag="email", tag_field="kind"):
    """Receiver of mails, by an SMTP server."""

    host: str
    """Host name of the SMTP server."""
    port: Port = 587
    """Port of the SMTP server."""
    security: Literal["starttls", "tls", "none"] = "starttls"
    """Encryption: `starttls` begins it by a command, `tls` with the connection (port 465), `none` is for a server on
    the same machine.
    """
    ca_file: str | None = None
    """PEM file of the trusted certificate authorities, instead of those of the system."""
    username: str | None = None
    """User name at the server; no value sends mails without authentication."""
    password: str | None = None
    """Password of the user, usually from `${ENV}`."""
    sender: str
    """Address of the sender."""
    to: Annotated[tuple[str, ...], msgspec.Meta(min_length=1)]
    """Addresses of the recipients."""
    timeout: Timeout = 20
    """Most seconds of each step of an attempt."""


AlertReceiver: TypeAlias = WebhookReceiver | SlackReceiver | EmailReceiver


class AlertRuleEntry(ConfigEntry, frozen=True, kw_only=True):
    """Keys that every rule has."""

    enabled: bool = True
    """Whether the rule is evaluated."""
    receivers: tuple[str, ...] = ()
    """Names of the receivers of its alerts; empty for all."""


class BudgetRule(AlertRuleEntry, frozen=True, kw_only=True):
    """A part of a budget is spent. The alert ends with the period, or when the budget is raised."""

    thresholds: Annotated[tuple[Percent, ...], msgspec.Meta(min_length=1)] = (50, 80, 100)
    """Parts of a budget at which an alert opens, in percent."""


class SpendJumpRule(AlertRuleEntry, frozen=True, kw_only=True):
    """The last hour cost a multiple of the mean hour of the week before it."""

    factor: Factor = 3
    """Multiple of the mean hour at which the alert opens."""
    least_credits: Annotated[float, msgspec.Meta(ge=0, le=1_000_000_000)] = 1
    """Credits that the hour has to cost at least."""


class ChannelDownRule(AlertRuleEntry, frozen=True, kw_only=True):
    """The circuit breaker of a channel for one of its models is not closed for some time, in any process."""

    after: Annotated[float, msgspec.Meta(ge=0, le=86_400)] = 120
    """Seconds after which the alert opens."""


class ErrorShareRule(AlertRuleEntry, frozen=True, kw_only=True):
    """A share of the recent calls of a model failed, after failover and retries."""

    share: Share = 0.2
    """Share of failed calls at which the alert opens."""
    minutes: Annotated[int, msgspec.Meta(ge=1, le=1440)] = 10
    """Minutes of the past whose calls count."""
    least_calls: Count = 50
    """Calls in this time without which no alert opens."""


class UnpricedModelRule(AlertRuleEntry, frozen=True, kw_only=True):
    """A model without a price was called in the last 24 hours: its calls cost nothing in reports and budgets."""


class HealedRefusalsRule(AlertRuleEntry, frozen=True, kw_only=True):
    """A provider refused a member of requests, and the gateway leaves it out or adapts it for a day."""


class CachedShareRule(AlertRuleEntry, frozen=True, kw_only=True):
    """The share of a model's input tokens that its provider read from a cache has dropped, which makes calls dearer."""

    factor: Share = 0.5
    """Part of the share of the week before below which the alert opens, by the share of the last hour."""
    least_tokens: Count = 1_000_000
    """Input tokens of the model in the last hour without which no alert opens."""


class TaskDeadLetterRule(AlertRuleEntry, frozen=True, kw_only=True):
    """Notifications about video tasks to a caller's server were given up."""


class AlertRules(ConfigEntry, frozen=True, kw_only=True):
    """Rules, each with its thresholds and receivers."""

    budget: BudgetRule = BudgetRule()
    spend_jump: SpendJumpRule = SpendJumpRule()
    channel_down: ChannelDownRule = ChannelDownRule()
    error_share: ErrorShareRule = ErrorShareRule()
    unpriced_model: UnpricedModelRule = UnpricedModelRule()
    healed_refusals: HealedRefusalsRule = HealedRefusalsRule()
    cached_share: CachedShareRule = CachedShareRule()
    task_dead_letter: TaskDeadLetterRule = TaskDeadLetterRule()


ALL_RULES = AlertRules()
"""All rules with their defaults."""


@dataclass(frozen=True, kw_only=True)
class AlertSettings:
    """Alerts: their receivers, the rules, and the times between evaluations and between reminders."""

    receivers: Mapping[str, AlertReceiver] = field(default_factory=lambda: MappingProxyType({}), repr=False)
    """Receivers by name: lower-case letters, digits, `-` and `_`. Without one no rule is evaluated."""
    rules: AlertRules = ALL_RULES
    """Rules, which are all on by default."""
    interval: float = 30
    """Seconds between two evaluations of the rules, by one process for all."""
    remind_every: int = 86_400
    """Seconds after which a receiver is reminded of a condition that still holds."""

    def receivers_of(self, rule: str, threshold: int) -> tuple[str, ...]:
        """Return the names of the receivers of a rule's alerts, each once; none for a rule or a threshold of budgets
        that is not evaluated.
        """
        entry: AlertRuleEntry = getattr(self.rules, rule)
        is_evaluated = entry.enabled and not (isinstance(entry, BudgetRule) and threshold not in entry.thresholds)
        return tuple(dict.fromkeys(entry.receivers or self.receivers)) if is_evaluated else ()


NO_RECEIVERS = AlertSettings()
"""Settings without a receiver, so that no rule is evaluated."""
