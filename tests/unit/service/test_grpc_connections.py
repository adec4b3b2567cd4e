"""Connections of the gRPC face whose clients send nothing, and the requests for which the server waits."""

import asyncio
from pathlib import Path

import grpc

from umg_grpc.config import parse
from umg_grpc.process.grpc_server import GrpcFace, _options
from umg_grpc.process.service_factory import open_service

LIMIT = 3


async def test_connections_whose_handshake_never_ends_are_bounded() -> None:
    server = grpc.aio.server(options=_options(1024, share_port=False, connections=LIMIT))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    readers, writers = list[asyncio.StreamReader](), list[asyncio.StreamWriter]()
    try:
        for _ in range(LIMIT):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writers.append(writer)
            readers.append(reader)
            assert await reader.read(9)  # the server's settings, to which this client never answers
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writers.append(writer)
        assert await reader.read(9) == b""  # closed at once
    finally:
        for writer in writers:
            writer.close()
        await server.stop(0)


async def test_the_server_waits_for_one_request_and_not_for_one_of_each_method(tmp_path: Path) -> None:
    async with open_service(
        parse("channels: [{name: sandbox, protocols: [sandbox], models: [m]}]", "test.yaml", {}), tmp_path, None
    ) as service:
        face = GrpcFace.bind(service, "127.0.0.1:0", message_limit=1 << 20)
        await face.start()
        try:
            names = [task.get_coro().__qualname__ for task in asyncio.all_tasks()]
            assert [name for name in names if "AioServer._request" in name] == ["AioServer._request_call"]
        finally:
            await face.stop(0)
