"""Video tasks of the proof: submissions through the proxy, and their state in the database at the end."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import aiohttp
from sqlalchemy import select

from tests.proofs.crash.judge import UNCONFIRMED
from tests.proofs.crash.providers import FAMILIES, Counted
from umg_grpc.store.database import Store
from umg_grpc.store.table_definitions import MediaTask
from umg_grpc.store.video_task_table import FAILED_STATE, TERMINAL_STATES
from umg_grpc.v1 import pb

FAMILY = FAMILIES[0]
PAUSE_SECONDS = 0.4
SUBMIT_SECONDS = 90.0
ATTEMPTS = 3
"""Attempts of a submission, with one idempotency key, as clients repeat them."""
END_SECONDS = 60.0
"""Time for the tasks to end after the load."""


@dataclass
class VideoLoad:
    http: str
    secret: str
    task_ids: dict[str, str] = field(default_factory=dict)
    """Tag -> id of the task that the caller got."""
    failed: list[str] = field(default_factory=list)
    """Failed attempts."""
    attempts: int = 0

    async def submit_until(self, stopped: asyncio.Event) -> None:
        async with aiohttp.ClientSession(self.http) as session:
            number = 0
            while not stopped.is_set():
                await self._submit(session, f"crash-{number}-ok")
                number += 1
                await asyncio.sleep(PAUSE_SECONDS)

    async def _submit(self, session: aiohttp.ClientSession, tag: str) -> None:
        task = {"model": FAMILY.model, "prompt": tag, "seconds": "4", "size": "720x1280"}
        headers = {"authorization": f"Bearer {self.secret}", "idempotency-key": tag}
        for _ in range(ATTEMPTS):
            self.attempts += 1
            failure = "no response"
            with suppress(TimeoutError, aiohttp.ClientError):
                async with (
                    asyncio.timeout(SUBMIT_SECONDS),
                    session.post("/v1/videos", json=task, headers=headers) as answer,
                ):
                    text = await answer.text()
                    if answer.status == 200:
                        self.task_ids[tag] = (await answer.json())["id"]
                        return
                    failure = f"{answer.status} {text[:300]}"
            self.failed.append(f"{tag}: {failure}")
            await asyncio.sleep(PAUSE_SECONDS)


@dataclass(frozen=True)
class TaskCounts:
    submitted: int
    """Tasks that a provider accepted."""
    doubled: Sequence[str]
    hanging: Sequence[str]
    lost: Sequence[str]
    """Tasks that a provider or a caller has, and the gateway does not, or failed though the provider made the video."""
    unconfirmed: Sequence[str]
    """Tasks that failed because no response to their submission was received: the provider may have them."""


async def until_ended(store: Store) -> None:
    """Wait until all tasks have ended, at most `END_SECONDS`."""
    with suppress(TimeoutError):
        async with asyncio.timeout(END_SECONDS):
            while any(row.state not in TERMINAL_STATES for row in await _rows(store)):  # noqa: ASYNC110  no event reports it
                await asyncio.sleep(0.2)


async def count_tasks(store: Store, load: VideoLoad, counted: Counted) -> TaskCounts:
    """Compare the tasks in the database with those of the provider and of the caller."""
    rows = await _rows(store)
    by_tag = {str(row.idempotency_key): row for row in rows}
    doubled = [tag for tag, count in counted.submissions.items() if count > 1]
    hanging = [tag for tag, row in by_tag.items() if row.state not in TERMINAL_STATES]
    failed = {
        tag: pb.VideoTaskError.FromString(row.error or b"").code
        for tag, row in by_tag.items()
        if row.state == FAILED_STATE
    }
    lost = [tag for tag in counted.accepted if tag not in by_tag]
    lost += [tag for tag, task_id in load.task_ids.items() if not _has(by_tag, tag, task_id)]
    lost += [tag for tag, code in failed.items() if tag in counted.accepted and code != UNCONFIRMED]
    unconfirmed = [tag for tag, code in failed.items() if code == UNCONFIRMED]
    return TaskCounts(len(counted.accepted), doubled, hanging, sorted(set(lost)), unconfirmed)


def _has(rows: Mapping[str, MediaTask], tag: str, task_id: str) -> bool:
    return tag in rows and task_id.endswith(rows[tag].task_id.rpartition("_")[2])


async def _rows(store: Store) -> Sequence[MediaTask]:
    async with store.read() as session:
        return list(await session.scalars(select(MediaTask)))
