"""The owner of the child process: starts it, starts it again when it dies, ends it with the gateway."""

import asyncio
import json
import os
import random
import secrets
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import structlog
from structlog.typing import FilteringBoundLogger

from umg_grpc.upstream.local import TextModel, child
from umg_grpc.upstream.local.latest import Latest

START_SECONDS = 60.0  # to be ready; about one second is usual, a cold disk takes longer
END_SECONDS = 5.0  # between the end of its output and its own
FIRST_DELAY_SECONDS = 0.2
LONGEST_DELAY_SECONDS = 30.0
STABLE_SECONDS = 60.0  # a child that lived this long did not fail at its start
LOG_TAIL_CHARACTERS = 2000

logger: FilteringBoundLogger = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Endpoint:
    """Where one life of the child can be called; port and key are others after a restart."""

    base_url: str
    """All that stands before a format's own path: `http://127.0.0.1:PORT/v1`."""
    api_key: str = field(repr=False)
    pid: int

    @property
    def headers(self) -> dict[str, str]:
        """What every call has to send. llama.cpp says it keeps the connection of a streamed answer and closes it: the
        next call on it would fail.
        """
        return {"Authorization": f"Bearer {self.api_key}", "Connection": "close"}


class LocalModel:
    """A model in a child process that is there from `start` to `close`. It runs on the event loop that starts it."""

    def __init__(self, model: TextModel, weights: Path, *, slots: int = 4, threads: int | None = None) -> None:
        """`slots` requests are answered at once, more wait in the child; `threads` defaults to `spare_cores()`."""
        self._model = model
        self._weights = weights
        self._slots = slots
        self._threads = threads or spare_cores()
        self._log = logger.bind(model=model.model)
        self._latest = Latest[Endpoint](model.model)
        self._owner: asyncio.Task[None] | None = None

    @property
    def endpoint(self) -> Endpoint | None:
        """Where the model can be called at this moment, None while there is no child that could answer."""
        return self._latest.value

    async def wait_ready(self, seconds: float, *, after: object = None) -> Endpoint:
        """Where the model can be called, as soon as it can. Raises UmgError(UNAVAILABLE) after `seconds`.

        `after` is an endpoint whose connection was refused or broke off, which can be seen a moment before the end of
        the process is: then it has to be another one.
        """
        return await self._latest.wait(seconds, after=after)

    async def start(self) -> None:
        """Begins to load the model, which takes about a second: `wait_ready` waits for it."""
        if self._owner is None:
            self._owner = asyncio.create_task(self._keep_alive(), name=f"local model {self._model.model}")

    async def close(self) -> None:
        """Returns when the child is gone. Answers under way break off."""
        if self._owner is not None:
            self._owner.cancel()
            await asyncio.wait([self._owner])
            self._owner = None

    async def _keep_alive(self) -> None:
        delay = FIRST_DELAY_SECONDS
        while True:
            started = time.monotonic()
            try:
                await self._live()
            except Exception:
                self._log.exception("the local model could not be started")
            if time.monotonic() - started > STABLE_SECONDS:
                delay = FIRST_DELAY_SECONDS
            await asyncio.sleep(delay * random.uniform(0.75, 1.25))  # noqa: S311 - it spreads restarts, it guards nothing
            delay = min(2 * delay, LONGEST_DELAY_SECONDS)

    async def _live(self) -> None:
        """One life of the child, from its start to its end, whichever side ends it."""
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", "umg_grpc.upstream.local.child"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,  # Ctrl-C in the terminal is for the gateway, which then drains
        )
        assert process.stdin and process.stdout and process.stderr  # noqa: S101, PT018 - for the type checker
        try:
            async with asyncio.TaskGroup() as group:
                log = group.create_task(self._relay(process.stderr))
                await self._serve(process, process.stdin, process.stdout)
                tail = await log
        finally:
            self._latest.publish(None)
            if process.returncode is None:
                process.kill()  # at once: it has nothing to save, and must not outlive us
            try:
                await asyncio.wait_for(process.wait(), END_SECONDS)
            except TimeoutError:  # said and not raised: it would hide that this task is being cancelled
                self._log.error("the local model's process was killed and does not end", pid=process.pid)
        self._log.error("the local model's process ended", exit_code=process.returncode, last_words=tail)

    async def _serve(
        self, process: asyncio.subprocess.Process, stdin: asyncio.StreamWriter, stdout: asyncio.StreamReader
    ) -> None:
        """Publishes the endpoint once the child can answer; returns when the child has ended."""
        api_key = secrets.token_urlsafe(32)
        settings = child.Settings(
            weights=str(self._weights),
            model=self._model.model,
            api_key=api_key,
            slots=self._slots,
            slot_context=self._model.slot_context,
            threads=self._threads,
        )
        started = time.monotonic()
        stdin.write(json.dumps(settings).encode() + b"\n")
        async with asyncio.timeout(START_SECONDS):
            line = await stdout.readline()
        if line:
            ready: child.Ready = json.loads(line)
            self._latest.publish(Endpoint(f"http://127.0.0.1:{ready['port']}/v1", api_key, process.pid))
            seconds = round(time.monotonic() - started, 2)
            self._log.info("the local model is ready", pid=process.pid, seconds=seconds, threads=self._threads)
            await stdout.read()  # ends when the process does
            self._latest.publish(None)
        async with asyncio.timeout(END_SECONDS):
            await process.wait()

    async def _relay(self, log: asyncio.StreamReader) -> str:
        """Passes llama.cpp's log on; returns the end of it, which says why the child ended."""
        tail = ""
        while chunk := await log.read(4096):
            text = chunk.decode(errors="replace")
            self._log.debug("llama.cpp", text=text.rstrip())
            tail = (tail + text)[-LOG_TAIL_CHARACTERS:]
        return tail


def spare_cores() -> int:
    """The cores this process may use, less one for the gateway itself; at least 1."""
    usable = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    return max(1, usable - 1)
