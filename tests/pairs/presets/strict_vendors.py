"""All vendors of the presets behind one HTTP proxy: each accepts a call only at a documented URL, with the key in the
documented header and in no other place, and for a model of its own.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import cast

from aiohttp import web
from msgspec import Struct
from msgspec.json import decode

from tests.support.providers.every_operation import CHAT, EMBEDDING, RANKING
from tests.support.providers.server import FakeProvider, Json, ReceivedRequest
from tests.support.providers.short_responses import CANDIDATES, MESSAGE, RESPONSE

TABLE = Path(__file__).with_name("documented_calls.jsonl")
VARIABLES = TABLE.with_name("variables.jsonl")
CREDENTIALS = ("authorization", "x-api-key", "api-key", "x-goog-api-key")


class DocumentedCalls(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Calls of one provider as its documents and SDKs make them. Nothing of it is read from the presets."""

    preset: str
    models: Mapping[str, tuple[str, str]]
    """Protocol -> (id at the gateway, id at the provider); "" for all others."""
    calls: Mapping[str, str]
    """Protocol -> URL of its call, with `my-` and the name in place of the parts of an account."""
    header: str
    """Header with the key, whose place is `{key}`; or with `{access}`, the id of an access key, and `*` for a signature."""
    headers: Mapping[str, str] = {}
    """Protocol -> header in place of `header`."""
    litellm: tuple[tuple[str, str], ...] = ()
    """(File of LiteLLM's package, text in it) that confirms a part of the row."""
    sources: Mapping[str, str] = {}
    """Protocol -> source of its call, for protocols that providers have added beside the first one."""
    source: str

    @property
    def key(self) -> str:
        """API key of the account in the tests."""
        return f"{self.access}:c2VjcmV0LW9mLWEta2V5" if "{access}" in self.header else f"key-of-{self.preset}"

    @property
    def access(self) -> str:
        """Id of the access key of an account whose calls are signed."""
        return f"AK-{self.preset}"

    @property
    def list_urls(self) -> tuple[str, ...]:
        """URLs of a model list beside the calls, of which a vendor has one at most."""
        ends = ("/chat/completions", "/responses", "/messages", "/embeddings", "/rerank", "/images/generations")
        found = [url.removesuffix(end) + "/models" for url in self.calls.values() for end in ends if url.endswith(end)]
        return (*found, *(url.rpartition("/")[0] for url in self.calls.values() if ":generateContent" in url))

    def model(self, protocol: str) -> tuple[str, str]:
        """Return (id at the gateway, id at the provider) of a model for a protocol."""
        return self.models.get(protocol) or self.models[""]

    def sent_header(self, protocol: str) -> tuple[str, str]:
        """Return the name of the header with the key, and the pattern of its value."""
        name, _, value = self.headers.get(protocol, self.header).partition(": ")
        return name, value.format(key=self.key, access=self.access)

    def is_sent(self, protocol: str, headers: Mapping[str, str]) -> bool:
        """Return whether the key is in its header and in no other one."""
        name, value = self.sent_header(protocol)
        sent = [header for header in CREDENTIALS if header in headers]
        return sent == [name] and fnmatchcase(headers[name], value)


@cache
def documented() -> Mapping[str, DocumentedCalls]:
    """Return the rows of the table by the preset."""
    return {row.preset: row for row in (decode(line, type=DocumentedCalls) for line in TABLE.read_text().splitlines())}


class SourcedVariable(Struct, frozen=True, forbid_unknown_fields=True):
    """Environment variable of a key that LiteLLM does not read."""

    name: str
    source: str


@cache
def sourced_variables() -> tuple[SourcedVariable, ...]:
    return tuple(decode(line, type=SourcedVariable) for line in VARIABLES.read_text().splitlines())


BODIES: Mapping[str, Json] = {
    "chat": CHAT,
    "responses": RESPONSE,
    "messages": MESSAGE,
    "native": CANDIDATES,
    "converse": {
        "output": {"message": {"role": "assistant", "content": [{"text": "Hello"}]}},
        "stopReason": "end_turn",
        "usage": {"inputTokens": 1, "outputTokens": 1, "totalTokens": 2},
        "metrics": {"latencyMs": 1},
    },
    "embeddings": EMBEDDING,
    "native_embeddings": {"embedding": {"values": [0.5, 0.25]}},
    "vertex_embeddings": {"predictions": [{"embeddings": {"values": [0.5, 0.25]}}]},
    "bedrock_embeddings": {"embeddings": {"float": [[0.5, 0.25]]}},
    "rerank": RANKING,
    "bedrock_rerank": RANKING,
}
"""Protocol -> response; calls of others are refused for their prompt once all the rest is right."""
REFUSED_PROMPT: Json = {"error": {"message": "the prompt is refused", "type": "invalid_request_error"}}


def model_of(received: ReceivedRequest) -> str | None:
    """Return the model in the body of a call, JSON or a form; None if it is in the path."""
    if not received.headers["content-type"].startswith("multipart/form-data"):
        return cast("str | None", received.json.get("model"))
    field = re.search(rb'name="model".*?\r\n\r\n(.*?)\r\n', received.body, re.DOTALL)
    return field[1].decode() if field else None


@dataclass
class StrictVendors(FakeProvider):
    """Proxy in front of all vendors."""

    accepted: set[tuple[str, str]] = field(default_factory=set)
    """(Preset, protocol) of each call that was right."""
    mistakes: list[str] = field(default_factory=list)

    listed: set[str] = field(default_factory=set)
    """Presets whose list was read."""

    async def answer(self, request: web.Request, received: ReceivedRequest) -> web.StreamResponse:
        url = re.sub(r"^http:", "https:", request.raw_path.partition("?")[0])
        if request.method == "GET":
            return self._list(url, received)
        rows = [
            (row, protocol)
            for row in documented().values()
            for protocol, documented_url in row.calls.items()
            if url == re.sub(r"^http:", "https:", documented_url)
        ]
        for row, protocol in rows:
            model = row.model(protocol)[1]
            if row.is_sent(protocol, received.headers) and (model_of(received) or model) == model:
                return self._accept(row, protocol, received)
        self.mistakes.append(f"{url} {received.headers.get('authorization', '')} {model_of(received)}")
        status = 401 if rows else 404
        return web.json_response({"error": {"message": "unknown key, model or URL"}}, status=status)

    def _list(self, url: str, received: ReceivedRequest) -> web.StreamResponse:
        """Return the list of the models in the documented calls of the vendor with the URL and the key."""
        for row in documented().values():
            if url not in {re.sub(r"^http:", "https:", each) for each in row.list_urls}:
                continue
            for protocol in row.calls:
                name, value = row.sent_header(protocol)
                if received.headers.get(name) == value:
                    self.listed.add(row.preset)
                    ids = list(dict.fromkeys(upstream for _, upstream in row.models.values()))
                    if "native" in row.calls:
                        return web.json_response({"models": [{"name": f"models/{each}"} for each in ids]})
                    return web.json_response({"object": "list", "data": [{"id": each} for each in ids]})
        return web.json_response({"error": {"message": "unknown key or URL"}}, status=404)

    def _accept(self, row: DocumentedCalls, protocol: str, received: ReceivedRequest) -> web.StreamResponse:
        self.accepted.add((row.preset, protocol))
        if protocol == "messages":
            assert received.headers["anthropic-version"]
        if protocol in BODIES:
            return web.json_response(BODIES[protocol])
        return web.json_response(REFUSED_PROMPT, status=400)
