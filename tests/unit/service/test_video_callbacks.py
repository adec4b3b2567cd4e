"""Notifications: of callers after each change of state, and of the gateway by providers."""

import hashlib
import hmac
from base64 import b64decode, b64encode
from collections.abc import Mapping
from pathlib import Path

import msgspec
import pytest

from tests.support import fake_video_upstream
from tests.support.fake_video_upstream import QUEUED, RUNNING, SUCCEEDED
from tests.support.notified_callers import notified
from tests.support.video_calls import create, ended, eventually, get, reason, until
from umg_grpc.access.callback_signatures import CallbackSignatures
from umg_grpc.service.video_tasks import caller_notifier
from umg_grpc.v1 import pb


def is_signed(secret: str, headers: Mapping[str, str], body: bytes) -> bool:
    """Verify a notification as Standard Webhooks describe it."""
    given = {name.lower(): value for name, value in headers.items()}
    signed = f"{given['webhook-id']}.{given['webhook-timestamp']}.".encode() + body
    key = b64decode(secret.removeprefix("whsec_"))
    expected = "v1," + b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()
    return expected in given["webhook-signature"].split()


async def test_each_change_of_state_is_notified_and_signed(tmp_path: Path) -> None:
    async with notified(tmp_path) as (gateway, _, stub, receiver, url):
        task = await create(stub, callback_url=url)
        done = await ended(stub, task.task_id)
        await until(lambda: len(receiver.received) == 2)
        assert receiver.states == ["in_progress", "succeeded"]
        row = await gateway.service.tasks.context.rows.get(task.task_id)
        assert row is not None
        secret = gateway.service.tasks.context.signatures.signing_secret(row.owner)
        assert all(is_signed(secret, headers, body) for headers, body in receiver.received)
        last = msgspec.json.decode(receiver.received[-1][1])
        assert (last["task_id"], last["url"]) == (done.task_id, fake_video_upstream.URL)


async def test_a_notification_is_repeated_until_it_is_accepted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(caller_notifier, "RETRY_PAUSES", (0.05,) * 9)
    async with notified(tmp_path) as (gateway, fake, stub, receiver, url):
        fake.script, receiver.statuses = [SUCCEEDED], [500, 503, 200]
        await create(stub, callback_url=url)
        await until(lambda: len(receiver.received) == 3)
        ids = {headers["webhook-id"] for headers, _ in receiver.received}
        assert len(ids) == 1
        await eventually(gateway.service.tasks.context.callbacks.backlog, lambda backlog: not backlog.waiting)


async def test_a_notification_that_is_never_accepted_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(caller_notifier, "RETRY_PAUSES", (0.01, 0.01))
    async with notified(tmp_path) as (gateway, fake, stub, receiver, url):
        fake.script, receiver.statuses = [SUCCEEDED], [500]
        task = await create(stub, callback_url=url)
        await eventually(gateway.service.tasks.context.callbacks.backlog, lambda backlog: backlog.given_up == 1)
        assert len(receiver.received) == 3
        assert (await get(stub, task.task_id)).callback_error == "the receiver answered with status 500"


async def test_a_signed_notification_of_a_provider_causes_a_poll(tmp_path: Path) -> None:
    async with notified(tmp_path) as (gateway, fake, stub, _, _):
        fake.script, fake.first_poll_seconds, fake.poll_seconds = [RUNNING, SUCCEEDED], 0.01, 1000.0
        task = await create(stub)
        await until(lambda: fake.polled[f"up-{task.task_id}"] == 1)
        signature = gateway.service.tasks.context.signatures.path_of(task.task_id).rpartition("/")[2]
        body = msgspec.json.encode({"id": f"up-{task.task_id}", "status": "succeeded"})
        for _ in range(2):
            request = pb.ReceiveVideoCallbackRequest(task_id=task.task_id, signature=signature, body=body)
            await stub.ReceiveVideoCallback(request)
        assert (await ended(stub, task.task_id)).state == pb.VIDEO_TASK_STATE_SUCCEEDED
        await stub.ReceiveVideoCallback(request)


async def test_a_notification_that_is_not_valid_is_refused(tmp_path: Path) -> None:
    async with notified(tmp_path) as (gateway, fake, stub, _, _):
        fake.script = [QUEUED]
        task = await create(stub)
        signatures = gateway.service.tasks.context.signatures
        signature = signatures.path_of(task.task_id).rpartition("/")[2]
        forged = CallbackSignatures("another secret").path_of(task.task_id).rpartition("/")[2]

        async def outcome(task_id: str, signature: str, body: bytes) -> str:
            return await reason(
                stub.ReceiveVideoCallback(
                    pb.ReceiveVideoCallbackRequest(task_id=task_id, signature=signature, body=body)
                )
            )

        assert await outcome(task.task_id, forged, b"{}") == "OBJECT_NOT_FOUND"
        absent = signatures.path_of("task_absent").rpartition("/")[2]
        assert await outcome("task_absent", absent, b"{}") == "OBJECT_NOT_FOUND"
        assert await outcome(task.task_id, signature, b"[") == "INVALID_FIELD"
        assert await outcome(task.task_id, signature, b'{"id": "another"}') == "INVALID_FIELD"
        assert await outcome(task.task_id, signature, b" " * (2**20 + 1)) == "INVALID_FIELD"
