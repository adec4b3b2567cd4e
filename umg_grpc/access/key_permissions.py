"""Permissions of API keys: the operations that a key may be restricted to, and the RPCs that belong to each."""

from collections.abc import Mapping
from itertools import chain

from umg_grpc.operations import ADMINISTRATIVE_SERVICES, OPERATION_ROWS, SCOPE_OPERATIONS, ModelOperation

ADMIN_SCOPE = "admin"
"""Scope of a key that manages keys. A key without a restriction of operations does not have it."""

MODELS_SCOPE = "models"

SESSION_SCOPES = frozenset({ADMIN_SCOPE, MODELS_SCOPE})
"""Scopes of the methods that accept sessions of people: administration, and the list of models."""

PERMITTED_OPERATIONS: Mapping[str, frozenset[ModelOperation]] = {
    **{scope: frozenset(operations) for scope, operations in SCOPE_OPERATIONS.items()},
    MODELS_SCOPE: frozenset(),
}
"""Operation of keys -> operations of models that it permits."""

EVERY_KEY = frozenset({*PERMITTED_OPERATIONS, ADMIN_SCOPE})
"""Scopes of a method that every key may call."""

_SERVICES: Mapping[str, frozenset[str] | None] = {
    **{row.service: frozenset({row.scope}) for row in OPERATION_ROWS},
    "ModelService": frozenset({MODELS_SCOPE}),
    "FileService": None,
    **dict.fromkeys(ADMINISTRATIVE_SERVICES, EVERY_KEY),
}
_METHODS: Mapping[str, frozenset[str] | None] = {
    "VideoService/ReceiveVideoCallback": None,
}


def required_scopes(method: str) -> frozenset[str] | None:
    """Return the permissions of which a key needs one to call the RPC `/umg.v1.Service/Method`; None if it needs no
    key, since its request is signed. Raise KeyError for an unknown service: none is served without a permission.
    """
    name = method.rpartition(".")[2]
    return _METHODS[name] if name in _METHODS else _SERVICES[name.partition("/")[0]]


def model_operations(operations: frozenset[str]) -> frozenset[ModelOperation]:
    """Return the model operations that a key with these permissions may use. Raise KeyError for an unknown name."""
    return frozenset(chain.from_iterable(PERMITTED_OPERATIONS[name] for name in operations))
