"""Supervisor of the local model's child process: starts it, restarts it after a crash, and stops it."""

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

from umg_grpc.upstream.local import TextModel, llama_server
from umg_grpc.upstream.local.async_value import AsyncValue

START_SECONDS = 60.0  # until it is ready; usually about one second, longer from a cold disk
END_SECONDS = 5.0  # between the end of its output and its exit
FIRST_DELAY_SECONDS = 0.2
LONGEST_DELAY_SECONDS = 30.0
STABLE_SECONDS = 60.0  # a child that lived this long did not fail at its start
LOG_TAIL_CHARACTERS = 2000
MODEL_SLOTS = 4  # requests processed at once; more wait in the child

logger: FilteringBoundLogger = structlog.get_logger(__name__)


@dataclass(frozen=True)
class ProcessEndpoint:
    """Address and API key of one run of the child process; port and key change with each restart."""

    base_url: str
    """Prefix of the URLs of all calls: `http://127.0.0.1:PORT/v1`."""
    api_key: str = field(repr=False)
    pid: int

    @property
    def headers(self) -> dict[str, str]:
        """Headers of every request to the child process. `Connection: close` is needed because llama.cpp announces
        keep-alive after a streamed response but closes the connection, which would make the next request fail.
        """
        return {"Authorization": f"Bearer {self.api_key}", "Connection": "close"}


class LocalModel:
    """Text model that runs in a child process, from `start` to `close`."""

    def __init__(self, model: TextModel, weights: Path) -> None:
        """Create the supervisor of a model. `weights`: path of its GGUF file."""
        self._model = model
        self._weights = weights
        self._log = logger.bind(model=model.model)
        self._latest = AsyncValue[ProcessEndpoint](model.model)
        self._task: asyncio.Task[None] | None = None

    @property
    def endpoint(self) -> ProcessEndpoint | None:
        """Current address of the child process; None while it is not ready."""
        return self._latest.value

    async def wait_ready(self, seconds: float, *, after: object = None) -> ProcessEndpoint:
        """Return the address of the child process as soon as it is ready. `after`: address to which a connection
        failed, None if there is none; as the process may still be ending, the next address is awaited. Raise
        UmgError(UNAVAILABLE) after `seconds`.
        """
        return await self._latest.wait(seconds, after=after)

    async def start(self) -> None:
        """Start to load the model, which takes about a second; `wait_ready` waits for it."""
        if self._task is None:
            self._task = asyncio.create_task(self._supervise(), name=f"local model {self._model.model}")

    async def close(self) -> None:
        """Stop the child process, and wait for its end. Requests in flight are aborted."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
            self._task = None

    async def _supervise(self) -> None:
        delay = FIRST_DELAY_SECONDS
        while True:
            started = time.monotonic()
            try:
                await self._run_child()
            except Exception:
                self._log.exception("the local model could not be started")
            if time.monotonic() - started > STABLE_SECONDS:
                delay = FIRST_DELAY_SECONDS
            await asyncio.sleep(delay * random.uniform(0.75, 1.25))  # noqa: S311 - spreads restarts, not for security
            delay = min(2 * delay, LONGEST_DELAY_SECONDS)

    async def _run_child(self) -> None:
        """Run the child process once, until it ends."""
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", "umg_grpc.upstream.local.llama_server"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,  # Ctrl-C in the terminal must reach only the gateway, which then drains
        )
        assert process.stdin and process.stdout and process.stderr  # noqa: S101, PT018 - for the type checker
        try:
            async with asyncio.TaskGroup() as group:
                log = group.create_task(self._relay_log(process.stderr))
                await self._serve(process, process.stdin, process.stdout)
                tail = await log
        finally:
            self._latest.publish(None)
            if process.returncode is None:
                process.kill()  # at once: it has nothing to save, and must not outlive the gateway
            try:
                await asyncio.wait_for(process.wait(), END_SECONDS)
            except TimeoutError:  # logged and not raised: an exception would hide the cancellation of this task
                self._log.error("the local model's process was killed and does not end", pid=process.pid)
        self._log.error("the local model's process ended", exit_code=process.returncode, last_words=tail)

    async def _serve(
        self, process: asyncio.subprocess.Process, stdin: asyncio.StreamWriter, stdout: asyncio.StreamReader
    ) -> None:
        """Publish the address when the child process is ready. Return when the process has ended."""
        api_key, threads = secrets.token_urlsafe(32), spare_cores()
        settings = llama_server.ProcessSettings(
            weights=str(self._weights),
            model=self._model.model,
            api_key=api_key,
            slots=MODEL_SLOTS,
            slot_context=self._model.slot_context,
            threads=threads,
        )
        started = time.monotonic()
        stdin.write(json.dumps(settings).encode() + b"\n")
        async with asyncio.timeout(START_SECONDS):
            line = await stdout.readline()
        if line:
            ready: llama_server.ReadyLine = json.loads(line)
            self._latest.publish(ProcessEndpoint(f"http://127.0.0.1:{ready['port']}/v1", api_key, process.pid))
            seconds = round(time.monotonic() - started, 2)
            self._log.info("the local model is ready", pid=process.pid, seconds=seconds, threads=threads)
            await stdout.read()  # ends when the process does
            self._latest.publish(None)
        async with asyncio.timeout(END_SECONDS):
            await process.wait()

    async def _relay_log(self, log: asyncio.StreamReader) -> str:
        """Log the output of llama.cpp. Return its last part, which shows why the child process has ended."""
        tail = ""
        while chunk := await log.read(4096):
            text = chunk.decode(errors="replace")
            self._log.debug("llama.cpp", text=text.rstrip())
            tail = (tail + text)[-LOG_TAIL_CHARACTERS:]
        return tail


def spare_cores() -> int:
    """Return the number of CPU cores for the model: those of this process except one for the gateway, or 1."""
    usable = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    return max(1, usable - 1)
