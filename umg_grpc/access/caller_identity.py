"""Caller: the identity, permissions and limits that a call gets from its API key."""

import re
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from umg_grpc.access.key_permissions import ADMIN_SCOPE, PERMITTED_OPERATIONS, model_operations
from umg_grpc.access.key_settings import BOOTSTRAP_KEY
from umg_grpc.base.errors import UmgError
from umg_grpc.base.wildcard_patterns import matcher
from umg_grpc.v1 import pb


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
    def has_limits(self) -> bool:
        """Whether the key has a limit of requests, tokens or concurrency."""
        limits = (self.requests_per_minute, self.tokens_per_minute, self.concurrent_requests)
        return any(limit is not None for limit in limits)

    @cached_property
    def scopes(self) -> frozenset[str]:
        """Permissions of the key: its allowed operations, and `admin` if it may manage keys."""
        return (self.operations or frozenset(PERMITTED_OPERATIONS)) | (
            frozenset({ADMIN_SCOPE}) if self.administrator else frozenset()
        )

    @cached_property
    def model_operations(self) -> "frozenset[pb.ModelOperation.ValueType] | None":
        """Model operations that the key may use, for example text generation; None for all of them."""
        return model_operations(self.operations) if self.operations else None

    def check_scopes(self, required: frozenset[str]) -> None:
        """Raise UmgError(PERMISSION_DENIED) if the key has none of the `required` permissions."""
        if not self.scopes.isdisjoint(required):
            return
        operation = min(required)
        if operation == ADMIN_SCOPE:
            message = "this API key may not administer the gateway; use a key of an administrator"
        else:
            message = (
                f"this API key may not use the operation `{operation}`; it may use {', '.join(sorted(self.scopes))}"
            )
        raise UmgError(pb.ERROR_REASON_PERMISSION_DENIED, message, operation=operation)

    @cached_property
    def _models(self) -> re.Pattern[str]:
        return matcher(self.model_patterns)

    def may_use(self, model: str, alias: str = "") -> bool:
        """Return whether the key permits a model: by its public id, or by the alias in the request ("" if there is
        none).
        """
        if not self.model_patterns or self._models.match(model) is not None:
            return True
        return alias != "" and self._models.match(alias) is not None

    def check_model(self, model: str, alias: str = "") -> None:
        """Raise UmgError(PERMISSION_DENIED) if the key permits neither the model's id nor its alias ("" if there is
        none).
        """
        if not self.may_use(model, alias):
            named, allowed = alias or model, ", ".join(self.model_patterns)
            message = f"this API key may not use the model `{named}`; its models are {allowed}"
            raise UmgError(pb.ERROR_REASON_PERMISSION_DENIED, message, model=named)
