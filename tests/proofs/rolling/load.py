"""Callers of the rolling upgrade, which call through the proxy and count the calls that are lost."""

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial

import aiohttp
import grpc

from tests.support.load import FailedError, Tally, repeating
from umg_grpc.v1 import pb, rpc

MODEL, VIDEO_MODEL = "famO-5", "vidA-2"
TEXT = "One two three four five six seven eight nine ten eleven twelve."
POLL_SECONDS = 0.25
PAUSE_SECONDS = 0.02
"""Pause of a caller between two calls, so that the machine of the test has time for the gateways."""


PLAIN, STREAM, RPC, VIDEO = "chat", "chat stream", "gRPC stream", "video task"
TEXT_KINDS = (PLAIN, STREAM, RPC)


@dataclass(frozen=True)
class Callers:
    http: str
    grpc_address: str
    key: str
    tally: Tally

    @asynccontextmanager
    async def calling(self, callers: int) -> AsyncGenerator[None, None]:
        """Call with `callers` callers of each kind until the context ends, which waits for the calls in flight."""
        headers = {"authorization": f"Bearer {self.key}"}
        async with (
            aiohttp.ClientSession(self.http, headers=headers) as client,
            grpc.aio.insecure_channel(self.grpc_address) as channel,
        ):
            stub = rpc.GenerationServiceStub(channel)
            kinds: dict[str, Callable[[], Awaitable[None]]] = {
                PLAIN: lambda: self._chat(client),
                STREAM: lambda: self._stream(client),
                RPC: lambda: self._rpc(stub),
                VIDEO: lambda: self._video(client),
            }
            counted = [
                partial(self._count, kind, call)
                for kind, call in kinds.items()
                for _ in range(1 if kind is VIDEO else callers)
            ]
            async with repeating(counted):
                yield

    async def _count(self, kind: str, call: Callable[[], Awaitable[None]]) -> None:
        await self.tally.count(kind, call)
        await asyncio.sleep(PAUSE_SECONDS)

    async def _chat(self, client: aiohttp.ClientSession) -> None:
        async with client.post("/v1/chat/completions", json=_body(stream=False)) as response:
            text = await response.text()
            if response.status != 200 or json.loads(text)["choices"][0]["finish_reason"] != "stop":
                raise FailedError(f"{response.status} {text}")

    async def _stream(self, client: aiohttp.ClientSession) -> None:
        async with client.post("/v1/chat/completions", json=_body(stream=True)) as response:
            text = await response.text()
            if response.status != 200 or not text.endswith("data: [DONE]\n\n") or '"error"' in text:
                raise FailedError(f"{response.status} {text[-200:]}")

    async def _rpc(self, stub: rpc.GenerationServiceStub) -> None:
        message = pb.Message(role=pb.ROLE_USER, parts=[pb.Part(text=pb.TextPart(text=TEXT))])
        request = pb.StreamGenerateRequest(request=pb.GenerateRequest(model=MODEL, messages=[message]))
        kinds = set[str | None]()
        async for part in stub.StreamGenerate(request, metadata=(("authorization", f"Bearer {self.key}"),)):
            kinds.update(event.WhichOneof("kind") for event in part.events)
        if "finished" not in kinds:
            raise FailedError(f"the stream has no end, only {kinds}")

    async def _video(self, client: aiohttp.ClientSession) -> None:
        task = {"model": VIDEO_MODEL, "prompt": "a lighthouse at dusk", "seconds": "4", "size": "720x1280"}
        async with client.post("/v1/videos", json=task) as response:
            made = await response.json()
            if response.status != 200:
                raise FailedError(f"{response.status} {made}")
        status = made["status"]
        while status in {"queued", "in_progress"}:
            await asyncio.sleep(POLL_SECONDS)
            async with client.get(f"/v1/videos/{made['id']}") as response:
                found = await response.json()
                if response.status != 200:
                    raise FailedError(f"{response.status} {found}")
                status = found["status"]
        if status != "completed":
            raise FailedError(f"the task ended as {status}")


def _body(*, stream: bool) -> dict[str, object]:
    return {"model": MODEL, "stream": stream, "messages": [{"role": "user", "content": TEXT}]}
