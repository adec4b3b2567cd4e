"""Prompt cache affinity: prefers the channel that served a conversation last, whose provider may have its beginning in
the prompt cache.
"""

import hashlib
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Protocol

from umg_grpc.knowledge.client_lines import BEGINNINGS
from umg_grpc.v1 import pb

SMALLEST_BYTES = 4 * 2**10  # minimum size of a request: providers cache no prompt below 1024 tokens
MAX_CONVERSATIONS = 20_000  # maximum number of conversations in memory
SECONDS = 600.0  # time for which providers keep an unused prompt


class Digest(Protocol):
    """Digest that is being computed."""

    def update(self, data: bytes, /) -> None: ...


def beginning(owner: str, request: pb.GenerateRequest) -> bytes | None:
    """Return a digest of the request's instructions and of its messages before the first assistant message, which
    identifies the conversation; None for a request that is too short for a prompt cache. `owner`: id of the caller's
    key.
    """
    if (len(request.source.body) or request.ByteSize()) < SMALLEST_BYTES:
        return None
    digest = hashlib.blake2b(owner.encode(), digest_size=16)
    update_with_beginning(digest, request)
    return digest.digest()


def update_with_beginning(digest: Digest, request: pb.GenerateRequest) -> None:
    """Add the request's instructions and its messages before the first assistant message to a digest. A line that the
    client put in front of them for its own vendor, and that differs between calls, is left out.
    """
    for index, part in enumerate(request.instructions):
        if index or not part.text.text.startswith(BEGINNINGS):
            digest.update(part.SerializeToString())
    for message in request.messages:
        if message.role == pb.ROLE_ASSISTANT:
            break
        digest.update(message.SerializeToString())


class PromptCacheAffinity:
    """Map from conversation to the name of the channel that served it last, in memory, for the calls of this
    process.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._channels: OrderedDict[bytes, tuple[str, float]] = OrderedDict()

    def channel(self, beginning: bytes | None) -> str:
        """Return the name of the channel that served the conversation last, "" if none is known.
        `beginning`: digest of the conversation; None, for a request without one, is never known.
        """
        if beginning is None:
            return ""
        channel, seen = self._channels.get(beginning, ("", 0.0))
        return channel if self._now() - seen <= SECONDS else ""

    def note(self, beginning: bytes, channel: str) -> None:
        """Record that the channel has served the conversation with the digest `beginning`."""
        self._channels[beginning] = (channel, self._now())
        self._channels.move_to_end(beginning)
        if len(self._channels) > MAX_CONVERSATIONS:
            self._channels.popitem(last=False)
