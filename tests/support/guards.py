"""Guards of an operator: one server over gRPC and one webhook, which decide by the names under which they are called."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import grpc
from aiohttp import web
from google.protobuf import json_format

from tests.support.serving import serving
from umg_grpc.base.inprocess_channel import Context
from umg_grpc.v1 import pb, rpc

SECRET, HIDDEN = "AKIAIOSFODNN7EXAMPLE", "hidden0000"
"""Text that the guards find, and the one that takes its place."""
PASS, MASK, REFUSE, SLOW, AWAY = "pass", "mask", "refuse", "slow", "away"
"""Beginnings of the names of guards: they decide so. A slow one never does, and one that is away has no server."""
REASON, CATEGORY = "it has a secret", "secrets"
OTHER_IMAGE = b"\x89PNG\r\n\x1a\nanother"
GUARDS_PATH = "/guard"


@dataclass
class GuardServers(rpc.GuardServiceServicer):
    target: str = ""
    url: str = ""
    checks: list[pb.CheckRequest] = field(default_factory=list)

    async def decide(self, request: pb.CheckRequest) -> pb.CheckResponse:
        self.checks.append(request)
        found = [text for text in request.texts if SECRET in text.text]
        notes = {"texts": str(len(request.texts))}
        if request.guard.startswith(SLOW):
            await asyncio.get_running_loop().create_future()
        if found and request.guard.startswith(REFUSE):
            return pb.CheckResponse(refuse=pb.GuardRefuse(reason=REASON, category=CATEGORY), annotations=notes)
        if found and request.guard.startswith(MASK):
            texts = [pb.TextReplacement(path=text.path, text=text.text.replace(SECRET, HIDDEN)) for text in found]
            return pb.CheckResponse(replace=pb.GuardReplace(texts=texts), annotations=notes)
        if request.content.HasField("image_response"):
            return _decided_images(request)
        return pb.CheckResponse(allow=pb.GuardAllow(), annotations=notes)

    async def Check(self, request: pb.CheckRequest, context: Context) -> pb.CheckResponse:
        return await self.decide(request)

    async def webhook(self, request: web.Request) -> web.Response:
        check = json_format.Parse(await request.read(), pb.CheckRequest())
        return web.Response(text=json_format.MessageToJson(await self.decide(check)), content_type="application/json")

    def checks_of(self, guard: str) -> list[pb.CheckRequest]:
        return [check for check in self.checks if check.guard == guard]


def _decided_images(request: pb.CheckRequest) -> pb.CheckResponse:
    """Return the decision on images, which a masking guard replaces by another one."""
    if request.guard.startswith(REFUSE):
        return pb.CheckResponse(refuse=pb.GuardRefuse(reason=REASON, category=CATEGORY))
    if not request.guard.startswith(MASK):
        return pb.CheckResponse(allow=pb.GuardAllow())
    content = pb.GuardedContent()
    content.CopyFrom(request.content)
    for image in content.image_response.result.images:
        image.data = OTHER_IMAGE
    return pb.CheckResponse(replace=pb.GuardReplace(content=content))


@asynccontextmanager
async def guard_servers() -> AsyncGenerator[GuardServers, None]:
    made = GuardServers()
    server = grpc.aio.server()
    rpc.add_GuardServiceServicer_to_server(made, server)  # type: ignore[no-untyped-call,unused-ignore]
    made.target = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    app = web.Application()
    app.router.add_post(GUARDS_PATH, made.webhook)
    await server.start()
    try:
        async with serving(app, handler_cancellation=True) as url:
            made.url = f"{url}{GUARDS_PATH}"
            yield made
    finally:
        await server.stop(None)
