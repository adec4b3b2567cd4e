"""Sharing of learned quirks through the database: other processes apply a new restriction within seconds."""

import hashlib
from datetime import UTC, datetime

import msgspec
from sqlalchemy import select

from umg_grpc.service.resilience.learned_quirks import LIFETIME_SECONDS, Key, LearnedQuirk, LearnedQuirks
from umg_grpc.store import Store
from umg_grpc.store.expired_row_sweep import Bounds
from umg_grpc.store.expiring_rows import Retained, RetainedStore
from umg_grpc.store.repeated_background_tasks import Background
from umg_grpc.store.table_definitions import LearnedQuirkRow

ROW_OWNER = "gateway"
"""Owner of all rows, which belong to no caller."""
MAX_BYTES = 4 << 20
LOAD_SECONDS = 10.0
"""Seconds between two reads of the table: the time after which other processes apply or forget a restriction."""
CLOSE_SECONDS = 2.0

_LEARNED = msgspec.json.Decoder(LearnedQuirk)


class LearnedQuirkTable(RetainedStore[LearnedQuirkRow]):
    """Table of learned quirks in the database, written and read in the background from `start` to `aclose`."""

    def __init__(self, store: Store, learned: LearnedQuirks) -> None:
        self._clock = store.clock
        super().__init__(Retained(store, LearnedQuirkRow, Bounds(owner_bytes=MAX_BYTES, total_bytes=0), self._clock))
        self._store = store
        self._learned = learned
        self._added: dict[Key, LearnedQuirk] = {}  # until the first read that finds them
        self._loader: Background | None = None

    def start(self) -> None:
        super().start()
        self._loader = Background("loading learned quirks", self.load, every=LOAD_SECONDS)
        self._learned.share_by(self.add)

    async def aclose(self) -> None:
        if self._loader is not None:
            await self._loader.aclose(CLOSE_SECONDS)
        await super().aclose()

    def add(self, learned: LearnedQuirk) -> None:
        """Queue a restriction to be written."""
        self._added[learned.key] = learned
        packed = _encoded(learned)
        expire_time = datetime.fromtimestamp(learned.learn_time + LIFETIME_SECONDS, UTC)
        self._rows.add(
            LearnedQuirkRow(
                owner=ROW_OWNER,
                object_id=_digest(learned),
                expire_time=expire_time,
                size_bytes=len(packed),
                learned=packed,
            )
        )

    async def flushed(self) -> bool:
        """Wait a bounded time until the queued rows are written. Return whether they were."""
        return await self._rows.flushed(CLOSE_SECONDS)

    async def load(self) -> None:
        """Apply the restrictions in the table, and recent ones of this process, which may not be in the table yet."""
        stored = await self.read()
        found, recent = {each.key for each in stored}, self._clock.now() - 2 * LOAD_SECONDS
        self._added = {key: each for key, each in self._added.items() if key not in found and each.learn_time > recent}
        self._learned.replace([*stored, *self._added.values()])

    async def read(self) -> list[LearnedQuirk]:
        """Return the restrictions in the table that have not expired and whose version can be read."""
        query = select(LearnedQuirkRow.learned).where(
            LearnedQuirkRow.owner == ROW_OWNER, LearnedQuirkRow.expire_time > self._clock.sql_time()
        )
        async with self._store.read() as session:
            rows = list(await session.scalars(query))
        found = []
        for row in rows:
            try:
                found.append(_LEARNED.decode(row))
            except msgspec.ValidationError:  # of a newer version
                continue
        return sorted(found, key=lambda each: each.learn_time)

    async def forget(self, model: str) -> list[LearnedQuirk]:
        """Delete the restrictions of a provider's model at all channels. Return them."""
        removed = [each for each in await self.read() if each.model == model]
        for each in removed:
            await self._rows.delete(ROW_OWNER, _digest(each))
        return removed


def _encoded(learned: LearnedQuirk) -> bytes:
    fields = msgspec.structs.asdict(learned) | {"quirks": learned.stated()}
    return msgspec.json.encode(fields)


def _digest(learned: LearnedQuirk) -> str:
    return hashlib.sha256("\0".join(learned.key).encode()).hexdigest()
