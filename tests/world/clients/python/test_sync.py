"""Synchronous Python client, in a thread of its own beside the server of the test."""

import asyncio
import inspect
from contextlib import closing

import pytest
from umg_client import Client, ErrorReason, SyncClient, UmgError, connect_sync, text, user, v1

from tests.world.clients.python.service import KEY, Served
from umg_grpc.base.errors import UmgError as GatewayError
from umg_grpc.v1 import pb


async def test_calls_block_and_return_messages(served: Served) -> None:
    def answer() -> str:
        with connect_sync(served.address, KEY) as client:
            return text(client.generation.generate(v1.GenerateRequest(model="parrot", messages=[user("Zoë 🙂")])))

    assert await asyncio.to_thread(answer) == "Zoë 🙂"
    assert served.script.request.model == "parrot"


async def test_a_chat_is_an_iterator_of_pieces(served: Served) -> None:
    def pieces() -> list[str]:
        with connect_sync(served.address, KEY) as client:
            return list(client.chat("parrot", "one two"))

    assert await asyncio.to_thread(pieces) == ["one ", "two "]


async def test_a_failure_is_the_same_error(served: Served) -> None:
    served.script.error = GatewayError(pb.ERROR_REASON_MODEL_NOT_FOUND, "no model x", model="x")

    def fail() -> None:
        with connect_sync(served.address, KEY) as client:
            client.models.list_models(v1.ListModelsRequest(), metadata={"x-request-id": "mine"})

    with pytest.raises(UmgError) as caught:
        await asyncio.to_thread(fail)
    assert (caught.value.reason, caught.value.request_id) == (ErrorReason.MODEL_NOT_FOUND, "mine")


async def test_a_deadline_ends_a_stream(served: Served) -> None:
    served.script.endless = True

    def read() -> None:
        request = v1.StreamGenerateRequest(request=v1.GenerateRequest(model="parrot", messages=[user("one")]))
        with connect_sync(served.address, KEY) as client:
            list(client.generation.stream_generate(request, timeout=0.2))

    with pytest.raises(UmgError, match="own deadline"):
        await asyncio.to_thread(read)


async def test_leaving_a_stream_stops_the_generation(served: Served) -> None:
    served.script.endless = True
    left = asyncio.Event()

    def leave(loop: asyncio.AbstractEventLoop) -> None:
        with connect_sync(served.address, KEY) as client:
            with closing(client.chat("parrot", "one two")) as pieces:
                next(pieces)
            asyncio.run_coroutine_threadsafe(asyncio.wait_for(served.script.left.wait(), 60), loop).result()
            loop.call_soon_threadsafe(left.set)

    await asyncio.to_thread(leave, asyncio.get_running_loop())
    assert served.script.left.is_set()


async def test_an_abandoned_stream_does_not_outlive_the_client(served: Served) -> None:
    served.script.endless = True

    def abandon() -> None:
        with connect_sync(served.address, KEY) as client:
            pieces = client.chat("parrot", "one two")
            next(pieces)

    await asyncio.to_thread(abandon)
    await asyncio.wait_for(served.script.left.wait(), 60)


def test_both_clients_have_the_same_surface() -> None:
    public = {name for name in dir(Client) if not name.startswith("_")}
    assert public == {name for name in dir(SyncClient) if not name.startswith("_")}
    for name in public:
        asynchronous, blocking = (inspect.signature(getattr(kind, name)).parameters for kind in (Client, SyncClient))
        assert list(asynchronous) == list(blocking), name
    for name in (
        "Admin",
        "Embedding",
        "File",
        "Generation",
        "Image",
        "Model",
        "Moderation",
        "Rerank",
        "Speech",
        "Transcription",
        "Video",
    ):
        stub, blocking_stub = getattr(v1, f"{name}ServiceStub"), getattr(v1.blocking, f"{name}Service")
        assert {method for method in vars(stub) if not method.startswith("_")} == {
            method for method in vars(blocking_stub) if not method.startswith("_")
        }
        for method, function in vars(blocking_stub).items():
            if not method.startswith("_"):
                assert inspect.getdoc(function) == inspect.getdoc(getattr(stub, method))
