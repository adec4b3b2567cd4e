"""Benchmark of the polls of video tasks:
`python -m bench.video_polls [--tasks N] [--seconds N] [--interval N] [--batch N]` polls open tasks on one process with
SQLite, and prints how late the polls are, how many start at once, and the memory of the process.
"""

import argparse
import asyncio
import resource
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import uvloop
from sqlalchemy import update

from umg_grpc.access.callback_signatures import CallbackSignatures
from umg_grpc.access.signed_file_links import FileLinks
from umg_grpc.base.errors import UmgError
from umg_grpc.config import Config
from umg_grpc.routing import Router
from umg_grpc.service.pipeline.current_channels import Channels
from umg_grpc.service.service_metrics import Metrics
from umg_grpc.service.video_tasks.poll_outcomes import Outcomes
from umg_grpc.service.video_tasks.shared_task_objects import TaskContext
from umg_grpc.service.video_tasks.task_metrics import TaskMetrics
from umg_grpc.service.video_tasks.task_poll_scheduler import Poller
from umg_grpc.store import Store, open_store
from umg_grpc.store.database_constants import SQLITE_KIND
from umg_grpc.store.table_definitions import MediaTask
from umg_grpc.store.video_task_polls import Poll
from umg_grpc.store.video_task_table import RUNNING_STATE
from umg_grpc.upstream.upstream_interfaces import ContentPart
from umg_grpc.v1 import pb
from umg_grpc.wire.dropped_fields_report import Report
from umg_grpc.wire.video.provider_task_types import ProviderResult, ProviderStatus, ProviderTask, Submission

NO_PARTS: tuple[ContentPart, ...] = ()
CHANNEL = "provider"
ANSWER_SECONDS = 0.02
CONCURRENCY = 64
INSERTED = 1000
STILL_RUNNING = ProviderStatus(state=pb.VIDEO_TASK_STATE_RUNNING, progress_percent=50)


class Provider:
    """Upstream whose tasks never end. It records when each poll arrives."""

    def __init__(self, interval: float, batch: int) -> None:
        self.max_batch = batch
        self.first_poll_seconds = self.poll_seconds = interval
        self.deadline_seconds = 86_400.0
        self.due: dict[str, int] = {}
        """Provider's id -> time for which its next poll is scheduled, in microseconds."""
        self.lateness: list[float] = []
        self.calls: list[float] = []
        """Times of the calls, in seconds."""

    async def poll(self, tasks: Sequence[ProviderTask], seconds: float) -> Mapping[str, ProviderStatus | UmgError]:
        now = time.time_ns() // 1000
        self.calls.append(now / 1e6)
        self.lateness += [(now - due) / 1e6 for task in tasks if (due := self.due.pop(task.id, None)) is not None]
        await asyncio.sleep(ANSWER_SECONDS)
        return {task.id: STILL_RUNNING for task in tasks}

    async def submit(self, submission: Submission, seconds: float) -> tuple[ProviderTask, Report]:
        raise NotImplementedError  # never called: the tasks are submitted already

    async def find(self, submission: Submission, seconds: float) -> ProviderTask | None:
        return None

    async def cancel(self, task: ProviderTask, seconds: float) -> bool:
        return False

    @asynccontextmanager
    async def content(
        self, task: ProviderTask, result: ProviderResult, headers: Mapping[str, str]
    ) -> AsyncGenerator[ContentPart, None]:
        for part in NO_PARTS:  # makes this a generator
            yield part
        raise NotImplementedError  # never called: no task ends


def row(number: int, now: int, interval: float, count: int) -> MediaTask:
    """Return the row of an open task. The first polls of all tasks are spread over an interval."""
    return MediaTask(
        task_id=f"task_{number:032}", owner="key", entry=1, kind=1, model="m", public_model="m", body_hash="",
        request_id="r", face="grpc", prices=b"", micro_credits=0, state=RUNNING_STATE, channel=CHANNEL,
        upstream_task_id=f"up-{number}", upstream_model="m", upstream_key_id="k", upstream_facts="{}", lease_owner="",
        next_poll_micros=now + int(interval * 1e6 * number / count), poll_failures=0,
        deadline_micros=now + 86_400 * 10**6, create_micros=now, update_micros=now,
        request=pb.CreateVideoTaskRequest(model="m", parameters=pb.VideoParameters(prompt="a cat")).SerializeToString(),
    )  # fmt: skip


