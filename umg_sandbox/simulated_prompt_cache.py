"""Simulated prompt cache of a provider, for the cache tokens in the usage of simulated responses."""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from umg_grpc.v1 import pb
from umg_sandbox.prompt_reader import Block
from umg_sandbox.words_from_prompt import digest

# Text document, messages rule 4 and Limits.
TTL_LIFETIMES = {pb.CACHE_TTL_UNSPECIFIED: 300.0, pb.CACHE_TTL_FIVE_MINUTES: 300.0, pb.CACHE_TTL_ONE_HOUR: 3600.0}
RETENTION_LIFETIMES = {"24h": 86400.0}
LEAST_TOKENS = 1024
LEAST_TOKENS_OF_SMALL = 2048
SMALL_MODELS = ("mini", "flash")
CACHED_CONTENT_TOKENS = 2048
"""Tokens that a prefix referenced by `cachedContent` counts; any id is accepted."""


@dataclass(frozen=True)
class CacheUse:
    """Tokens of one prompt that were read from the cache, written to it, and written to it for an hour."""

    read: int = 0
    written: int = 0
    written_1h: int = 0


class PromptCache:
    """Simulated cache of prompt prefixes, separate for each owner. Reading an entry restarts its lifetime."""

    def __init__(self, clock: Callable[[], float], max_entries: int) -> None:
        """Create an empty cache. `clock`: returns the seconds since a fixed time; `max_entries`: maximum number of
        prefixes, above which the least recently used one is removed.
        """
        self._clock = clock
        self._max_entries = max_entries
        self._entries: OrderedDict[bytes, tuple[float, float]] = OrderedDict()  # key -> end, lifetime

    def use(self, scope: str, request: pb.GenerateRequest, model: str, blocks: Sequence[Block]) -> CacheUse:
        """Return the tokens of a prompt that are read from the cache and written to it. `scope`: owner of the prompt;
        `blocks`: its content, in order. A cached prefix ends at each cache mark; a mark of the whole request is at its
        end. Without marks, nothing is cached, except if there is a `prompt_cache_key`: then the whole prompt is cached
        for prompts with this key.
        """
        marks = self._marks(request, blocks)
        if not marks:
            return CacheUse()
        least = LEAST_TOKENS_OF_SMALL if any(name in model for name in SMALL_MODELS) else LEAST_TOKENS
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
                written[marks[index] == TTL_LIFETIMES[pb.CACHE_TTL_ONE_HOUR]] += tokens - begin
                begin = tokens
                self._write(key, now, marks[index])
        return CacheUse(read, written[False], written[True])

    def _marks(self, request: pb.GenerateRequest, blocks: Sequence[Block]) -> dict[int, float]:
        """Return position of a block at which a cached prefix ends -> lifetime of the prefix in seconds."""
        marks = {index: TTL_LIFETIMES[block.ttl] for index, block in enumerate(blocks) if block.ttl}
        if blocks and request.HasField("cache_control"):
            marks[len(blocks) - 1] = TTL_LIFETIMES[request.cache_control.ttl]
        elif blocks and not marks and request.prompt_cache_key:
            marks[len(blocks) - 1] = RETENTION_LIFETIMES.get(
                request.prompt_cache_retention, TTL_LIFETIMES[pb.CACHE_TTL_UNSPECIFIED]
            )
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
        while len(self._entries) > self._max_entries:
            self._entries.popitem(last=False)
