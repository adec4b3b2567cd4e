"""Gateway with a fake video provider, and a server of a caller that gets the notifications about its tasks."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

import grpc
import msgspec
from aiohttp import web

from tests.support import fake_video_upstream
from tests.support.fake_video_upstream import FakeVideos
from tests.support.gateways import Running, running
from tests.support.serving import serving
from tests.support.video_calls import MODEL, Stub, stub_of


class Receiver:
    """Server of a caller that gets its notifications. It answers with the statuses in turn; the last one stays."""

    def __init__(self) -> None:
        self.statuses = [200]
        self.received: list[tuple[Mapping[str, str], bytes]] = []

    async def receive(self, request: web.Request) -> web.Response:
        self.received.append((dict(request.headers), await request.read()))
        status = self.statuses.pop(0) if len(self.statuses) > 1 else self.statuses[0]
        return web.Response(status=status)

    @property
    def states(self) -> list[str]:
        return [msgspec.json.decode(body)["status"] for _, body in self.received]


@asynccontextmanager
async def notified(data: Path) -> AsyncGenerator[tuple[Running, FakeVideos, Stub, Receiver, str], None]:
    receiver, app = Receiver(), web.Application()
    app.router.add_post("/hook", receiver.receive)
    async with serving(app) as url:
        place = urlsplit(url).netloc
        config = fake_video_upstream.config(MODEL) + f"egress: {{allow: ['{place}'], http: true}}\n"
        async with running(config, data) as gateway, grpc.aio.insecure_channel(gateway.grpc) as channel:
            fake = FakeVideos()
            gateway.service._channels.videos["videos"] = fake
            yield gateway, fake, stub_of(channel), receiver, f"{url}/hook"
