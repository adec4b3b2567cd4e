"""Levels above keys: a key's project and organisation, with the settings that hold for all keys below them."""

from dataclasses import dataclass
from typing import Final, Protocol

from umg_grpc.access.budget_settings import Budget
from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb

PROJECT_KIND, ORGANIZATION_KIND = "project", "organization"
KIND_NOUNS: Final = {PROJECT_KIND: "project", ORGANIZATION_KIND: "organisation"}
"""Words for the kinds of accounts in messages for people."""


@dataclass(frozen=True)
class AccountLevel:
    """Project or organisation of a key. An empty restriction allows all; a limit of None means unlimited."""

    account_id: str
    kind: str
    name: str
    model_patterns: tuple[str, ...] = ()
    channels: tuple[str, ...] = ()
    operations: frozenset[str] = frozenset()
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    concurrent_requests: int | None = None
    budgets: tuple[Budget, ...] = ()
    is_closed: bool = False

    @property
    def limit_id(self) -> str:
        """Id under which the limits of the account are counted."""
        return self.account_id

    @property
    def title(self) -> str:
        """Name of the account in messages for people."""
        return f"the {KIND_NOUNS[self.kind]} `{self.name}`"


Levels = tuple[AccountLevel, ...]
"""Project of a key, then its organisation, if there are any."""


class CallLimits(Protocol):
    """Limits of calls of a key or an account; None means unlimited."""

    @property
    def requests_per_minute(self) -> int | None:
        """Maximum number of calls in any 60 seconds."""

    @property
    def tokens_per_minute(self) -> int | None:
        """Maximum number of tokens in any 60 seconds."""

    @property
    def concurrent_requests(self) -> int | None:
        """Maximum number of calls in flight."""


def has_limit(limits: CallLimits) -> bool:
    """Return whether a key or an account itself has a limit of requests, tokens or concurrency."""
    found = (limits.requests_per_minute, limits.tokens_per_minute, limits.concurrent_requests)
    return any(limit is not None for limit in found)


def closed_level(levels: Levels) -> AccountLevel | None:
    """Return the first closed account of the levels of a key; None if none is closed."""
    return next((level for level in levels if level.is_closed), None)


def unknown_account(reference: str) -> UmgError:
    """Return the error for an unknown organisation or project, and for one that the caller may not see."""
    message = "there is no such organisation or project; `umg projects list` shows ids and names"
    return UmgError(pb.ERROR_REASON_OBJECT_NOT_FOUND, message, id=reference[:100])
