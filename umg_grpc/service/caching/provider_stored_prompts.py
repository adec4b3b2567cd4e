"""Explicit prompt caches (`cachedContents`): a provider stores the beginnings of marked prompts for a price. A
beginning is stored where this costs less than to send it again, in the background, when it comes a second time. Later
calls name it. It ends by its lifetime.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Mapping
from typing import NamedTuple, Protocol

import msgspec

from umg_grpc.access.usage_record_writer import UsageLog
from umg_grpc.base.errors import UmgError
from umg_grpc.base.http_exchange_progress import ATTEMPT_PROGRESS, AttemptProgress
from umg_grpc.base.lazy_logger import LazyLogger
from umg_grpc.knowledge.prompt_storage_prices import StorageRow, storage_of
from umg_grpc.routing import Target
from umg_grpc.service.caching.prompt_storage_costs import HOUR_SECONDS, Costs, costs_of, stored_usage
from umg_grpc.service.pipeline.call_state import Call
from umg_grpc.service.pipeline.prompt_storage_records import StorageRecord
from umg_grpc.upstream.upstream_interfaces import PromptStorage
from umg_grpc.wire.native.stored_prompts import Beginning, DividedPrompt

MAX_SEEN = 8192
"""Beginnings whose last time is remembered."""
MAX_STORED = 64
MAX_LOST = 1024
FIVE_MINUTES = 300
MARGIN_SECONDS = 30.0
"""Time before the end of a stored beginning in which no call names it any more."""
PAUSE_SECONDS = 600.0
"""Time in which nothing is stored for a key after a refusal by the model's provider, or by the budget of the key."""
CLOSE_SECONDS = 5.0
REFUSED_STATUSES = frozenset({"403", "404"})
"""Statuses by which providers refuse the name of a beginning that they do not have."""

logger = LazyLogger(__name__)


class Stored(NamedTuple):
    """Beginning that a provider has stored, for the prompts of one API key. `end`: Unix time."""

    owner: str
    channel: str
    name: str
    end: float


class _Place(NamedTuple):
    """Identity of a set of stored beginnings: the caller's API key and the channel at which they are stored."""

    owner: str
    channel: str


class Sharing(Protocol):
    """Interface by which the processes of the gateway share stored beginnings of prompts."""

    async def claim(self, owner: str, digest: bytes) -> bool:
        """Return whether this process may store the beginning of a prompt: no other process is storing it now."""
        ...

    def publish(self, owner: str, digest: bytes, stored: Stored) -> None:
        """Report a stored beginning to the other processes, which may then use it."""
        ...

    async def withdraw(self, owner: str, digest: bytes) -> None:
        """Report that a stored beginning no longer exists, so that no process uses it."""
        ...


