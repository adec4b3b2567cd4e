"""Video tasks as operators see them, and repeated delivery of their notifications: over gRPC, HTTP and commands."""

import asyncio
from pathlib import Path

import grpc
import pytest
from google.protobuf.message import Message

from tests.support.fake_video_upstream import SUCCEEDED
from tests.support.gateways import KEY, Running
from tests.support.http_admin import HttpAdmin
from tests.support.notified_callers import notified
from tests.support.processes import run
from tests.support.stored_tasks import media_task
from tests.support.video_calls import AUTHORIZED, create, ended, eventually, get, reason, until
from umg_grpc.service.video_tasks import callback_redelivery, caller_notifier
from umg_grpc.v1 import pb, rpc

GIVEN_UP, DELIVERED = pb.TASK_CALLBACK_STATE_GIVEN_UP, pb.TASK_CALLBACK_STATE_DELIVERED


def admin(gateway: Running) -> HttpAdmin:
    return HttpAdmin(gateway.url, KEY)


async def task_of(gateway: Running, task_id: str) -> pb.TaskRecord:
    return (await admin(gateway).call(pb.GetTaskRequest(task_id=task_id), pb.GetTaskResponse)).task


async def redelivered(gateway: Running, task_id: str, callback_id: str = "") -> pb.TaskRecord:
    request = pb.RedeliverCallbackRequest(task_id=task_id, callback_id=callback_id)
    return (await admin(gateway).call(request, pb.RedeliverCallbackResponse)).task


async def ids_of(gateway: Running, *states: "pb.TaskCallbackState.ValueType") -> list[str]:
    request = pb.ListTasksRequest(callback_states=states)
    return [task.task_id for task in (await admin(gateway).call(request, pb.ListTasksResponse)).tasks]


async def outcome(gateway: Running, request: Message) -> str:
    async with grpc.aio.insecure_channel(gateway.grpc) as channel:
        stub = rpc.TaskServiceStub(channel)
        return await reason(getattr(stub, type(request).__name__.removesuffix("Request"))(request, metadata=AUTHORIZED))


async def test_a_task_has_its_times_channel_cost_and_delivered_notifications(tmp_path: Path) -> None:
    async with notified(tmp_path) as (gateway, _, stub, receiver, url):
        made = await create(stub, callback_url=f"{url}?token=secret")
        await ended(stub, made.task_id)
        await until(lambda: len(receiver.received) == 2)

        async def found() -> pb.TaskRecord:
            return await task_of(gateway, made.task_id)

        task = await eventually(found, lambda task: all(each.state == DELIVERED for each in task.callbacks))
        assert [each.state for each in task.state_times] == [
            pb.VIDEO_TASK_STATE_SUBMITTING,
            pb.VIDEO_TASK_STATE_QUEUED,
            pb.VIDEO_TASK_STATE_RUNNING,
            pb.VIDEO_TASK_STATE_SUCCEEDED,
        ]
        times = [each.time.ToMicroseconds() for each in task.state_times]
        assert times == sorted(times)
        assert (task.state, task.channel, task.upstream_task_id) == (
            pb.VIDEO_TASK_STATE_SUCCEEDED,
            "videos",
            f"up-{made.task_id}",
        )
        assert [attempt.channel for attempt in task.attempts] == ["videos"]
        assert (task.key_name, task.usage.video_count) == ("bootstrap", 1)
        assert [(each.task_state, each.attempts, each.status_code, each.url) for each in task.callbacks] == [
            (pb.VIDEO_TASK_STATE_RUNNING, 1, 200, url),
            (pb.VIDEO_TASK_STATE_SUCCEEDED, 1, 200, url),
        ]
        assert all(
            each.HasField("delivered_time") and not each.HasField("next_attempt_time") for each in task.callbacks
        )
        [listed] = (await admin(gateway).call(pb.ListTasksRequest(), pb.ListTasksResponse)).tasks
        assert listed == task


