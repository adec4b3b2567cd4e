"""Access of keys to models, by one rule for calls and for the lists of models.

A key may use a model if one of its model patterns matches, and one of its channels serves the model for one of its
operations. Any other model does not exist for it (404 in the body of the format, which clients of all formats handle as
a wrong model id), so that a restricted key cannot discover models. An operation that the key does not have is refused
before, for every model alike (403), which reveals no model.
"""

from collections.abc import Sequence
from difflib import SequenceMatcher
from itertools import islice
from typing import NamedTuple

from umg_grpc.access.caller import Caller
from umg_grpc.errors import UmgError
from umg_grpc.prices import FREE
from umg_grpc.routing import GENERATE, Operation, PublicModel, Resolved, Router, Target, letters_of, model_not_found
from umg_grpc.service.pipeline.call import missing_key
from umg_grpc.service.pipeline.current_channels import Channels

MAX_RESOLVED = 4096
"""Most pairs of a key and a name whose model is remembered."""


MIN_CHARACTERS, MAX_CHARACTERS = 3, 100
"""Letters of an unknown name that is compared with others, of which similar ones share the first MIN_CHARACTERS."""
MAX_COMPARED, SHOWN = 50, 2
"""Most names that are compared with it, and most names in the error."""
SIMILARITY = 0.8


class Access(NamedTuple):
    """Model that a key may use for one operation, with the facts of key and config that all its calls share."""

    caller: Caller
    resolved: Resolved
    has_rules: bool
    """Whether the model's family or the suffix of its id may change a request."""
    has_limits: bool
    """Whether the key or the model has limits."""
    has_budget: bool
    """Whether the cost of a call is reserved: the key has a budget, and the model is not free."""
    has_several: bool
    """Whether more than one channel serves the model, for any operation."""
    router: Router
    only_target: Target | None
    """The only channel of the router that the key may use for the operation; None if it may use several."""


class ModelAccess:
    """Look-up of the model that a key may use for one operation. A name is resolved once for each key, until the config
    or the key changes.
    """

    def __init__(self, channels: Channels, operation: Operation) -> None:
        self._channels = channels
        self._operation = operation
        self._router = channels.router
        self._resolved: dict[tuple[str, str], Access] = {}

    def resolve(self, caller: Caller | None, name: str) -> Access:
        """Return the access of a caller to the model that it names. Raise UmgError: MISSING_KEY without a caller,
        MODEL_NOT_FOUND as `find_model` does, UNSUPPORTED_FIELD if no channel serves the model for the operation,
        PERMISSION_DENIED if the key may use none that does.
        """
        if caller is None:
            raise missing_key()
        router = self._channels.router
        if router is not self._router:
            self._router, self._resolved = router, {}
        known = self._resolved.get((caller.key_id, name))
        if known is not None and known.caller is caller:
            return known
        resolved = find_model(router, caller, name)
        if resolved.suffix is not None and self._operation != GENERATE:  # it sets the reasoning of a text model
            raise not_found(caller, name, router)
        targets = router.reachable(resolved.model.id, self._operation, caller.channels)
        if len(self._resolved) >= MAX_RESOLVED:
            self._resolved.clear()
        model = resolved.model
        access = self._resolved[caller.key_id, name] = Access(
            caller=caller,
            resolved=resolved,
            has_rules=bool(resolved.rules.family) or resolved.suffix is not None,
            has_limits=caller.has_limits or model.limits is not None,
            has_budget=caller.budget_micro_credits is not None and model.prices is not FREE,
            has_several=router.has_several(model.id),
            router=router,
            only_target=targets[0] if len(targets) == 1 else None,
        )
        return access


def find_model(router: Router, caller: Caller, name: str) -> Resolved:
    """Return the model that a caller names. Raise UmgError(MODEL_NOT_FOUND) with one message for a model that does not
    exist and for one that the key may not use, so that a restricted key cannot discover models.
    """
    try:
        found = router.resolve(name)
    except UmgError:
        raise not_found(caller, name, router) from None
    if not may_use(router, caller, found.model, found.alias):
        raise not_found(caller, name, router)
    return found


def may_use(router: Router, caller: Caller, model: PublicModel, alias: str = "") -> bool:
    """Return whether the caller's key may use the model, by its id or by the `alias` that the request names."""
    return caller.may_use(model.id, alias) and router.reaches(model.id, caller.channels, caller.model_operations)


def not_found(caller: Caller, name: str, router: Router) -> UmgError:
    """Return the error for a model that does not exist for the key. It names the nearest ones that the key may use, and
    the patterns of a restricted key.
    """
    error = model_not_found(name)
    if nearest := _nearest(caller, name, router):
        error = error.with_message(f"{error.message} Did you mean {' or '.join(f'`{each}`' for each in nearest)}?")
    if not caller.model_patterns:
        return error
    return error.with_message(f"{error.message} This API key may use: {', '.join(caller.model_patterns)}.")


def _nearest(caller: Caller, name: str, router: Router) -> list[str]:
    """Return the models with the names most similar to `name` that the key may use. Compares a bounded number
    of them.
    """
    wanted = letters_of(name)
    if not MIN_CHARACTERS <= len(wanted) <= MAX_CHARACTERS:
        return []
    found = [(0.0, written) for letters, written in router.names() if _end_alike(letters, wanted)]
    for letters, written in _with_common_beginning(router.names(), wanted):
        matcher = SequenceMatcher(None, letters, wanted)
        if matcher.quick_ratio() >= SIMILARITY and (ratio := matcher.ratio()) >= SIMILARITY:
            found.append((1 - ratio, written))
    usable = (written for _, written in sorted(set(found)) if _may_use_name(router, caller, written))
    return list(dict.fromkeys(islice(usable, SHOWN)))


def _with_common_beginning(names: Sequence[tuple[str, str]], wanted: str) -> Sequence[tuple[str, str]]:
    """Return the names that begin like `wanted`, with a common beginning just long enough to leave at most MAX_COMPARED
    names.
    """
    length = MIN_CHARACTERS
    while len(names := [row for row in names if row[0].startswith(wanted[:length])]) > MAX_COMPARED:
        if length >= len(wanted):
            return names[:MAX_COMPARED]
        length += 2
    return names


def _end_alike(letters: str, wanted: str) -> bool:
    """Return whether one model name is the other with a prefix, for example with the name of a provider."""
    return letters.endswith(wanted) or (len(letters) >= MIN_CHARACTERS and wanted.endswith(letters))


def _may_use_name(router: Router, caller: Caller, name: str) -> bool:
    resolved = router.resolve(name)
    return may_use(router, caller, resolved.model, resolved.alias)
