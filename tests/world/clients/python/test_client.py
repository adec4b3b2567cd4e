"""Python client against a real gRPC server with a scripted service."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass, field

import pytest
from grpclib.const import Status
from umg_client import Client, ErrorReason, UmgError, connect, user, v1

from tests.world.clients.python.service import KEY, Served
from umg_grpc.base.errors import UmgError as GatewayError
from umg_grpc.v1 import pb


async def whole(stream: AsyncGenerator[str, None]) -> str:
    return "".join([piece async for piece in stream])


async def test_an_answer_is_a_typed_message(client: Client) -> None:
    response = await client.generation.generate(v1.GenerateRequest(model="parrot", messages=[user("Zoë 🙂")]))
    [candidate] = response.candidates
    assert candidate.message is not None
    assert candidate.message.parts == [v1.Part(text=v1.TextPart(text="Zoë 🙂"))]
    assert candidate.finish_reason is v1.FinishReason.STOP
    assert response.usage is not None
    assert response.usage.output_tokens == 2**31 - 1
    assert response.create_time is not None
    assert response.create_time.timestamp() == 1_700_000_000


async def test_unset_and_zero_arrive_as_two_things(served: Served, client: Client) -> None:
    await client.generation.generate(v1.GenerateRequest(model="parrot", messages=[user("a")], temperature=0.0))
    assert served.script.request.HasField("temperature")
    assert not served.script.request.HasField("top_p")


async def test_a_chat_is_streamed_piece_by_piece(served: Served, client: Client) -> None:
    pieces = [piece async for piece in client.chat("parrot", "one two three", instructions="Repeat.")]
    assert pieces == ["one ", "two ", "three "]
    assert served.script.request == pb.GenerateRequest(
        model="parrot",
        messages=[pb.Message(role=pb.ROLE_USER, parts=[pb.Part(text=pb.TextPart(text="one two three"))])],
        instructions=[pb.Part(text=pb.TextPart(text="Repeat."))],
    )


async def test_every_call_carries_the_key_and_a_request_id_of_its_own(served: Served, client: Client) -> None:
    await client.models.list_models(v1.ListModelsRequest())
    first = served.script.metadata
    await client.models.list_models(v1.ListModelsRequest())
    second = served.script.metadata
    assert first["authorization"] == second["authorization"] == f"Bearer {KEY}"
    assert first["x-request-id"] != second["x-request-id"]


async def test_metadata_of_a_call_goes_before_the_clients_own(served: Served, client: Client) -> None:
    own = {"x-request-id": "mine", "x-umg-strict": "true"}
    await client.models.list_models(v1.ListModelsRequest(), metadata=own)
    sent = served.script.metadata
    assert (sent["x-request-id"], sent["x-umg-strict"]) == ("mine", "true")
    assert sent["authorization"] == f"Bearer {KEY}"


@dataclass(frozen=True)
class Failure:
    id: str
    error: GatewayError
    reason: ErrorReason
    metadata: Mapping[str, str] = field(default_factory=dict)


FAILURES = [
    Failure(
        id="an unknown model",
        error=GatewayError(pb.ERROR_REASON_MODEL_NOT_FOUND, "no model x; see ListModels", model="x"),
        reason=ErrorReason.MODEL_NOT_FOUND,
        metadata={"model": "x"},
    ),
    Failure(
        id="a limit, which has more details than the reason",
        error=GatewayError(pb.ERROR_REASON_RATE_LIMITED, "slow down — please", retry_after_seconds="7", limit="60"),
        reason=ErrorReason.RATE_LIMITED,
        metadata={"retry_after_seconds": "7", "limit": "60"},
    ),
]


@pytest.mark.parametrize("case", FAILURES, ids=lambda case: case.id)
@pytest.mark.parametrize("streamed", [False, True], ids=["at once", "after the first pieces"])
async def test_a_failure_has_its_reason_message_and_metadata(
    served: Served, client: Client, case: Failure, streamed: bool
) -> None:
    served.script.error = case.error
    call = whole(client.chat("x", "one two")) if streamed else client.models.list_models(v1.ListModelsRequest())
    with pytest.raises(UmgError) as caught:
        await call
    error = caught.value
    assert (error.reason, error.message, error.metadata) == (case.reason, case.error.message, case.metadata)
    assert error.request_id == served.script.metadata["x-request-id"]
    assert error.request_id in str(error)


def test_the_catalogue_is_the_gateways_own() -> None:
    ours = {name.removeprefix("ERROR_REASON_"): number for name, number in pb.ErrorReason.items()}
    assert {member.name: member.value for member in ErrorReason} == ours


async def test_an_operation_that_the_server_lacks_is_not_implemented(client: Client) -> None:
    with pytest.raises(UmgError) as caught:
        await client.rerank.rerank(v1.RerankRequest(model="m", query="q"))
    assert caught.value.reason is ErrorReason.NOT_IMPLEMENTED


async def test_a_gateway_that_is_not_there_is_unavailable(served: Served) -> None:
    await served.server.stop(None)
    async with connect(served.address, KEY) as client:
        with pytest.raises(UmgError) as caught:
            await client.models.list_models(v1.ListModelsRequest())
    assert caught.value.reason is ErrorReason.UNAVAILABLE


async def test_a_gateway_that_disconnects_breaks_the_stream_with_an_error(served: Served, client: Client) -> None:
    served.script.endless = True
    stream = client.chat("parrot", "one")
    assert await anext(stream) == "one "
    await served.server.stop(None)
    with pytest.raises(UmgError) as caught:
        await anext(stream)
    assert caught.value.reason in {ErrorReason.UNAVAILABLE, ErrorReason.CANCELLED}


async def test_a_call_that_outlasts_its_timeout_fails_and_stops(served: Served, client: Client) -> None:
    served.script.endless = True
    request = v1.StreamGenerateRequest(request=v1.GenerateRequest(model="parrot", messages=[user("one")]))
    async with asyncio.timeout(60):
        while not served.script.calls:  # on a busy machine the time may be over before the call arrives
            with pytest.raises(UmgError) as caught:
                [message async for message in client.generation.stream_generate(request, timeout=0.2)]
    assert (caught.value.reason, caught.value.code) == (ErrorReason.DEADLINE_EXCEEDED, Status.DEADLINE_EXCEEDED)
    assert not caught.value.retryable
    await asyncio.wait_for(served.script.left.wait(), 60)


async def close(stream: AsyncGenerator[str, None]) -> None:
    async with aclosing(stream):
        await anext(stream)


async def leave(stream: AsyncGenerator[str, None]) -> None:
    async for _ in stream:
        break


async def cancel(stream: AsyncGenerator[str, None]) -> None:
    first = asyncio.Event()

    async def read() -> None:
        async for _ in stream:
            first.set()

    task = asyncio.create_task(read())
    await first.wait()
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


@pytest.mark.parametrize("stop", [close, leave, cancel], ids=lambda stop: stop.__name__)
async def test_a_reader_that_stops_stops_the_generation_within_100_ms(
    served: Served, client: Client, stop: Callable[[AsyncGenerator[str, None]], Awaitable[None]]
) -> None:
    served.script.endless = True
    await stop(client.chat("parrot", "one two"))
    await asyncio.wait_for(served.script.left.wait(), 60)


async def test_an_abandoned_stream_does_not_outlive_the_connection(served: Served) -> None:
    served.script.endless = True
    async with connect(served.address, KEY) as client:
        stream = client.chat("parrot", "one")
        await anext(stream)
    await asyncio.wait_for(served.script.left.wait(), 60)


@pytest.mark.parametrize("address", ["localhost", "", ":50051", "localhost:port"])
async def test_an_address_without_host_or_port_is_refused(address: str) -> None:
    with pytest.raises(ValueError, match=r"HOST:PORT|Port could not"):
        async with connect(address, KEY):
            pass


def test_the_schemas_comments_are_the_docstrings() -> None:
    assert "Cancelling the call" in (v1.GenerationServiceStub.stream_generate.__doc__ or "")
