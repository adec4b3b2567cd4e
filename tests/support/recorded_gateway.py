"""Gateway under test with a channel of each text format to one fake provider that records its requests."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import aiohttp

from tests.pairs.table import TEXT_FACES
from tests.support.callers.http_caller import HttpCaller
from tests.support.gateways import channel, running
from tests.support.providers.server import Json, RecordingProvider, Written, serve_provider


@dataclass
class RecordedGateway:
    """Caller of the gateway, and the provider of its model `m-FORMAT` for each format."""

    caller: HttpCaller
    provider: RecordingProvider

    def set_answer(self, answer: Written) -> None:
        """Let the provider give this answer to all requests: a JSON body, bytes, or the bytes of an event stream."""
        self.provider.respond = lambda _: answer


def event_stream(events: list[Json]) -> bytes:
    """Return a stream of events, with their names where they have a type."""
    named = [(f"event: {event['type']}\n" if "type" in event else "", json.dumps(event)) for event in events]
    return "".join(f"{name}data: {data}\n\n" for name, data in named).encode()


@asynccontextmanager
async def recorded_gateway(data: Path) -> AsyncGenerator[RecordedGateway, None]:
    async with serve_provider(RecordingProvider()) as provider:
        config = "channels:\n" + "".join(
            channel(name, name, provider.url, f"m-{name}", "theirs") for name in TEXT_FACES
        )
        async with running(config, data) as gateway, aiohttp.ClientSession() as session:
            yield RecordedGateway(HttpCaller(session, gateway.url, gateway.key), provider)
