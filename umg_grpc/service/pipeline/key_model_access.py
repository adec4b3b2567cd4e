"""Access of keys to models, by one rule for calls and for the lists of models. A key may use a model if one of its
model patterns matches, and one of its channels serves the model for one of its operations. For the key, no other model
exists: calls get 404 in the caller's format, as for a wrong model id, so that a restricted key cannot discover models.
An operation that the key may not use is refused earlier (403), for every model alike, which reveals none.
"""

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import NamedTuple

from umg_grpc.access.caller_identity import Caller
from umg_grpc.base.errors import UmgError
from umg_grpc.knowledge.price_calculation import Prices
from umg_grpc.routing import (
    GENERATE_VALUE,
    ModelOperation,
    PublicModel,
    Resolved,
    Router,
    Target,
    distinct,
    has_costs,
    is_priced,
    model_not_found,
    similar_names,
)
from umg_grpc.service.guardrails.guard_selection import GuardPlan
from umg_grpc.service.pipeline.call_state import missing_key
from umg_grpc.service.pipeline.current_channels import Channels

MAX_RESOLVED = 4096


class Access(NamedTuple):
    """Model that a key may use for one operation, with the facts that all these calls share."""

    caller: Caller
    resolved: Resolved
    has_rules: bool
    """Whether the rules of the model's family, or the suffix of its id, may change or reject a request."""
    has_limits: bool
    """Whether the calls are limited by limits of the key or of the model."""
    has_budget: bool
    """Whether the cost of a call is charged to a budget: the key or an account above it has one, and the model is not
    free.
    """
    is_unpriced: bool
    """Whether calls are refused: the key has a budget, and the model has no price at any of its channels."""
    skips_unpriced: bool
    """Whether channels without a price of the model are not used: the key has a budget, and other channels have one."""
    price_lists: tuple[Prices, ...]
    """Different prices of the channels that may be used."""
    has_several: bool
    """Whether more than one channel serves the model, or its fallbacks, for any operation."""
    has_several_accounts: bool
    """Whether the calls may use different keys of providers: of several channels, or of one with several keys."""
    guards: GuardPlan | None
    router: Router
    only_target: Target | None
    """The only channel that the key may use for the operation; None if there are several, or it is disabled."""


class ModelAccess:
    """Look-up of a key's model for one operation, cached by key and name until the config or the key changes."""

    def __init__(
        self, channels: Channels, operation: ModelOperation, note_unpriced: Callable[[str], None] = lambda _: None
    ) -> None:
        """Create the look-up. `note_unpriced`: called with the id of a model without a price for the operation."""
        self._channels = channels
        self._note_unpriced = note_unpriced
        self._operation = operation
        self._router = channels.router
        self._resolved: dict[tuple[str, str], Access] = {}

    def resolve(self, caller: Caller | None, name: str) -> Access:
        """Return the access of a caller to the model with this name. Raise UmgError: MISSING_KEY if `caller` is None,
        MODEL_NOT_FOUND for a model that does not exist or that the key may not use, UNSUPPORTED_FIELD if no channel
        serves the model for the operation, PERMISSION_DENIED if the key may use none of the channels that do.
        """
        if caller is None:
            raise missing_key()
        router = self._channels.router
        if router is not self._router:
            self._router, self._resolved = router, {}
        known = self._resolved.get((caller.key_id, name))
        if known is not None and known.caller is caller:
            return known
        return self._find(router, caller, name)  # apart: its comprehensions would slow down each call

    def _find(self, router: Router, caller: Caller, name: str) -> Access:
        """Find the access of a caller to a model, cache it and return it. Raise UmgError as `resolve` does."""
        resolved = find_model(router, caller, name, self._operation)
        targets = router.reachable(resolved.model.id, self._operation, caller.channel_rules)
        if len(self._resolved) >= MAX_RESOLVED:
            self._resolved.clear()
        model, is_budgeted = resolved.model, caller.has_hard_budget
        priced = [target for target in targets if is_priced(target.prices, self._operation)]
        usable = priced if is_budgeted and priced else targets
        if not priced:
            self._note_unpriced(model.id)
        price_lists = distinct(target.prices for target in usable)
        access = self._resolved[caller.key_id, name] = Access(
            caller=caller,
            resolved=resolved,
            has_rules=bool(resolved.rules.family) or resolved.suffix is not None,
            has_limits=bool(caller.limited) or model.limits is not None,
            has_budget=bool(caller.budgets) and any(map(has_costs, price_lists)),
            is_unpriced=is_budgeted and not priced,
            skips_unpriced=len(usable) < len(targets),
            price_lists=price_lists,
            has_several=router.has_several(model.id) or model.fallbacks is not None,
            has_several_accounts=len(usable) > 1 or any(len(target.channel.api_keys) > 1 for target in usable),
            guards=self._channels.guards.plan(self._operation, model.id, caller) if self._channels.guards else None,
            router=router,
            only_target=usable[0] if len(usable) == 1 and not usable[0].channel.disabled else None,
        )
        return access


def find_model(router: Router, caller: Caller, name: str, operation: ModelOperation = GENERATE_VALUE) -> Resolved:
    """Return the model for the name in a request. A suffix that only text models have is part of the name for another
    `operation`. Raise UmgError(MODEL_NOT_FOUND) with one message for a model that does not exist and for one that the
    key may not use, so that a restricted key cannot discover models.
    """
    with suppress(UmgError):
        found = router.resolve(name)
        if (found.suffix is None or operation == GENERATE_VALUE) and may_use(router, caller, found.model, found.alias):
            return found
    raise not_found(caller, name, router)


def may_use(router: Router, caller: Caller, model: PublicModel, alias: str = "") -> bool:
    """Return whether the caller's key may use the model by its id or by its alias in the request ("" for none)."""
    return caller.may_use(model.id, alias) and router.reaches(model.id, caller.channel_rules, caller.model_operations)


def not_found(caller: Caller, name: str, router: Router) -> UmgError:
    """Return the error for a name that is no model for the key, with similar models and the patterns of the key."""
    error = model_not_found(name)
    if nearest := similar_names(name, router.names(), partial(_may_use_name, router, caller)):
        error = error.with_message(f"{error.message} Did you mean {' or '.join(f'`{each}`' for each in nearest)}?")
    if not caller.model_rules:
        return error
    return error.with_message(f"{error.message} This API key may use: {caller.allowed_models}.")


def _may_use_name(router: Router, caller: Caller, name: str) -> bool:
    resolved = router.resolve(name)
    return may_use(router, caller, resolved.model, resolved.alias)
