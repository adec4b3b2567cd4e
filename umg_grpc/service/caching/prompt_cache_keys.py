"""Keys of providers' prompt caches (`prompt_cache_key`) for callers whose format has none. They are equal in all
requests of a session and in every process, and different for each key of the gateway.
"""

from collections.abc import Mapping

from umg_grpc.knowledge.agent_sessions import session_of
from umg_grpc.knowledge.dropped_field_losses import LOSS_MEMBERS
from umg_grpc.service.caching.prompt_cache_affinity import conversation_digest
from umg_grpc.v1 import pb

KEY_MEMBER = "prompt_cache_key"


def lacks_key(request: pb.GenerateRequest) -> bool:
    """Return whether the caller's format has no field for a key of a prompt cache."""
    face = request.source.format
    return bool(face) and KEY_MEMBER not in LOSS_MEMBERS[face]


def make_key(owner: str, request: pb.GenerateRequest, headers: Mapping[str, str]) -> str:
    """Return the key for a request: by the session that its client names, or else by its tools and the first messages
    of its conversation. `owner`: `affinity_id` of the caller; `headers`: of the call, with names in lower case.
    """
    return f"umg-{conversation_digest(owner, request, session_of(headers, user=request.user)).hex()}"
