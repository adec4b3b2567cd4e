"""What we use of aiohttp that is not its API: another version may call it otherwise, or no longer call us."""

import asyncio
import inspect
import tomllib
from importlib import metadata
from pathlib import Path

import aiohttp
import pytest
from aiohttp import client_proto, helpers, http, http_exceptions, http_writer, tracing, web
from aiohttp._http_parser import HttpRequestParser as Parser
from aiohttp.http_writer import StreamWriter

WHERE = "look at {} before `aiohttp` in pyproject.toml is raised"
PARAMETERS = [
    (web.Server.__call__, ["self"], "http_facade/connections.py"),
    (web.Server.pre_shutdown, ["self"], "http_facade/connections.py"),
    (web.Server.connection_lost, ["self", "handler", "exc"], "http_facade/connections.py"),
    (web.RequestHandler.handle_error, ["self", "request", "status", "exc", "message"], "http_facade/connections.py"),
    (client_proto.ResponseHandler.pause_reading, ["self"], "umg_grpc/upstream/connector.py"),
    (client_proto.ResponseHandler.resume_reading, ["self", "resume_parser"], "umg_grpc/upstream/connector.py"),
    (web.BaseRunner._make_server, ["self"], "http_facade/app.py"),
    (web.BaseSite.stop, ["self"], "http_facade/listening.py"),
    (aiohttp.TCPConnector._create_connection, ["self", "req", "traces", "timeout"], "umg_grpc/upstream/transport.py"),
]
"""Methods that ours stand in for."""
NAMES = [
    (Parser, ("message_consumed",)),
    (StreamWriter, ("output_size",)),
    (helpers, ("rfc822_formatted_time",)),
    (http, ("RawRequestMessage",)),
    (http_writer, ("_serialize_headers",)),
    (web.Response, ("_keep_alive", "_eof_sent")),
    (http_exceptions, ("LineTooLong",)),
    (client_proto, ("ResponseHandler",)),
    (tracing, ("Trace",)),
]


def test_the_version_is_the_one_whose_names_were_read() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert "aiohttp>=3.14,<3.15" in project["dependencies"]
    assert metadata.version("aiohttp").startswith("3.14.")


@pytest.mark.parametrize(
    ("method", "names", "module"), PARAMETERS, ids=lambda given: getattr(given, "__qualname__", "")
)
def test_a_method_that_ours_stands_in_for_takes_what_it_took(method: object, names: list[str], module: str) -> None:
    assert callable(method)
    assert list(inspect.signature(method).parameters) == names, WHERE.format(module)


@pytest.mark.parametrize(("owner", "names"), NAMES, ids=lambda given: getattr(given, "__name__", ""))
def test_a_name_is_where_it_was(owner: object, names: tuple[str, ...]) -> None:
    assert [name for name in names if not hasattr(owner, name)] == [], WHERE.format("http_facade/connections.py")


async def _answer(request: web.BaseRequest) -> web.StreamResponse:
    assert request.protocol.writing_paused is False
    assert request.protocol._current_request is request
    return web.Response()


async def test_a_server_and_its_connection_have_the_names_that_ours_use() -> None:
    server = web.Server(_answer, access_log=None)
    where = WHERE.format("http_facade/connections.py")
    for name in ("request_handler", "request_factory", "_loop", "_kwargs", "_connections"):
        assert hasattr(server, name), (name, where)
    assert server._kwargs == {"access_log": None}, where
    connection = server()
    for name in ("_manager", "_loop", "_waiter", "_messages", "_parser", "_next_keepalive_close_time"):
        assert hasattr(connection, name), (name, where)
    assert connection._manager is server, where
    assert connection._waiter is None, where
    assert connection._parser is None or isinstance(connection._parser, Parser), where


async def test_what_came_stands_in_the_queue_and_wakes_the_one_who_waits() -> None:
    server = web.Server(_answer, access_log=None)
    listening = await asyncio.get_running_loop().create_server(server, "127.0.0.1", 0)
    where = WHERE.format("Connection._sift in http_facade/connections.py")
    try:
        reader, writer = await asyncio.open_connection(*listening.sockets[0].getsockname())
        for _ in range(2):
            writer.write(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
            assert await reader.readline() == b"HTTP/1.1 200 OK\r\n"
            await reader.readuntil(b"\r\n\r\n")
        [connection] = server.connections
        assert isinstance(connection._waiter, asyncio.Future), where
        assert not connection._waiter.done(), where
        waiter, connection._waiter = connection._waiter, None
        connection.data_received(b"GET /second HTTP/1.1\r\nhost: x\r\n\r\n")
        connection._waiter = waiter
        [(message, body)] = connection._messages
        assert isinstance(message, http.RawRequestMessage), where
        assert (message.method, message.path, message.upgrade, message.should_close) == ("GET", "/second", False, False)
        assert body.is_eof(), where
        waiter.set_result(None)
        assert await reader.readline() == b"HTTP/1.1 200 OK\r\n", where
        writer.close()
    finally:
        listening.close()
        await server.shutdown(1)