async def insert(store: Store, provider: Provider, count: int, interval: float) -> None:
    """Insert the open tasks, of which the first is due now."""
    now = time.time_ns() // 1000
    for start in range(0, count, INSERTED):
        rows = [row(number, now, interval, count) for number in range(start, min(start + INSERTED, count))]
        for each in rows:
            provider.due[each.upstream_task_id] = each.next_poll_micros or 0
        async with store.write() as session:
            session.add_all(rows)
    shift = time.time_ns() // 1000 - now
    provider.due = {task_id: due + shift for task_id, due in provider.due.items()}
    async with store.write() as session:
        await session.execute(update(MediaTask).values(next_poll_micros=MediaTask.next_poll_micros + shift))


async def measure(tasks: int, seconds: float, interval: float, batch: int, rate: float) -> Provider:
    """Poll open tasks for a number of seconds. Return the fake provider, which has recorded the polls."""
    provider = Provider(interval, batch)
    async with AsyncExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        store = await open_store(SQLITE_KIND, directory)
        stack.push_async_callback(store.aclose)
        metrics, links = TaskMetrics(Metrics()), FileLinks("a secret of the bench", 86_400)
        context = TaskContext(store, "bench", links, CallbackSignatures("s"), metrics, {}, has_usage=False)
        reschedule = context.polls.reschedule

        async def recorded(polls: Sequence[Poll], now_micros: int) -> None:
            provider.due.update((poll.claim.upstream_task_id, now_micros + (poll.pause_micros or 0)) for poll in polls)
            await reschedule(polls, now_micros)

        context.polls.reschedule = recorded  # type: ignore[method-assign]
        channels = Channels(Router(Config(channels=())), videos={CHANNEL: provider})
        outcomes = Outcomes(context, None, 86_400)
        await insert(store, provider, tasks, interval)
        poller = Poller(channels, context, outcomes, concurrency=CONCURRENCY, per_second=rate)
        poller.start()
        await asyncio.sleep(seconds)
        await poller.aclose()
    return provider


def quantile(values: Sequence[float], share: float) -> float:
    """Return a quantile of sorted values."""
    return values[min(len(values) - 1, int(share * len(values)))] if values else 0.0


def most_in(times: Sequence[float], window: float) -> int:
    """Return the largest number of times within a window; the times are sorted."""
    most = first = 0
    for last, moment in enumerate(times):
        while moment - times[first] > window:
            first += 1
        most = max(most, last - first + 1)
    return most


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.video_polls", description="Polls of open video tasks.")
    parser.add_argument("--tasks", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--interval", type=float, default=10)
    parser.add_argument("--batch", type=int, default=1, help="tasks of one query")
    parser.add_argument("--rate", type=float, default=1500, help="`tasks.polls_per_second`")
    given = parser.parse_args()
    provider = uvloop.run(measure(given.tasks, given.seconds, given.interval, given.batch, given.rate))
    late, calls = sorted(provider.lateness), sorted(provider.calls)
    processor = time.process_time()
    sys.stdout.write(
        f"{given.tasks} tasks, every {given.interval:g} s, {given.batch} a query, {given.seconds:g} s:"
        f" {len(late)} polls in {len(calls)} queries\n"
        f"lateness: median {quantile(late, 0.5):.2f} s, p99 {quantile(late, 0.99):.2f} s, most {max(late):.2f} s\n"
        f"queries: most in a second {most_in(calls, 1)}, in 0.1 s {most_in(calls, 0.1)}, of {given.rate:g} a second\n"
        f"memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB,"
        f" processor {100 * processor / given.seconds:.0f} % of one core\n"
    )


if __name__ == "__main__":
    main()