async def test_a_dead_letter_is_delivered_again_and_audited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(caller_notifier, "RETRY_PAUSES", ())
    async with notified(tmp_path) as (gateway, fake, stub, receiver, url):
        fake.script, receiver.statuses = [SUCCEEDED], [500, 503, 204]
        task_id = (await create(stub, callback_url=url)).task_id
        await eventually(gateway.service.tasks.context.callbacks.backlog, lambda backlog: backlog.given_up == 1)
        assert await ids_of(gateway, GIVEN_UP) == [task_id]

        [failed] = (await redelivered(gateway, task_id)).callbacks
        assert (failed.state, failed.attempts, failed.status_code) == (GIVEN_UP, 2, 503)
        assert failed.last_error == "the receiver answered with status 503"
        [delivered] = (await redelivered(gateway, task_id)).callbacks
        assert (delivered.state, delivered.attempts, delivered.status_code) == (DELIVERED, 3, 204)
        assert (delivered.last_error, delivered.HasField("delivered_time")) == ("", True)

        assert [headers["webhook-id"] for headers, _ in receiver.received] == [delivered.callback_id] * 3
        assert len({body for _, body in receiver.received}) == 1
        assert (await ids_of(gateway, GIVEN_UP), await ids_of(gateway, DELIVERED)) == ([], [task_id])
        assert not (await get(stub, task_id)).HasField("callback_error")
        log = await admin(gateway).call(pb.ListAuditEventsRequest(object_ids=[task_id]), pb.ListAuditEventsResponse)
        assert [(event.method, event.object_kind) for event in log.events] == [
            ("/umg.v1.TaskService/RedeliverCallback", "task")
        ] * 2
        assert delivered.callback_id in log.events[0].before_json
        assert "given_up" in log.events[0].before_json


async def test_a_delivered_notification_is_delivered_again_by_its_id(tmp_path: Path) -> None:
    async with notified(tmp_path) as (gateway, _, stub, receiver, url):
        task_id = (await create(stub, callback_url=url)).task_id
        await ended(stub, task_id)
        await until(lambda: len(receiver.received) == 2)
        await eventually(gateway.service.tasks.context.callbacks.backlog, lambda backlog: not backlog.waiting)
        first, last = (await task_of(gateway, task_id)).callbacks
        again = await redelivered(gateway, task_id, first.callback_id)
        assert [each.attempts for each in again.callbacks] == [2, 1]
        again = await redelivered(gateway, task_id)  # all are delivered: the last one
        assert [each.attempts for each in again.callbacks] == [2, 2]
        ids = [headers["webhook-id"] for headers, _ in receiver.received]
        assert ids == [first.callback_id, last.callback_id, first.callback_id, last.callback_id]


async def test_a_later_notification_does_not_overtake_one_that_fails_again(tmp_path: Path) -> None:
    async with notified(tmp_path) as (gateway, _, stub, receiver, url):
        receiver.statuses = [500]
        task_id = (await create(stub, callback_url=url)).task_id
        await ended(stub, task_id)
        await until(lambda: len(receiver.received) == 1)
        first, last = (await redelivered(gateway, task_id)).callbacks
        assert (first.attempts, last.attempts) == (2, 0)
        assert first.state == last.state == pb.TASK_CALLBACK_STATE_WAITING
        receiver.statuses = [200]
        callbacks = (await redelivered(gateway, task_id, last.callback_id)).callbacks
        assert [each.state for each in callbacks] == [DELIVERED, DELIVERED]
        assert receiver.states == ["in_progress", "in_progress", "in_progress", "succeeded"]


