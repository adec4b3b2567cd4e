"""Simulated prompt caches: the tokens of a prompt that a cache has, and the tokens that it stores."""

import hashlib
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tests.proofs.cache.prompts import TOKEN_BYTES, Prompt
from tests.proofs.cache.vendor_rules import MINUTE, CacheRules, Matching


@dataclass
class SteppedClock:
    """Clock of a vendor, which its server moves by some seconds at each call."""

    step: float = 10.0
    now: float = 0.0

    def __call__(self) -> float:
        return self.now


@dataclass(frozen=True)
class CacheUse:
    """Tokens of one prompt: all, the ones read, and the ones written for the usual and for the long time."""

    prompt: int
    read: int = 0
    written: int = 0
    written_long: int = 0

    @property
    def plain(self) -> int:
        """Tokens that were neither read nor written."""
        return self.prompt - self.read - self.written - self.written_long


@dataclass(frozen=True)
class CacheRequest:
    """Controls of one request beside its marks."""

    account: str
    model: str
    key: str = ""
    """`prompt_cache_key`."""
    automatic: str = ""
    """Lifetime of the automatic breakpoint at the end of the prompt; "" for no automatic breakpoint."""
    is_long: bool = False
    """Whether the request selects the long lifetime for all that it stores."""


def common_bytes(one: bytes, other: bytes) -> int:
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


@dataclass
class _Entry:
    text: bytes
    end: float
    lifetime: float


class SteppedCache:
    """Automatic cache of one server: reads the longest common beginning in steps, and stores each prompt.

    Generated tokens are not stored: vendors state it for none, and the next prompt may have them in another form.
    """

    def __init__(self, rules: CacheRules, clock: Callable[[], float]) -> None:
        self._rules = rules
        self._clock = clock
        self._entries = list[_Entry]()

    def use(self, prompt: Prompt, minimum: int, *, is_long: bool = False) -> CacheUse:
        text, now, rules = prompt.text, self._clock(), self._rules
        self._entries = [entry for entry in self._entries if entry.end > now]
        found = max(self._entries, key=lambda entry: common_bytes(entry.text, text), default=None)
        shared = common_bytes(found.text, text) if found is not None else 0
        read = self.readable(shared // TOKEN_BYTES, prompt.tokens, minimum)
        if found is not None and read:
            found.end = now + found.lifetime
        if prompt.tokens >= minimum:
            lifetime = rules.long_lifetime if is_long else rules.lifetime
            self._entries = [entry for entry in self._entries if not text.startswith(entry.text)]
            self._entries.append(_Entry(text, now + lifetime, lifetime))
        return CacheUse(prompt.tokens, read)

    def readable(self, shared: int, tokens: int, minimum: int) -> int:
        """Return the tokens that are read of a prompt whose first `shared` tokens are stored."""
        step = self._rules.step
        read = min(shared, tokens - self._rules.computes_last) // step * step
        return read if read >= minimum else 0


class MarkedCache:
    """Cache of the beginnings of prompts that end at a mark or a breakpoint."""

    def __init__(self, rules: CacheRules, clock: Callable[[], float]) -> None:
        self._rules = rules
        self._clock = clock
        self._entries = dict[bytes, tuple[float, float]]()
        """Digest of a beginning -> end, lifetime."""

    def use(self, prompt: Prompt, minimum: int, marks: Sequence[tuple[int, bool]]) -> CacheUse:
        """Return the use of the cache by a prompt, and store it up to each mark. `marks`: index of the block at whose
        end one is, and whether its lifetime is the long one, in order.
        """
        now, ends = self._clock(), _ends(prompt)
        at = self._found(ends, [index for index, _ in marks], minimum, now)
        read = ends[at][1] if at >= 0 else 0
        written, start = [0, 0], read
        for index, is_long in marks:
            digest, tokens = ends[index]
            if tokens < minimum or tokens <= read:
                continue
            written[is_long] += tokens - start
            start = tokens
            lifetime = self._rules.long_lifetime if is_long else self._rules.lifetime
            self._entries[digest] = now + lifetime, lifetime
        return CacheUse(prompt.tokens, read, written[False], written[True])

    def _found(self, ends: Sequence[tuple[bytes, int]], marks: Sequence[int], minimum: int, now: float) -> int:
        """Return the index of the last block up to which the prompt is stored, -1 for none. A read renews the entry."""
        for mark in sorted(marks, reverse=True):
            for at in range(mark, max(-1, mark - self._rules.lookback), -1):
                digest, tokens = ends[at]
                end, lifetime = self._entries.get(digest, (now, 0.0))
                if end > now and tokens >= minimum:
                    self._entries[digest] = now + lifetime, lifetime
                    return at
        return -1


def _ends(prompt: Prompt) -> list[tuple[bytes, int]]:
    """Return the digest and the tokens of the beginning up to the end of each block."""
    found, digest, length = [], hashlib.sha256(), 0
    for block in prompt.blocks:
        digest.update(len(block.content).to_bytes(8, "big") + block.content)
        length += len(block.content)
        found.append((digest.copy().digest(), length // TOKEN_BYTES))
    return found


@dataclass
class VendorCaches:
    rules: CacheRules
    clock: Callable[[], float]
    _stepped: dict[tuple[str, str, int], SteppedCache] = field(default_factory=dict)
    _marked: dict[tuple[str, str, int], MarkedCache] = field(default_factory=dict)
    _calls: defaultdict[bytes, deque[float]] = field(default_factory=lambda: defaultdict(deque))

    def use(self, request: CacheRequest, prompt: Prompt, minimum: int) -> CacheUse:
        place = request.account, request.model, self._server(request, prompt)
        if self.rules.matching is Matching.STEPS:
            stepped = self._stepped.setdefault(place, SteppedCache(self.rules, self.clock))
            return stepped.use(prompt, minimum, is_long=request.is_long)
        cache = self._marked.setdefault(place, MarkedCache(self.rules, self.clock))
        return cache.use(prompt, minimum, self._marks(request, prompt))

    def _marks(self, request: CacheRequest, prompt: Prompt) -> list[tuple[int, bool]]:
        """Return the marks of a prompt: the automatic one at its end, and the latest of the others."""
        long_names = ("1h", "12h")
        marks = [
            (index, request.is_long or block.lifetime in long_names)
            for index, block in enumerate(prompt.blocks)
            if block.lifetime
        ]
        if request.automatic:
            last = len(prompt.blocks) - 1
            earlier = [mark for mark in marks if mark[0] != last]
            marks = [*earlier, (last, request.is_long or request.automatic in long_names)]
        return marks[-self.rules.max_marks :]

    def _server(self, request: CacheRequest, prompt: Prompt) -> int:
        """Return the server of a request: by its first tokens and its key, and the next one where it has many calls."""
        rules = self.rules
        if rules.servers == 1:
            return 0
        first = prompt.text[: rules.routed_tokens * TOKEN_BYTES]
        route = hashlib.sha256(f"{request.account} {request.model} {request.key} ".encode() + first).digest()
        calls, now = self._calls[route], self.clock()
        while calls and calls[0] <= now - MINUTE:
            calls.popleft()
        calls.append(now)
        overflow = (len(calls) - 1) // rules.calls_a_minute if rules.calls_a_minute else 0
        return (int.from_bytes(route[:4], "big") + overflow) % rules.servers
