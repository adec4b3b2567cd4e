"""Command `python -m bench.config_reload`: measures for how long a reload to a large config holds the event loop.

Health checks follow each other on one connection, before the reload and during it. Their longest time is that for which
the process answers nothing.
"""

import argparse
import asyncio
import sys
import sysconfig
import tempfile
import time
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

from bench.benchmark_rounds import cores
from bench.command_line import count, run_to_end
from bench.load_measurement import Cores
from bench.processes import BenchError, output_of, started

MODELS = 10_000
PER_CHANNEL = 100
QUIET_SECONDS = 2.0
REQUEST = b"GET /healthz HTTP/1.1\r\nhost: bench\r\n\r\n"


@dataclass(frozen=True)
class Result:
    """Figures of one reload, in seconds."""

    models: int
    reload_seconds: float
    """Time of the command `umg reload`, the start of its process included."""
    longest_before: float
    longest_during: float


def config_of(models: int) -> str:
    """Return a config with this number of models, in channels of `PER_CHANNEL`."""
    lines = ["channels:"]
    for start in range(0, models, PER_CHANNEL):
        lines += [
            f"  - name: channel-{start // PER_CHANNEL}",
            "    protocols: [chat]",
            "    base_url: http://127.0.0.1:9/v1",
            "    api_key: sk-provider-of-the-benchmark",
            "    models:",
        ]
        served = range(start, min(models, start + PER_CHANNEL))
        lines += [f"      - {{id: model-{number}, upstream: provider/model-{number}}}" for number in served]
    return "\n".join(lines)


class Checks:
    """Health checks one after another on a connection, until `stop`, with the time of the slowest one."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._is_over = False
        self._longest = 0.0

    async def run(self) -> None:
        """Send checks until `stop`."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        while not self._is_over:
            began = time.perf_counter()
            writer.write(REQUEST)
            head = await reader.readuntil(b"\r\n\r\n")
            [length] = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
            await reader.readexactly(int(length.partition(b":")[2]))
            if b" 200 " not in head:
                raise BenchError(f"a health check was answered {head[:60]!r}")
            self._longest = max(self._longest, time.perf_counter() - began)
        writer.close()

    def take_longest(self) -> float:
        """Return the longest time since the last call of this method, in seconds."""
        longest, self._longest = self._longest, 0.0
        return longest

    def stop(self) -> None:
        """End `run`."""
        self._is_over = True


async def measure(models: int, where: Cores) -> Result:
    """Start the gateway with one channel, reload it with `models` models, and return the figures."""
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="reload-")))
        config, data = folder / "config.yaml", folder / "data"
        config.write_text(config_of(PER_CHANNEL))
        umg = str(Path(sysconfig.get_path("scripts"), "umg"))
        command = [umg, "serve", "--config", str(config), "--data", str(data)]
        command += ["--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0"]
        process = await stack.enter_async_context(started("gateway", command, where.target, folder))
        checks = Checks(await process.port())
        running = asyncio.create_task(checks.run())
        await asyncio.sleep(QUIET_SECONDS)
        before = checks.take_longest()
        config.write_text(config_of(models))
        began = time.perf_counter()
        await output_of([umg, "reload", "--data", str(data)], folder, where.harness)
        seconds, during = time.perf_counter() - began, checks.take_longest()
        checks.stop()
        await running
        return Result(models, seconds, before, during)


def as_table(result: Result) -> str:
    """Return the figures as a table of names and values."""
    rows = {
        "models": f"{result.models:,}",
        "`umg reload`, s": f"{result.reload_seconds:.2f}",
        "longest health check before, ms": f"{1e3 * result.longest_before:.1f}",
        "longest health check during the reload, ms": f"{1e3 * result.longest_during:.1f}",
    }
    width, digits = max(map(len, rows)), max(map(len, rows.values()))
    return "\n".join(f"| {name:<{width}} | {value:>{digits}} |" for name, value in rows.items())


def main() -> int:
    """Measure and print the table. Return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m bench.config_reload", description=__doc__)
    parser.add_argument("--models", type=count, default=MODELS, help=f"models of the new config (default {MODELS})")
    arguments = parser.parse_args()

    async def measured() -> None:
        print(as_table(await measure(arguments.models, cores())))

    return run_to_end(measured)


if __name__ == "__main__":
    sys.exit(main())
