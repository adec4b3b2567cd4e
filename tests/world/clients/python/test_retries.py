"""Repetition of failed calls by the Python client, and the properties of errors that decide it."""

import asyncio
from dataclasses import dataclass

import pytest
from grpclib.const import Status
from umg_client import ErrorReason, UmgError, connect, user, v1

from tests.world.clients.python.service import KEY, Served
from umg_grpc.base.errors import UmgError as GatewayError
from umg_grpc.v1 import pb


@dataclass(frozen=True)
class Case:
    id: str
    error: GatewayError
    generates: int  # calls of a generation with two retries
    reads: int  # calls of a read with two retries


def failure(reason: "pb.ErrorReason.ValueType", seconds: str = "0", **metadata: str) -> GatewayError:
    """Return an error that states after how many seconds the call may be repeated."""
    return GatewayError(reason, "not now", retry_after_seconds=seconds, **metadata)


CASES = [
    Case("refused before it was done", failure(pb.ERROR_REASON_UNAVAILABLE), 3, 3),
    Case("refused by a limit, for a moment", failure(pb.ERROR_REASON_RATE_LIMITED), 3, 3),
    Case("refused by a limit, for long", failure(pb.ERROR_REASON_RATE_LIMITED, "31"), 1, 1),
    Case("never sent to the provider", failure(pb.ERROR_REASON_UPSTREAM_UNREACHABLE), 3, 3),
    Case("refused by the provider's limit", failure(pb.ERROR_REASON_UPSTREAM_RATE_LIMITED), 3, 3),
    Case("failed at the provider", failure(pb.ERROR_REASON_UPSTREAM_FAILED), 1, 3),
    Case("too slow at the provider", failure(pb.ERROR_REASON_UPSTREAM_TIMEOUT), 1, 3),
    Case("wrong", failure(pb.ERROR_REASON_INVALID_FIELD, field="temperature"), 1, 1),
    Case("without a budget", failure(pb.ERROR_REASON_QUOTA_EXHAUSTED), 1, 1),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
async def test_a_call_is_repeated_where_that_is_safe(served: Served, case: Case) -> None:
    served.script.error = case.error
    request = v1.GenerateRequest(model="parrot", messages=[user("one")])
    async with connect(served.address, KEY, retries=2) as client:
        with pytest.raises(UmgError) as caught:
            await client.generation.generate(request)
        assert served.script.calls == case.generates
        with pytest.raises(UmgError):
            await client.models.list_models(v1.ListModelsRequest())
        assert served.script.calls == case.generates + case.reads
    assert caught.value.field == case.error.metadata.get("field", "")


async def test_a_repeated_call_keeps_its_request_id_and_returns_its_answer(served: Served) -> None:
    served.script.errors = [failure(pb.ERROR_REASON_UNAVAILABLE)] * 2
    request = v1.StreamGenerateRequest(request=v1.GenerateRequest(model="parrot", messages=[user("one")]))
    async with connect(served.address, KEY, retries=2) as client:
        messages = [message async for message in client.generation.stream_generate(request)]
    assert [event.text_delta for message in messages for event in message.events if event.text_delta] == ["one "]
    assert served.script.calls == 3


async def test_a_stream_is_not_repeated_after_its_first_message(served: Served) -> None:
    served.script.error = failure(pb.ERROR_REASON_UNAVAILABLE)
    request = v1.StreamGenerateRequest(request=v1.GenerateRequest(model="parrot", messages=[user("one")]))
    async with connect(served.address, KEY, retries=2) as client:
        with pytest.raises(UmgError):
            [message async for message in client.generation.stream_generate(request)]
    assert served.script.calls == 1


async def test_no_wait_begins_that_outlasts_the_deadline(served: Served) -> None:
    served.script.error = failure(pb.ERROR_REASON_RATE_LIMITED, "600")
    async with connect(served.address, KEY, retries=2) as client, asyncio.timeout(60):
        with pytest.raises(UmgError) as caught:
            await client.models.list_models(v1.ListModelsRequest(), timeout=300)
    assert (caught.value.reason, caught.value.retry_after) == (ErrorReason.RATE_LIMITED, 600)
    assert served.script.calls == 1


async def test_a_deadline_of_the_client_limits_each_call(served: Served) -> None:
    served.script.endless = True
    request = v1.StreamGenerateRequest(request=v1.GenerateRequest(model="parrot", messages=[user("one")]))
    async with connect(served.address, KEY, timeout=0.2) as client:
        with pytest.raises(UmgError, match="own deadline") as caught:
            [message async for message in client.generation.stream_generate(request)]
    assert (caught.value.code, caught.value.retryable) == (Status.DEADLINE_EXCEEDED, False)
