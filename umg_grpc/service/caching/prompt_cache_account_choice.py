"""Choice of accounts by prompt caches. All requests of a conversation have one digest, in every process. By it they are
sent to the same account of a provider, whose prompt cache has the beginning of their prompts, and get their key of this
cache (`prompt_cache_key`) if the format of the caller has none.
"""

from collections.abc import Mapping
from hashlib import blake2b
from typing import Protocol

from umg_grpc.knowledge.agent_sessions import Session, session_of
from umg_grpc.knowledge.dropped_field_losses import LOSS_MEMBERS
from umg_grpc.knowledge.prompt_lines_of_agents import LINE_BEGINNINGS
from umg_grpc.v1 import pb

SMALLEST_BYTES = 4 * 2**10
"""Minimum size of a request that names no session: providers cache no prompt below 1024 tokens."""
MAX_PART_BYTES = 16 * 2**10
"""Bytes of one part of the prompt that are read, so that a digest takes microseconds."""
KEY_MEMBER = "prompt_cache_key"


class Digest(Protocol):
    """Hash function that is fed with the parts of a conversation one after the other."""

    def update(self, data: bytes, /) -> None: ...


def find_affinity(owner: str, request: pb.GenerateRequest, headers: Mapping[str, str]) -> bytes:
    """Return the digest of the request's conversation; empty for a request that names no session and is too short for
    a prompt cache. `owner`: `affinity_id` of the caller; `headers`: of the call, with names in lower case.
    """
    session = session_of(headers, prompt_cache_key=request.prompt_cache_key, user=request.user)
    if session is None:
        body = len(request.source.body)
        if body < SMALLEST_BYTES and request.ByteSize() - body < SMALLEST_BYTES:  # with stored messages it is longer
            return b""
    return conversation_digest(owner, request, session)


def conversation_digest(owner: str, request: pb.GenerateRequest, session: Session | None) -> bytes:
    """Return a digest that all requests of a conversation have: that of the session, if it has one. Otherwise it is
    computed from the names of the tools, the instructions and the messages before the assistant's first one.
    """
    digest = blake2b(owner.encode(), digest_size=16)
    if session is not None:
        digest.update("\0".join(("", *session)).encode(errors="surrogatepass"))
        return digest.digest()
    for tool in request.tools:
        _add_tool(digest, tool)
    for index, part in enumerate(request.instructions):
        if index or not part.text.text.startswith(
            LINE_BEGINNINGS
        ):  # a line for the client's own vendor, new in each call
            _add_part(digest, part)
    for message in request.messages:
        if message.role == pb.ROLE_ASSISTANT:
            break
        digest.update(b"\0message %d" % message.role)
        for part in message.parts:
            _add_part(digest, part)
    return digest.digest()


def _add_tool(digest: Digest, tool: pb.Tool) -> None:
    name = tool.function.name or tool.custom.name  # "" for tools that the provider runs
    digest.update(f"\0{tool.WhichOneof('kind')} {name}".encode())


def _add_part(digest: Digest, part: pb.Part) -> None:
    """Add the beginning of a part to the digest, without cache marks, which clients move to other parts each time."""
    if part.HasField("text"):
        text = part.text.text
        digest.update(b"\0text %d " % len(text))
        digest.update(text[:MAX_PART_BYTES].encode())
        return
    if part.HasField("cache_control"):
        unmarked = pb.Part()
        unmarked.CopyFrom(part)
        unmarked.ClearField("cache_control")
        part = unmarked
    size = part.ByteSize()
    digest.update(b"\0part %d " % size)
    if size <= MAX_PART_BYTES:  # media of one size count as the same
        digest.update(part.SerializeToString(deterministic=True))


def lacks_key(request: pb.GenerateRequest) -> bool:
    """Return whether the caller's format has no field for a key of a prompt cache."""
    face = request.source.format
    return bool(face) and KEY_MEMBER not in LOSS_MEMBERS[face]


def make_key(owner: str, request: pb.GenerateRequest, headers: Mapping[str, str]) -> str:
    """Return the key for a request: by the session that its client names, or else by its tools and the first messages
    of its conversation. `owner`: `affinity_id` of the caller; `headers`: of the call, with names in lower case.
    """
    return f"umg-{conversation_digest(owner, request, session_of(headers, user=request.user)).hex()}"
