"""Model access: a key cannot discover models beside its own, by any path."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.support.gateways import channel, running
from umg_grpc.access.api_keys import ApiKeys
from umg_grpc.operations import UNARY_OPERATIONS
from umg_grpc.wire.provider_protocols import TEXT_PROTOCOLS

PROTOCOLS = ", ".join([*TEXT_PROTOCOLS, *(name for row in UNARY_OPERATIONS.values() for name in row.protocols)])
HIDDEN, MISSING = "m-hidden", "m-absent"  # of equal length


@dataclass(frozen=True)
class Call:
    id: str
    path: str
    body: dict[str, Any] | None = None


HI = [{"role": "user", "content": "Hi"}]
CALLS = [
    Call("chat", "/v1/chat/completions", {"model": "{model}", "messages": HI}),
    Call("responses", "/v1/responses", {"model": "{model}", "input": "Hi"}),
    Call("messages", "/v1/messages", {"model": "{model}", "max_tokens": 9, "messages": HI}),
    Call("count", "/v1/messages/count_tokens", {"model": "{model}", "messages": HI}),
    Call("native", "/v1beta/models/{model}:generateContent", {"contents": [{"parts": [{"text": "Hi"}]}]}),
    Call("embeddings", "/v1/embeddings", {"model": "{model}", "input": "Hi"}),
    Call("native embeddings", "/v1beta/models/{model}:embedContent", {"content": {"parts": [{"text": "Hi"}]}}),
    Call("rerank", "/v1/rerank", {"model": "{model}", "query": "Hi", "documents": ["a"]}),
    Call("rerank v2", "/v2/rerank", {"model": "{model}", "query": "Hi", "documents": ["a"]}),
    Call("moderations", "/v1/moderations", {"model": "{model}", "input": "Hi"}),
    Call("speech", "/v1/audio/speech", {"model": "{model}", "input": "Hi"}),
    Call("a model", "/v1/models/{model}"),
    Call("a native model", "/v1beta/models/{model}"),
]


@dataclass(frozen=True)
class Scope:
    id: str
    patterns: tuple[str, ...] = ()
    channels: tuple[str, ...] = ()


SCOPES = [
    Scope("by its models", patterns=("m-own",)),
    Scope("by its channels", channels=("own",)),
    Scope("by models that are not there", patterns=("m-own", "gone-*")),
]


async def send(session: aiohttp.ClientSession, url: str, call: Call, model: str, key: str) -> tuple[int, str]:
    body = None if call.body is None else call.body | ({"model": model} if "model" in call.body else {})
    method = "GET" if body is None else "POST"
    headers = {"authorization": f"Bearer {key}", "x-request-id": "one"}
    path = url + call.path.replace("{model}", model)
    async with session.request(method, path, json=body, headers=headers) as answer:
        return answer.status, await answer.text()


@pytest.mark.parametrize("scope", SCOPES, ids=lambda scope: scope.id)
async def test_a_model_that_a_key_may_not_use_is_reported_as_unknown(scope: Scope, tmp_path: Path) -> None:
    dead = "http://127.0.0.1:9"
    channels = [
        channel("own", PROTOCOLS, dead, "m-own", "theirs"),
        channel("other", PROTOCOLS, dead, HIDDEN, "theirs"),
    ]
    config = "channels:\n" + "".join(channels) + "aliases: {a-hidden: m-hidden}\noverload: {lag: 10}\n"
    async with running(config, tmp_path) as gateway, aiohttp.ClientSession() as session:
        keys = ApiKeys(gateway.service.store)
        _, key = await keys.create("narrow", model_patterns=scope.patterns, channels=scope.channels)
        for call in CALLS:
            for hidden, missing in ((HIDDEN, MISSING), ("a-hidden", "a-absent")):
                status, message = await send(session, gateway.url, call, hidden, key)
                assert (status, message) == (
                    404,
                    (await send(session, gateway.url, call, missing, key))[1].replace(missing, hidden),
                )
                assert hidden in message
                assert all(pattern in message for pattern in scope.patterns)
