"""Questions to a gateway in each format, and the usage that the responses state."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import aiohttp

from tests.pairs.table import ROOTS
from tests.proofs.cache.cached_provider import CachedFormat
from tests.support.gateways import KEY, Running
from tests.support.providers.server import Json

NO_HEADERS: Mapping[str, str] = MappingProxyType({})
LONG = "word " * 2000
CONTROL = {"type": "ephemeral", "ttl": "1h"}


@dataclass(frozen=True)
class Face:
    """Face with the body of a question, and the way in which its usage states tokens."""

    name: str
    body: Json
    path: str = ""

    def url(self, model: str, *, stream: bool) -> str:
        path = self.path
        if self.name == "native":
            path = f"/models/{model}:{'streamGenerateContent?alt=sse' if stream else 'generateContent'}"
        return ROOTS[self.name] + path

    def question(self, model: str, *, stream: bool) -> Json:
        return self.body if self.name == "native" else {**self.body, "model": model, "stream": stream}


FACES = (
    Face("chat", {"messages": [{"role": "user", "content": LONG}]}, "/chat/completions"),
    Face("responses", {"input": [{"role": "user", "content": LONG}], "store": False}, "/responses"),
    Face(
        "messages",
        {
            "max_tokens": 100,
            "messages": [{"role": "user", "content": [{"type": "text", "text": LONG, "cache_control": CONTROL}]}],
        },
        "/messages",
    ),
    Face("native", {"contents": [{"role": "user", "parts": [{"text": LONG}]}]}),
)


@dataclass(frozen=True)
class World:
    gateway: Running
    providers: dict[str, CachedFormat]

    async def usage(
        self,
        face: Face,
        model: str,
        *,
        stream: bool,
        more: Json | None = None,
        headers: Mapping[str, str] = NO_HEADERS,
        key: str = KEY,
    ) -> Json:
        """Return the usage of one call. `headers`: of the caller's program."""
        body = {**face.question(model, stream=stream), **(more or {})}
        if face.name == "chat" and stream:
            body["stream_options"] = {"include_usage": True}
        url = self.gateway.url + face.url(model, stream=stream)
        sent = {"authorization": f"Bearer {key}", "anthropic-version": "2023-06-01", **headers}
        async with aiohttp.ClientSession(headers=sent) as session, session.post(url, json=body) as response:
            text = await response.text()
            assert response.status == 200, text
        return _usage_of([json.loads(line) for line in _values(text)] if stream else [json.loads(text)])


def _values(text: str) -> list[str]:
    lines = [line.removeprefix("data:").strip() for line in text.splitlines() if line.startswith("data:")]
    return [line for line in lines if line != "[DONE]"]


def _usage_of(values: list[Json]) -> Json:
    found: Json = {}
    for value in values:
        for holder in (value, value.get("message") or {}, value.get("response") or {}):
            found |= holder.get("usage") or holder.get("usageMetadata") or {}
    return found
