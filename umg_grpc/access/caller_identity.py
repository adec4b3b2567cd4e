"""Caller: the identity, permissions and limits that a call gets from its API key."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from umg_grpc.access.account_levels import AccountLevel, Levels, has_limit
from umg_grpc.access.budget_settings import Budget, ChargedBudget, charged_budgets
from umg_grpc.access.key_permissions import ADMIN_SCOPE, PERMITTED_OPERATIONS, model_operations
from umg_grpc.access.key_settings import BOOTSTRAP_KEY, ISSUED_CALLER_PREFIX
from umg_grpc.access.principals import Principal
from umg_grpc.base.errors import UmgError
from umg_grpc.base.wildcard_patterns import matcher
from umg_grpc.v1 import pb

if TYPE_CHECKING:
    from umg_grpc.access.limit_subjects import Limited


class KeyReference(NamedTuple):
    """Id and prefix of an API key, valid or not, by which log lines name the key."""

    key_id: str
    prefix: str
    """Beginning of the key, by which its holder recognises it."""


@dataclass(frozen=True)
class Caller:
    """Holder of a valid API key, with the key's id, permissions and limits, but without its secret."""

    key_id: str
    name: str
    model_patterns: tuple[str, ...]
    """Allowed model ids, in which `*` matches any characters; empty allows every model."""
    requests_per_minute: int | None
    """Rate limit; None is unlimited."""
    expires_at: float | None
    """Unix seconds from which on the key is rejected; None is never."""
    channels: tuple[str, ...] = ()
    """Names of the allowed channels, in which `*` matches any characters; empty allows every channel."""
    show_route: bool = False
    """Whether responses name the channel that served the call, and the reason for its selection (`x-umg-route`)."""

    operations: frozenset[str] = frozenset()
    """Allowed operations, as in `key_permissions.py`; empty allows every operation, but not administration."""
    administrator: bool = False
    """Whether the key may manage keys."""
    tokens_per_minute: int | None = None
    """Limit of input and output tokens together; None is unlimited."""
    concurrent_requests: int | None = None
    """Limit of calls in flight; None is unlimited."""
    budget_micro_credits: int | None = None
    """Amount that the key may spend in each period; None is unlimited."""
    budget_period: str = ""
    """`day` or `month` in UTC; "" for a budget without a period."""
    key_prefix: str = ""
    further_budgets: tuple[Budget, ...] = ()
    """Budgets of the key besides `budget_micro_credits`."""
    levels: Levels = ()
    """Project and organisation of the key, whose restrictions, limits and budgets hold too."""
    user_id: str = ""
    """Person or service account that owns the key; "" for none."""
    principal: Principal | None = None
    """User that acts, for a credential other than a key; None for a key, see `access_control.py`."""
    session_id: str = ""
    """Session that is the credential; "" for any other."""
    session_end: datetime | None = None
    """When this session ends unless it is used before, in UTC."""

    @property
    def has_token(self) -> bool:
        """Whether the credential is a token of an issuer, by which the caller acts as its user."""
        return self.key_id.startswith(ISSUED_CALLER_PREFIX)

    @property
    def limit_id(self) -> str:
        """Id under which the limits of the key are counted."""
        return self.key_id

    @property
    def affinity_id(self) -> str:
        """Name of the key in the digests of its conversations. It is the same at all replicas for the bootstrap key,
        which has another id in each database, but may have the same secret (UMG_API_KEY).
        """
        return BOOTSTRAP_KEY if self.name == BOOTSTRAP_KEY else self.key_id

    @cached_property
    def limited(self) -> "tuple[Limited, ...]":
        """The key, its project and its organisation, as far as they have limits of requests, tokens or concurrency."""
        subjects: tuple[Limited, ...] = (self, *self.levels)
        return tuple(filter(has_limit, subjects))

    @cached_property
    def budgets(self) -> tuple[ChargedBudget, ...]:
        """Budgets that a call is charged to: of the key, of its project, and of its organisation."""
        own, subject = list[ChargedBudget](), "this API key"
        if self.budget_micro_credits is not None:
            own.append(ChargedBudget(self.key_id, subject, Budget(self.budget_period, self.budget_micro_credits)))
        own += charged_budgets(self.key_id, subject, self.further_budgets)
        for level in self.levels:
            own += charged_budgets(level.account_id, level.title, level.budgets)
        return tuple(own)

    @cached_property
    def has_hard_budget(self) -> bool:
        """Whether calls may be refused because of a budget."""
        return any(not charged.budget.soft for charged in self.budgets)

    @cached_property
    def permitted_operations(self) -> frozenset[str]:
        """Operations that the key, its project and its organisation allow."""
        allowed = (rule for rule in (self.operations, *(level.operations for level in self.levels)) if rule)
        return frozenset(PERMITTED_OPERATIONS).intersection(*allowed)

    @cached_property
    def channel_rules(self) -> tuple[tuple[str, ...], ...]:
        """Patterns of allowed channels, of the key, its project and its organisation. A channel is allowed if it
        matches one pattern of each; empty allows every channel.
        """
        return tuple(rule for rule in (self.channels, *(level.channels for level in self.levels)) if rule)

    @cached_property
    def model_rules(self) -> tuple[tuple[str, ...], ...]:
        """Patterns of allowed models, of the key, its project and its organisation, as in `channel_rules`."""
        return tuple(rule for rule in (self.model_patterns, *(level.model_patterns for level in self.levels)) if rule)

    @property
    def allowed_models(self) -> str:
        """Patterns of allowed models in messages for people, with the account that sets them; "" if all are allowed."""
        named = [", ".join(self.model_patterns)] if self.model_patterns else []
        restricting = (level for level in self.levels if level.model_patterns)
        named += (f"those that {level.title} allows ({', '.join(level.model_patterns)})" for level in restricting)
        return "; of these ".join(named)

    @cached_property
    def scopes(self) -> frozenset[str]:
        """Permissions of the key: its allowed operations, and `admin` if it may manage keys."""
        return self.permitted_operations | (frozenset({ADMIN_SCOPE}) if self.administrator else frozenset())

    @cached_property
    def model_operations(self) -> "frozenset[pb.ModelOperation.ValueType] | None":
        """Model operations that the key may use, for example text generation; None for all of them."""
        is_restricted = len(self.permitted_operations) < len(PERMITTED_OPERATIONS)
        return model_operations(self.permitted_operations) if is_restricted else None

    def check_scopes(self, required: frozenset[str]) -> None:
        """Raise UmgError(PERMISSION_DENIED) if the key has none of the `required` permissions."""
        if not self.scopes.isdisjoint(required):
            return
        operation = min(required)
        if operation == ADMIN_SCOPE:
            message = "this API key may not administer the gateway; use a key of an administrator"
        else:
            subject = self._refusing(lambda rules: not rules.operations or not required.isdisjoint(rules.operations))
            message = f"{subject} may not use the operation `{operation}`; it may use {', '.join(sorted(self.scopes))}"
        raise UmgError(pb.ERROR_REASON_PERMISSION_DENIED, message, operation=operation)

    @cached_property
    def _models(self) -> tuple[re.Pattern[str], ...]:
        return tuple(map(matcher, self.model_rules))

    def may_use(self, model: str, alias: str = "") -> bool:
        """Return whether the key permits a model: by its public id, or by the alias in the request ("" if there is
        none). Its project and its organisation have to permit it too.
        """
        return all(
            rule.match(model) is not None or (alias != "" and rule.match(alias) is not None) for rule in self._models
        )

    def check_model(self, model: str, alias: str = "") -> None:
        """Raise UmgError(PERMISSION_DENIED) if the key permits neither the model's id nor its alias ("" if there is
        none).
        """
        if not self.may_use(model, alias):
            named = alias or model
            subject = self._refusing(
                lambda rules: (
                    not rules.model_patterns
                    or any(matcher(rules.model_patterns).match(each) is not None for each in {model, named})
                )
            )
            message = f"{subject} may not use the model `{named}`; its models are {self.allowed_models}"
            raise UmgError(pb.ERROR_REASON_PERMISSION_DENIED, message, model=named)

    def _refusing(self, permits: "Callable[[Caller | AccountLevel], bool]") -> str:
        """Return the first of the key, its project and its organisation whose own rules do not permit, for people."""
        refusing = (level for level in self.levels if not permits(level))
        level = next(refusing, None) if permits(self) else None
        return "this API key" if level is None else f"{level.title} of this API key"
