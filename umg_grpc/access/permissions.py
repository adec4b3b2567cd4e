"""Permissions of API keys: the operations that a key may be restricted to, and the RPCs that belong to each."""

from collections.abc import Mapping
from itertools import chain

from umg_grpc.v1 import pb

ADMIN = "admin"
"""Scope of a key that manages keys. A key without a restriction of operations does not have it."""

OPERATIONS: Mapping[str, "frozenset[pb.ModelOperation.ValueType]"] = {
    "generate": frozenset({pb.MODEL_OPERATION_GENERATE, pb.MODEL_OPERATION_COUNT_TOKENS}),
    "embed": frozenset({pb.MODEL_OPERATION_EMBED}),
    "rerank": frozenset({pb.MODEL_OPERATION_RERANK}),
    "images": frozenset({pb.MODEL_OPERATION_GENERATE_IMAGE, pb.MODEL_OPERATION_EDIT_IMAGE}),
    "videos": frozenset({pb.MODEL_OPERATION_CREATE_VIDEO, pb.MODEL_OPERATION_REMIX_VIDEO}),
    "models": frozenset(),
}
"""Operation of keys -> operations of models that it permits. `models` permits the list of models."""

EVERY_KEY = frozenset({*OPERATIONS, ADMIN})
"""Scopes of a method that every key may call."""

_SERVICES: Mapping[str, frozenset[str] | None] = {
    "GenerationService": frozenset({"generate"}),
    "EmbeddingService": frozenset({"embed"}),
    "RerankService": frozenset({"rerank"}),
    "ModelService": frozenset({"models"}),
    "ImageService": frozenset({"images"}),
    "VideoService": frozenset({"videos"}),
    "FileService": None,
    "AdminService": frozenset({ADMIN}),
}
_METHODS: Mapping[str, frozenset[str] | None] = {
    # a key may read itself; the servicer checks which key a call names
    **dict.fromkeys((f"AdminService/{name}" for name in ("GetKey", "GetUsage", "GetRequestRecord")), EVERY_KEY),
    "VideoService/ReceiveVideoCallback": None,
}


def required_scopes(method: str) -> frozenset[str] | None:
    """Return the permissions that allow a call of the RPC `/umg.v1.Service/Method`; a key needs one of them.

    None for an RPC that needs no key, since its request is signed. Raise KeyError for a service that is not in the
    table, so that no service is served without a permission.
    """
    name = method.rpartition(".")[2]
    return _METHODS[name] if name in _METHODS else _SERVICES[name.partition("/")[0]]


def model_operations(operations: frozenset[str]) -> "frozenset[pb.ModelOperation.ValueType]":
    """Return the model operations, for example text generation, that a key with the permissions `operations` may use.

    Raise KeyError for a name that is not in `OPERATIONS`.
    """
    return frozenset(chain.from_iterable(OPERATIONS[name] for name in operations))
