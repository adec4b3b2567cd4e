"""A prompt cache, as providers have it."""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from umg_grpc.upstream.sandbox.prompt import Block
from umg_grpc.upstream.sandbox.words import digest
from umg_grpc.v1 import pb

# Text document, messages rule 4 and Limits.
LIFETIMES = {"5m": 300.0, "1h": 3600.0}
RETENTIONS = {"24h": 86400.0}
LEAST_TOKENS = 1024
LEAST_TOKENS_OF_SMALL = 2048
SMALL = ("mini", "flash")
CACHED_CONTENT_TOKENS = 2048
"""Of a prefix that the caller names by its id (`cachedContent`); any id will do."""


@dataclass(frozen=True)
class CacheUse:
    """Tokens of one prompt."""

    read: int = 0
    written: int = 0
    written_1h: int = 0


class PromptCache:
    """Prefixes of prompts by whose they are. Reading one keeps it for its lifetime again."""

    def __init__(self, clock: Callable[[], float], most: int) -> None:
        """`clock`: seconds, of any origin. `most`: prefixes that are kept; the longest unused go first."""
        self._clock = clock
        self._most = most
        self._entries: OrderedDict[bytes, tuple[float, float]] = OrderedDict()  # -> end, lifetime

    def use(self, scope: str, request: pb.GenerateRequest, model: str, blocks: Sequence[Block]) -> CacheUse:
        """What of the prompt was kept, and what of it is kept from now on. `scope`: whose the prompt is.

        Prefixes end where a mark stands (or, with the mark of the whole request, at the end). Without any mark nothing
        is kept, save under a `prompt_cache_key`: that keeps the whole prompt, and shares it with prompts of that key.
        """
        marks = self._marks(request, blocks)
        if not marks:
            return CacheUse()
        least = LEAST_TOKENS_OF_SMALL if any(name in model for name in SMALL) else LEAST_TOKENS
        now, last, tokens, read = self._clock(), max(marks), 0, 0
        key = digest(scope, model, request.prompt_cache_key)
        ends = dict[int, tuple[bytes, int]]()
        for index, block in enumerate(blocks[: last + 1]):
            key = digest(key.hex(), block.fingerprint.hex())
            tokens += block.tokens
            if tokens >= least:
                if self._read(key, now):
                    read = tokens
                if index in marks:
                    ends[index] = (key, tokens)
        written, begin = {True: 0, False: 0}, read
        for index, (key, tokens) in ends.items():
            if tokens > read:
                written[marks[index] == LIFETIMES["1h"]] += tokens - begin
                begin = tokens
                self._write(key, now, marks[index])
        return CacheUse(read, written[False], written[True])

    def _marks(self, request: pb.GenerateRequest, blocks: Sequence[Block]) -> dict[int, float]:
        """Lifetimes by the positions of the blocks that end a prefix."""
        marks = {index: LIFETIMES[block.ttl] for index, block in enumerate(blocks) if block.ttl}
        if blocks and request.HasField("cache_control"):
            marks[len(blocks) - 1] = LIFETIMES[request.cache_control.ttl or "5m"]
        elif blocks and not marks and request.prompt_cache_key:
            marks[len(blocks) - 1] = RETENTIONS.get(request.prompt_cache_retention, LIFETIMES["5m"])
        return marks

    def _read(self, key: bytes, now: float) -> bool:
        if key not in self._entries:
            return False
        end, lifetime = self._entries[key]
        if end <= now:
            del self._entries[key]
            return False
        self._write(key, now, lifetime)
        return True

    def _write(self, key: bytes, now: float, lifetime: float) -> None:
        self._entries[key] = (now + lifetime, lifetime)
        self._entries.move_to_end(key)
        while len(self._entries) > self._most:
            self._entries.popitem(last=False)
