"""Files of videos at their provider's own host: read and copied by the way of the channel, which the rules for URLs of
callers do not limit.
"""

from dataclasses import replace
from pathlib import Path

import grpc
import pytest
from aiohttp import ClientSession

from tests.pairs.providers.test_videos import CASES, Case
from tests.support.gateways import Running, running
from tests.support.providers.server import KEY, serve_provider
from tests.support.providers.video_server import FILE
from tests.support.video_calls import ended, eventually, stub_of, until
from umg_grpc.service.video_tasks import result_mirroring
from umg_grpc.service.video_tasks.result_mirroring import SHORT_SECONDS
from umg_grpc.store.table_definitions import MediaTask
from umg_grpc.store.video_task_results import TaskResult, results_of
from umg_grpc.upstream.http.video_generation import HttpVideo
from umg_grpc.v1 import pb

CHANNEL = """\
channels:
- {name: maker, protocols: [%s], base_url: "%s", api_key: "%s", models: ["%s"]%s}
"""
AUTHS = {"vidF": ("AKEXAMPLE0001:c2VjcmV0LWV4YW1wbGU=", ", auth: {kind: access_key, scheme: volcengine}")}
"""Protocol -> key and further members of a channel whose calls are signed."""
SERVED = [case for case in CASES if case.signer is None or case.id == "vidF"]


async def made(gateway: Running, case: Case) -> str:
    """Submit a task, and wait for its success. Return its id."""
    videos = gateway.service._channels.videos["maker"]
    assert isinstance(videos, HttpVideo)
    # the address of a variant is its vendor's
    videos._protocol = replace(case.codec or videos._protocol, first_poll_seconds=0.05, poll_seconds=0.05)
    async with grpc.aio.insecure_channel(gateway.grpc) as channel:
        stub = stub_of(channel)
        request = case.submission().request
        request.model = case.model
        answer = await stub.CreateVideoTask(request, metadata=tuple(gateway.headers.items()))
        task = await ended(stub, answer.task.task_id)
    assert task.state == pb.VIDEO_TASK_STATE_SUCCEEDED, task
    return task.task_id


async def downloaded(gateway: Running, task_id: str) -> tuple[int, bytes]:
    async with (
        ClientSession(headers=gateway.headers) as session,
        session.get(f"{gateway.url}/v1/videos/{task_id}/content") as response,
    ):
        return response.status, await response.read()


async def copied(gateway: Running, task_id: str) -> None:
    """Wait until all files of a task whose addresses expire within a day are in the gateway's own store."""

    async def read() -> MediaTask:
        row = await gateway.service.tasks.context.rows.get(task_id)
        assert row is not None
        return row

    def is_copied(row: MediaTask, result: TaskResult) -> bool:
        limit = (row.complete_micros or 0) + int(SHORT_SECONDS * 1e6)
        return bool(result.blob_id) or not result.url or (result.url_expire_micros or limit + 1) > limit

    await eventually(read, lambda row: all(is_copied(row, result) for result in results_of(row)))


@pytest.mark.parametrize("case", SERVED, ids=lambda case: case.id)
async def test_a_file_at_the_private_host_of_its_provider_is_read_and_copied(case: Case, tmp_path: Path) -> None:
    protocol = case.id.partition(" ")[0].rstrip(",")
    key, more = AUTHS.get(protocol, (KEY, ""))
    provider = case.provider(**case.settings)
    async with serve_provider(provider):
        config = CHANNEL % (protocol, provider.url + case.base, key, case.model, more)
        async with running(config, tmp_path) as gateway:
            task_id = await made(gateway, case)
            assert await downloaded(gateway, task_id) == (200, FILE)
            await copied(gateway, task_id)
    assert not provider.refusals


async def test_a_file_that_is_too_large_to_be_copied_is_not_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(result_mirroring, "MAX_BYTES", len(FILE) - 1)
    case = next(case for case in SERVED if case.id == "vidD")
    provider = case.provider(**case.settings)
    async with serve_provider(provider):
        config = CHANNEL % ("vidD", provider.url + case.base, KEY, case.model, "")
        async with running(config, tmp_path) as gateway:
            outcomes = list[str]()
            mirror = gateway.service.tasks._mirror
            mirror._count = outcomes.append
            task_id = await made(gateway, case)
            await until(lambda: outcomes == ["failed"])
            assert not mirror._waiting
            assert await downloaded(gateway, task_id) == (200, FILE)


async def test_a_page_in_place_of_a_file_is_not_stored(tmp_path: Path) -> None:
    case = next(case for case in SERVED if case.id == "vidD")
    provider = case.provider(**case.settings)
    provider.file_type = "text/html"
    async with serve_provider(provider):
        config = CHANNEL % ("vidD", provider.url + case.base, KEY, case.model, "")
        async with running(config, tmp_path) as gateway:
            outcomes = list[str]()
            gateway.service.tasks._mirror._count = outcomes.append
            task_id = await made(gateway, case)
            await until(lambda: bool(outcomes))
            assert outcomes[0] == "failed"
            status, body = await downloaded(gateway, task_id)
            assert (status, b"text/html" in body) == (502, True)
