"""Connections of the gRPC face whose clients send nothing."""

import asyncio

import grpc

from umg_grpc.process.grpc_server import _options

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