async def test_a_notification_that_cannot_be_delivered_is_named(tmp_path: Path) -> None:
    async with notified(tmp_path) as (gateway, _, stub, receiver, url):
        silent = (await create(stub)).task_id
        task_id = (await create(stub, callback_url=url)).task_id
        await until(lambda: len(receiver.received) == 2)
        for request, expected in (
            (pb.RedeliverCallbackRequest(task_id=silent), "WRONG_STATE"),
            (pb.RedeliverCallbackRequest(task_id=task_id, callback_id="msg_absent"), "OBJECT_NOT_FOUND"),
            (pb.RedeliverCallbackRequest(task_id="task_absent"), "OBJECT_NOT_FOUND"),
            (pb.GetTaskRequest(), "MISSING_FIELD"),
            (pb.ListTasksRequest(project_ids=["absent"]), "OBJECT_NOT_FOUND"),
            (pb.ListTasksRequest(page_token="none"), "INVALID_FIELD"),
            (pb.ListTasksRequest(states=[pb.VIDEO_TASK_STATE_UNSPECIFIED]), "INVALID_FIELD"),
        ):
            assert await outcome(gateway, request) == expected, request


async def test_pages_have_each_task_once_in_both_orders(tmp_path: Path) -> None:
    async with notified(tmp_path) as (gateway, *_):
        created = [1, 2, 2, 2, 3]
        async with gateway.service.store.write() as session:
            session.add_all(media_task(f"task_{place}", "key", micros) for place, micros in enumerate(created))
        for oldest_first in (False, True):
            found, token = list[str](), ""
            while True:
                request = pb.ListTasksRequest(page_size=2, page_token=token, oldest_first=oldest_first)
                response = await admin(gateway).call(request, pb.ListTasksResponse)
                found += [task.task_id for task in response.tasks]
                if not (token := response.next_page_token):
                    break
            names = [f"task_{place}" for place in range(5)]
            assert found == (names if oldest_first else names[::-1])


async def test_commands_find_and_show_tasks_and_deliver_their_notifications(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(caller_notifier, "RETRY_PAUSES", ())
    async with notified(tmp_path / "data") as (gateway, fake, stub, receiver, url):
        fake.script, receiver.statuses = [SUCCEEDED], [500]
        task_id = (await create(stub, callback_url=url)).task_id
        await eventually(gateway.service.tasks.context.callbacks.backlog, lambda backlog: backlog.given_up == 1)
        flags, environment = ("--gateway", gateway.url), {"UMG_ADMIN_KEY": KEY}
        for arguments, shown in (
            (("find", "--undelivered", "--state", "succeeded"), "1 given up"),
            (("inspect", task_id), "status 500"),
            (("callbacks",), "given up"),
        ):
            code, out, err = await run("tasks", *arguments, *flags, environment=environment)
            assert (code, err, task_id in out, shown in out) == (0, "", True, True), out
        code, out, err = await run("tasks", "redeliver", task_id, *flags, environment=environment)
        assert (code, err, "given up" in out) == (1, "", True), out
        receiver.statuses = [200]
        code, out, err = await run("tasks", "redeliver", task_id, "--data", str(tmp_path / "data"))
        assert (code, err, "delivered" in out) == (0, "", True), out
        code, out, err = await run("tasks", "find", "--stuck", "soon", *flags, environment=environment)
        assert (code, "soon" in err) == (2, True)
        assert len(receiver.received) == 3


async def test_a_delivery_that_no_process_makes_ends_the_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(callback_redelivery, "WAIT_SECONDS", 0.01)
    async with notified(tmp_path) as (gateway, _, stub, receiver, url):
        task_id = (await create(stub, callback_url=url)).task_id
        await ended(stub, task_id)
        await until(lambda: len(receiver.received) == 2)
        await eventually(gateway.service.tasks.context.callbacks.backlog, lambda backlog: not backlog.waiting)
        await gateway.service.tasks._notifier.aclose()
        async with asyncio.timeout(60):
            last = (await redelivered(gateway, task_id)).callbacks[-1]
        assert (last.state, last.attempts) == (pb.TASK_CALLBACK_STATE_WAITING, 1)