class StoredPrompts:
    """Stored beginnings of prompts that this process uses, until `aclose`."""

    def __init__(self, usage: UsageLog | None, count: Callable[[Call], None], now: Callable[[], float]) -> None:
        """Create the cache. `usage`: log for the costs, None without. `count`: counts a stored beginning in metrics."""
        self.now = now
        self._usage, self._count = usage, count
        self._seen = OrderedDict[bytes, float]()
        self.is_used = False
        """Whether a prompt was divided, so that stored beginnings are of use."""
        self._sharing: Sharing | None = None
        self._stored: dict[bytes, Stored] = {}
        self._own: dict[bytes, Stored] = {}
        """Beginnings that this process has stored since the last read of the shared table."""
        self._lost = OrderedDict[str, None]()
        """Names that the provider does not have."""
        self._storing: dict[bytes, _Place] = {}
        self._paused: dict[tuple[_Place, str], float] = {}
        """Ends of pauses. A refusal may be due to the prompts or the budget of one key, and pauses no other one."""
        self._tasks = set[asyncio.Task[None]]()

    async def aclose(self) -> None:
        """Stop storing beginnings. Those at providers stay for their lifetime, as other processes may use them."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=CLOSE_SECONDS)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def share_by(self, sharing: Sharing) -> None:
        """Share the beginnings that this process stores with other processes from now on."""
        self._sharing = sharing

    def replace(self, stored: Mapping[bytes, Stored]) -> None:
        """Use the shared beginnings `stored`, and the newest of this process, which may not be in the table yet."""
        self._stored = {digest: each for digest, each in {**self._own, **stored}.items() if each.name not in self._lost}
        self._own = {digest: each for digest, each in self._own.items() if digest not in stored}

    async def settled(self) -> None:
        """Wait until no beginning of a prompt is being stored."""
        await asyncio.gather(*self._tasks)

    def divided(self, storage: PromptStorage, target: Target, call: Call) -> DividedPrompt | None:
        """Return a call's prompt, divided into the beginnings that may be stored. Return None if the prompt has no
        marks or the model's vendor stores none. Takes milliseconds for a large body.
        """
        if storage_of(target.model) is None:
            return None
        self.is_used = True
        channel = target.channel
        seed = f"{call.caller.key_id}\0{channel.name}\0{channel.base_url}\0{target.model}".encode()
        prompt = DividedPrompt(storage.body, storage.marks, seed)
        return prompt if prompt.beginnings else None

    def apply(self, prompt: DividedPrompt, storage: PromptStorage, target: Target, call: Call) -> bytes:
        """Replace the longest stored beginning of a call's prompt by its name. If a longer beginning is worth its
        price, store it in the background. Return the digest of the beginning that is used; b"" if there is none.
        """
        if (row := storage_of(target.model)) is None:
            return b""
        now = self.now()
        used = self._longest_stored(prompt, now)
        if (candidate := self._longest_seen(prompt, used)) is not None:
            gap = now - self._seen[candidate.digest]
            costs = costs_of(target.prices, row, candidate.size, now)
            if _pays(row, costs, candidate, gap, covered=used.size if used is not None else 0):
                self._begin(storage, target, call, _Order(prompt, candidate, costs))
        for beginning in prompt.beginnings:
            self._seen[beginning.digest] = now
            self._seen.move_to_end(beginning.digest)
        while len(self._seen) > MAX_SEEN:
            self._seen.popitem(last=False)
        if used is None:
            return b""
        storage.replace_body(prompt.rest(used, self._stored[used.digest].name))
        return used.digest

    def refuses(self, digest: bytes, error: UmgError) -> bool:
        """Return whether a call failed since the provider no longer has the stored beginning. If so, forget it."""
        status, facts = error.metadata.get("upstream_status"), error.facts
        is_named = facts is not None and "cache" in facts.message.lower()
        if digest not in self._stored or not (status in REFUSED_STATUSES or (status == "400" and is_named)):
            return False
        stored = self._stored.pop(digest)
        self._own.pop(digest, None)
        self._lost[stored.name] = None
        while len(self._lost) > MAX_LOST:
            self._lost.popitem(last=False)
        if self._sharing is not None:
            self._run(self._sharing.withdraw(stored.owner, digest))
        return True

    def _longest_stored(self, prompt: DividedPrompt, now: float) -> Beginning | None:
        for beginning in reversed(prompt.beginnings):
            found = self._stored.get(beginning.digest)
            if found is not None and found.end - MARGIN_SECONDS > now:
                return beginning
        return None

    def _longest_seen(self, prompt: DividedPrompt, used: Beginning | None) -> Beginning | None:
        """Return the longest beginning that came before and is not stored; None if it is shorter than `used`."""
        for beginning in reversed(prompt.beginnings):
            if used is not None and beginning.size <= used.size:
                return None
            if beginning.digest in self._seen:
                return beginning
        return None

    def _begin(self, storage: PromptStorage, target: Target, call: Call, order: "_Order") -> None:
        digest, now, place = order.beginning.digest, self.now(), _Place(call.caller.key_id, target.channel.name)
        self._paused = {paused: end for paused, end in self._paused.items() if end > now}
        if digest in self._storing or (place, target.model) in self._paused:
            return
        self._stored = {key: each for key, each in self._stored.items() if each.end > now}
        places = [*(_Place(each.owner, each.channel) for each in self._stored.values()), *self._storing.values()]
        if places.count(place) >= MAX_STORED:
            return
        self._storing[digest] = place
        self._run(self._store(storage, target, order, call))

    def _run(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _store(self, storage: PromptStorage, target: Target, order: "_Order", call: Call) -> None:
        beginning, costs, channel = order.beginning, order.costs, target.channel.name
        ATTEMPT_PROGRESS.set(AttemptProgress(affinity=call.affinity))  # of this task, which has the key of the call
        began, seconds, owner = self.now(), lifetime_of(beginning), call.caller.key_id
        record = StorageRecord(self._usage, self._count, call, target, costs.prices)
        try:
            if self._sharing is not None and not await self._sharing.claim(owner, beginning.digest):
                return
            await record.reserve(costs.maximum(beginning))
            created = await storage.store(order.prompt, beginning, target.model, seconds)
            record.charge(stored_usage(created.usage_metadata.total_token_count, is_long=beginning.is_long))
            stored = Stored(owner, channel, created.name, began + seconds)
            self._stored[beginning.digest] = self._own[beginning.digest] = stored
            if self._sharing is not None:
                self._sharing.publish(owner, beginning.digest, stored)
        except UmgError as error:
            self._paused[_Place(owner, channel), target.model] = self.now() + PAUSE_SECONDS
            logger.warning("beginning of a prompt not stored", channel=channel, model=target.model, outcome=error.name)
        finally:
            record.end()
            self._storing.pop(beginning.digest, None)


class _Order(msgspec.Struct, frozen=True):
    """Beginning of a prompt that is to be stored, with its costs."""

    prompt: DividedPrompt
    beginning: Beginning
    costs: Costs


def lifetime_of(beginning: Beginning) -> int:
    """Return the seconds for which a beginning is stored: the lifetime of the caller's mark."""
    return HOUR_SECONDS if beginning.is_long else FIVE_MINUTES


def _pays(row: StorageRow, costs: Costs, beginning: Beginning, gap: float, *, covered: int) -> bool:
    """Return whether it costs less to store a beginning than to send it. `gap`: seconds since the last call with it."""
    seconds = lifetime_of(beginning)
    if gap > seconds or costs.tokens < row.min_tokens:
        return False
    return costs.pays(beginning, gap, seconds, covered, implicit=row.implicit)
