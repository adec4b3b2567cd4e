"""Proxies in front of a gateway under test, as processes of their own."""

import asyncio
import os
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress


@asynccontextmanager
async def proxy_process(
    command: Sequence[str], port: int, *, seconds: float, environment: Mapping[str, str] | None = None
) -> AsyncGenerator[None, None]:
    """Run a proxy in the foreground, from the time it listens at the port, for which it has `seconds`."""
    process = await asyncio.create_subprocess_exec(*command, env={**os.environ, **(environment or {})})
    try:
        async with asyncio.timeout(seconds):
            while process.returncode is None:
                with suppress(OSError):
                    _, writer = await asyncio.open_connection("127.0.0.1", port)
                    writer.close()
                    await writer.wait_closed()
                    break
                await asyncio.sleep(0.02)
        assert process.returncode is None, f"{command[0]} ended"
        yield
    finally:
        with suppress(ProcessLookupError):
            process.terminate()
        await process.wait()
