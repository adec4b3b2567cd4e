"""Sharing of stored beginnings of prompts by the database: one process stores them, and others use them in seconds."""

from datetime import UTC, datetime

import msgspec
from sqlalchemy import select
from sqlalchemy.exc import SQLAlchemyError

from umg_grpc.base.lazy_logger import LazyLogger
from umg_grpc.service.caching.provider_stored_prompts import Stored, StoredPrompts
from umg_grpc.store import Store
from umg_grpc.store.database_constants import SQLITE_KIND
from umg_grpc.store.expired_row_sweep import Bounds
from umg_grpc.store.expiring_rows import Retained, RetainedStore
from umg_grpc.store.repeated_background_tasks import Background, reason_of
from umg_grpc.store.table_definitions import StoredPromptRow

MAX_BYTES = 1 << 20
"""Maximum size of the rows of one API key."""
LOAD_SECONDS = 10.0
CLAIM_SECONDS = 120.0
"""Time for which a process has the right to store a beginning."""
CLOSE_SECONDS = 2.0

logger = LazyLogger(__name__)
_STORED = msgspec.json.Decoder(Stored)


class StoredPromptTable(RetainedStore[StoredPromptRow]):
    """Table of stored beginnings of prompts, from `start` to `aclose`. It is written in the background, and read
    periodically once a call has a prompt that may be stored.
    """

    def __init__(self, store: Store, prompts: StoredPrompts) -> None:
        self._clock = store.clock
        super().__init__(Retained(store, StoredPromptRow, Bounds(owner_bytes=MAX_BYTES, total_bytes=0), self._clock))
        self._store = store
        self._prompts = prompts
        self._loader: Background | None = None

    def start(self) -> None:
        super().start()
        self._loader = Background("loading stored prompts", self.load, every=LOAD_SECONDS)
        self._prompts.share_by(self)

    async def aclose(self) -> None:
        await self._prompts.aclose()
        if self._loader is not None:
            await self._loader.aclose(CLOSE_SECONDS)
        await super().aclose()

    async def claim(self, owner: str, digest: bytes) -> bool:
        from sqlalchemy.dialects import postgresql, sqlite  # here: 2 MB, and few channels store prompts

        table, end = StoredPromptRow, datetime.fromtimestamp(self._clock.now() + CLAIM_SECONDS, UTC)
        values = {"expire_time": end, "size_bytes": 0, "stored": b""}
        try:
            async with self._store.write() as session:
                insert = sqlite.insert if session.get_bind().dialect.name == SQLITE_KIND else postgresql.insert
                claimed = insert(table).values(owner=owner, object_id=digest.hex(), **values)
                claimed = claimed.on_conflict_do_update(
                    index_elements=[table.owner, table.object_id],
                    set_=values,
                    where=table.expire_time <= self._clock.sql_time(),
                )
                return await session.scalar(claimed.returning(table.object_id)) is not None
        except SQLAlchemyError as error:
            logger.warning("beginning of a prompt not stored", reason=reason_of(error))
            return False

    def publish(self, owner: str, digest: bytes, stored: Stored) -> None:
        packed = msgspec.json.encode(stored)
        self._rows.add(
            StoredPromptRow(
                owner=owner,
                object_id=digest.hex(),
                expire_time=datetime.fromtimestamp(stored.end, UTC),
                size_bytes=len(packed),
                stored=packed,
            )
        )

    async def withdraw(self, owner: str, digest: bytes) -> None:
        try:
            await self._rows.delete(owner, digest.hex())
        except SQLAlchemyError as error:
            logger.warning("stored beginning of a prompt not deleted", reason=reason_of(error))

    async def flushed(self) -> bool:
        """Wait a bounded time until the queued rows are in the database. Return whether they are."""
        return await self._rows.flushed(CLOSE_SECONDS)

    async def load(self) -> None:
        """Take the stored beginnings in the table over into this process."""
        if self._prompts.is_used:
            self._prompts.replace(await self.read())

    async def read(self) -> dict[bytes, Stored]:
        """Return the beginnings in the table by their digests, without expired and unreadable ones."""
        table = StoredPromptRow
        query = select(table.object_id, table.stored).where(table.expire_time > self._clock.sql_time())
        async with self._store.read() as session:
            rows = list(await session.execute(query))
        found = dict[bytes, Stored]()
        for object_id, packed in rows:
            try:
                found[bytes.fromhex(object_id)] = _STORED.decode(packed)
            except ValueError:  # one that is being stored, or of a newer version
                continue
        return found
