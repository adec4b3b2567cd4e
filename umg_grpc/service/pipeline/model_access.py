"""Access of keys to models: one rule for calls and for the lists of models.

A key may use a model if one of its model patterns matches, and one of its channels serves the model for one of its
operations. Any other model does not exist for it (404 in the body of the format, which clients of all formats handle as
a wrong model id), so that a restricted key cannot discover models. An operation that the key does not have is refused
before, for every model alike (403), which reveals no model.
"""

from typing import NamedTuple

from umg_grpc.access.caller import Caller
from umg_grpc.errors import UmgError
from umg_grpc.routing import GENERATE, Operation, PublicModel, Resolved, Router, model_not_found
from umg_grpc.service.pipeline.channels import Channels

MAX_RESOLVED = 4096
"""Most pairs of a key and a name whose model is remembered."""


class _Access(NamedTuple):
    caller: Caller
    resolved: Resolved


class ModelAccess:
    """Models that keys may use for one operation. A name is resolved once for each key, until the config or the key
    changes.
    """

    def __init__(self, channels: Channels, operation: Operation) -> None:
        self._channels = channels
        self._operation = operation
        self._router = channels.router
        self._resolved: dict[tuple[str, str], _Access] = {}

    def resolve(self, caller: Caller, name: str) -> Resolved:
        """Return the model that a caller names. Raise UmgError: MODEL_NOT_FOUND as `find_model` does, UNSUPPORTED_FIELD
        if no channel serves the model for the operation, PERMISSION_DENIED if the key may use none that does.
        """
        router = self._channels.router
        if router is not self._router:
            self._router, self._resolved = router, {}
        known = self._resolved.get((caller.key_id, name))
        if known is not None and known.caller is caller:
            return known.resolved
        resolved = find_model(router, caller, name)
        if resolved.suffix is not None and self._operation != GENERATE:  # it sets the reasoning of a text model
            raise not_found(caller, name)
        router.check(resolved.model.id, self._operation, caller.channels)
        if len(self._resolved) >= MAX_RESOLVED:
            self._resolved.clear()
        self._resolved[caller.key_id, name] = _Access(caller, resolved)
        return resolved


def find_model(router: Router, caller: Caller, name: str) -> Resolved:
    """Return the model that a caller names. Raise UmgError(MODEL_NOT_FOUND) with one message for a model that does not
    exist and for one that the key may not use, so that a restricted key cannot discover models.
    """
    try:
        found = router.resolve(name)
    except UmgError:
        raise not_found(caller, name) from None
    if not may_use(router, caller, found.model, found.alias):
        raise not_found(caller, name)
    return found


def may_use(router: Router, caller: Caller, model: PublicModel, alias: str = "") -> bool:
    """Return whether the key may use the model."""
    return caller.may_use(model.id, alias) and router.reaches(model.id, caller.channels, caller.model_operations)


def not_found(caller: Caller, name: str) -> UmgError:
    """Return the error for a model that does not exist for the key. It lists the models of a restricted key."""
    error = model_not_found(name)
    if not caller.model_patterns:
        return error
    return error.with_message(f"{error.message} This API key may use: {', '.join(caller.model_patterns)}.")
