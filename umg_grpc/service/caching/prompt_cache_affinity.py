"""Which channel has the beginning of a conversation in its cache: the one that served it last."""

import hashlib
import time
from collections import OrderedDict
from collections.abc import Callable

from umg_grpc.v1 import pb

SMALLEST_BYTES = 4 * 2**10  # of a request: providers cache no shorter prompts (1024 tokens)
MOST = 20_000
SECONDS = 600.0  # how long providers keep what nobody asks for


def beginning(owner: str, request: pb.GenerateRequest) -> bytes | None:
    """What the turns of one conversation have in common, and no others: a digest of its instructions and of what was
    said before the first answer. None for a short one.
    """
    if (len(request.source.body) or request.ByteSize()) < SMALLEST_BYTES:
        return None
    digest = hashlib.blake2b(owner.encode(), digest_size=16)
    for part in request.instructions:
        digest.update(part.SerializeToString())
    for message in request.messages:
        if message.role == pb.ROLE_ASSISTANT:
            break
        digest.update(message.SerializeToString())
    return digest.digest()


class Nearness:
    """Remembers, in this process, which channel served a beginning."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._known: OrderedDict[bytes, tuple[str, float]] = OrderedDict()

    def channel(self, beginning: bytes | None) -> str:
        """Its name, "" where none is known."""
        if beginning is None:
            return ""
        channel, seen = self._known.get(beginning, ("", 0.0))
        return channel if self._now() - seen <= SECONDS else ""

    def note(self, beginning: bytes | None, channel: str) -> None:
        """The channel has served it."""
        if beginning is None:
            return
        self._known[beginning] = (channel, self._now())
        self._known.move_to_end(beginning)
        if len(self._known) > MOST:
            self._known.popitem(last=False)
