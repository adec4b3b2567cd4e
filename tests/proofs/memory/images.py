"""Command `python -m tests.proofs.memory.images`: measures the memory of many image calls at once, and the latency of small text
calls beside them. The exit code states whether both stayed within their limits.
"""

import asyncio
import base64
import json
import os
import sys
import tempfile
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from random import Random
from urllib.parse import urlsplit

import uvloop
from PIL import Image

from tests.proofs.memory.callers import Caller, request, send
from tests.proofs.memory.cases import MEBIBYTE
from tests.proofs.memory.gateway import Watched, watched
from tests.proofs.soak.gateway import KEY

EDGE = 1320
"""Edge of the images, whose noise makes about 5 MB."""
MAX_BYTES = 400 * MEBIBYTE
MAX_SLOWDOWN = 2.0
CALLS = 200
WARM_UP_CALLS, TEXT_CALLS = 20, 400
NICENESS = 10
"""Lower priority of the processes that make and read the image answers."""
SLACK_SECONDS = 0.02
"""Latency that is not counted: that of a busy host."""
ANSWER = {
    "id": "c", "object": "chat.completion", "created": 1, "model": "small",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "x"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 7, "completion_tokens": 5, "total_tokens": 12},
}  # fmt: skip


@dataclass(frozen=True)
class Figures:
    """Memory of the process in bytes, and latencies of text calls in seconds."""

    base: int
    peak: int
    answered: int
    seconds: float
    text_before: float
    text_during: float

    def __str__(self) -> str:
        memory = f"{self.base / MEBIBYTE:.0f} -> {self.peak / MEBIBYTE:.0f} MB"
        latency = f"text p99 {self.text_before * 1e3:.1f} -> {self.text_during * 1e3:.1f} ms"
        return f"{self.answered} image answers in {self.seconds:.1f} s: {memory}; {latency}"


def image_answer() -> bytes:
    """Return the body of a provider's answer with one image of noise."""
    file = BytesIO()
    noise = Random(1).randbytes(EDGE * EDGE * 3)
    Image.frombytes("RGB", (EDGE, EDGE), noise).save(file, "PNG", compress_level=0)
    return json.dumps({"created": 1, "data": [{"b64_json": base64.b64encode(file.getvalue()).decode()}]}).encode()


async def provide(answer: bytes) -> None:
    """Serve a response on a free port, which is printed."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
                await reader.readexactly(length)
                writer.write(
                    b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(answer)
                )
                for start in range(0, len(answer), 1 << 16):
                    writer.write(answer[start : start + (1 << 16)])
                    await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    _print(server.sockets[0].getsockname()[1])
    await server.serve_forever()


async def load(url: str, calls: int) -> None:
    """Print a line once all is ready, make image calls at once, and print the number of answers with status 200."""
    payload = image_request(urlsplit(url).netloc)
    _print("ready")
    callers = await asyncio.gather(*(_answer(url, payload) for _ in range(calls)))
    _print(sum(caller.status == 200 for caller in callers))


@asynccontextmanager
async def process(*arguments: str) -> AsyncGenerator[asyncio.StreamReader, None]:
    """Run a part of the measurement in a process of its own, so that its work delays no text call. The parts that make
    and read the image answers lower their priority: on a host of few processors they would take the time of the
    gateway.
    """
    made = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.proofs.memory.images", *arguments, stdout=asyncio.subprocess.PIPE
    )
    assert made.stdout is not None
    try:
        yield made.stdout
    finally:
        if made.returncode is None:
            made.kill()
        await made.communicate()


def config(images: int, text: int) -> str:
    """Return the config of the gateway, with the ports of the providers."""
    return f"""
log: {{level: warning, format: json}}
channels:
  - {{name: images, protocols: [images], base_url: "http://127.0.0.1:{images}", api_key: k, models: [imgC-1]}}
  - {{name: text, protocols: [chat], base_url: "http://127.0.0.1:{text}", api_key: k, models: [small]}}
"""


def image_request(address: str) -> bytes:
    body = json.dumps({"model": "imgC-1", "prompt": "a lake"}).encode()
    head = f"POST /v1/images/generations HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {KEY}\r\n"
    return f"{head}content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body


async def text_call(gateway: Watched) -> float:
    payload = request("chat", "small", urlsplit(gateway.url).netloc, stream=False)
    began = time.perf_counter()
    caller = await send(gateway.url, payload)
    await caller.began.wait()
    latency = time.perf_counter() - began
    caller.transport.abort()
    return latency


def p99(latencies: list[float]) -> float:
    return sorted(latencies)[int(len(latencies) * 0.99)]


async def _answer(url: str, payload: bytes) -> Caller:
    """Make an image call, and read its response to the end."""
    caller = await send(url, payload)
    while not caller.ended.is_set():
        await asyncio.sleep(0.05)
        head, _, _ = caller.head.partition(b"\r\n\r\n")
        length = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
        if length and caller.received >= len(head) + 4 + int(length):
            break
    return caller


async def measure(directory: Path, calls: int = CALLS) -> Figures:
    """Make the calls at once, and text calls meanwhile."""
    async with process("images") as images, process("text") as text:
        ports = int(await images.readline()), int(await text.readline())
        async with watched(config(*ports), directory) as gateway:
            await _answer(gateway.url, image_request(urlsplit(gateway.url).netloc))
            before = [await text_call(gateway) for _ in range(WARM_UP_CALLS + TEXT_CALLS)][WARM_UP_CALLS:]
            base = gateway.resident_bytes()
            gateway.reset()
            during = list[float]()
            async with process("load", gateway.url, str(calls)) as loader:
                await loader.readline()
                began = time.perf_counter()
                running = asyncio.create_task(loader.readline())
                while not running.done():
                    during.append(await text_call(gateway))
                seconds = time.perf_counter() - began
                return Figures(base, gateway.peak_bytes(), int(running.result()), seconds, p99(before), p99(during))


def _print(line: object) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> None:
    match sys.argv[1:]:
        case ["text"]:
            uvloop.run(provide(json.dumps(ANSWER).encode()))
        case ["images"]:
            os.nice(NICENESS)
            uvloop.run(provide(image_answer()))
        case ["load", url, calls]:
            os.nice(NICENESS)
            uvloop.run(load(url, int(calls)))
        case _:  # without arguments
            with tempfile.TemporaryDirectory() as directory:
                figures = uvloop.run(measure(Path(directory)))
            _print(figures)
            slow = figures.text_during > max(MAX_SLOWDOWN * figures.text_before, SLACK_SECONDS)
            sys.exit(1 if figures.peak > MAX_BYTES or figures.answered < CALLS or slow else 0)


if __name__ == "__main__":
    main()
