"""Random calls of all operations, and their outcomes as the caller sees them."""

import asyncio
import random
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import aiohttp
import grpc.aio

from tests.proofs.ledger.provider import OWN_TOKENS
from umg_grpc.v1 import pb, rpc

CHAT, HEDGED, EMBED, RERANK, IMAGE = "chat-model", "hedged-model", "embedding-model", "rerank-model", "image-model"
MAX_TOKENS, MAX_IMAGES = 30, 4


class Outcome(Enum):
    ANSWERED = "answered"
    FREE = "counted or rejected"  # nothing is sent to a provider
    CALLER_LEFT = "left by the caller"
    REFUSED = "refused"
    FAILED = "failed after a part of the response"
    BROKEN = "cut off by a kill"
    UNSENT = "no gateway"


@dataclass(frozen=True)
class Call:
    call_id: str
    kind: str
    """Name in `KINDS`."""
    model: str
    output_tokens: int
    """Tokens of the response: its maximum, which the provider uses up, if there is one; 0 for vectors and images."""
    leaves: bool
    """Whether the caller leaves before the end of the response."""
    images: int = 0
    """Number of requested images, of which the provider may make fewer."""

    @property
    def has_maximum(self) -> bool:
        """Whether the request states the maximum of the response, if it has one."""
        return self.kind not in OPEN_KINDS


@dataclass(frozen=True)
class Made:
    call: Call
    key: int
    outcome: Outcome


OPEN_KINDS = ("open", "open-stream")
KINDS = (
    *OPEN_KINDS,
    "chat",
    "chat-stream",
    "responses",
    "messages",
    "messages-stream",
    "native",
    "grpc",
    "embed",
    "rerank",
    "image",
)
FREE_KINDS = ("count", "unknown")
FIXED_TOKENS = {"open": OWN_TOKENS, "open-stream": OWN_TOKENS, "embed": 0, "rerank": 0, "image": 0}
"""Tokens of the responses whose request has no maximum."""


def random_call(
    chance: random.Random, call_id: str, *, kinds: Sequence[str] = KINDS + FREE_KINDS, leaving: float = 0.1
) -> Call:
    """Return the next call of a caller. `leaving`: share of the calls that their callers leave."""
    kind = chance.choice(kinds)
    model = {"embed": EMBED, "rerank": RERANK, "image": IMAGE}.get(kind) or chance.choice([CHAT, CHAT, CHAT, HEDGED])
    tokens = FIXED_TOKENS[kind] if kind in FIXED_TOKENS else chance.randint(1, MAX_TOKENS)
    leaves, images = (
        kind in KINDS and chance.random() < leaving,
        chance.randint(1, MAX_IMAGES) if kind == "image" else 0,
    )
    return Call(call_id, kind, model, tokens, leaves=leaves, images=images)


async def make(call: Call, http: str, address: str, key: str, session: aiohttp.ClientSession) -> Outcome:
    seconds = 0.005 * (1 + len(call.call_id) % 4) if call.leaves else 60.0
    try:
        async with asyncio.timeout(seconds):
            made = over_grpc(call, address, key) if call.kind == "grpc" else _over_http(call, http, key, session)
            return await made
    except TimeoutError:
        assert call.leaves, f"{call} is not answered"
        return Outcome.CALLER_LEFT
    except aiohttp.ClientConnectorError:
        return Outcome.UNSENT
    except aiohttp.ClientError:
        return Outcome.BROKEN


async def _over_http(call: Call, url: str, key: str, session: aiohttp.ClientSession) -> Outcome:
    path, body = request_of(call)
    headers = {"authorization": f"Bearer {key}", "x-request-id": call.call_id}
    async with session.post(url + path, json=body, headers=headers) as answer:
        text = await answer.text()
        if answer.status != 200:
            return Outcome.FREE if call.kind == "unknown" else Outcome.REFUSED
    if call.kind == "count":
        return Outcome.FREE
    return Outcome.ANSWERED if is_complete(call, text) else Outcome.FAILED


def is_complete(call: Call, text: str) -> bool:
    """Return whether the body of a successful answer has its end."""
    return not call.kind.endswith("-stream") or "[DONE]" in text or "message_stop" in text


async def over_grpc(call: Call, address: str, key: str) -> Outcome:
    prompt = pb.Message(role=pb.ROLE_USER, parts=[pb.Part(text=pb.TextPart(text=_prompt(call)))])
    request = pb.GenerateRequest(model=call.model, messages=[prompt], max_output_tokens=call.output_tokens)
    metadata = [("authorization", f"Bearer {key}"), ("x-request-id", call.call_id)]
    async with grpc.aio.insecure_channel(address) as channel:
        try:
            await rpc.GenerationServiceStub(channel).Generate(request, metadata=metadata)
        except grpc.aio.AioRpcError as error:
            if error.trailing_metadata() and "x-request-id" in dict(error.trailing_metadata() or ()):
                return Outcome.REFUSED
            return Outcome.BROKEN
    return Outcome.ANSWERED


def _prompt(call: Call) -> str:
    return f"{call.call_id}: tell me a story of thirty words, and then another one that is not the same"


def request_of(call: Call) -> tuple[str, dict[str, Any]]:
    text, tokens = _prompt(call), call.output_tokens
    model = "no-such-model" if call.kind == "unknown" else call.model
    messages = [{"role": "user", "content": text}]
    stream = call.kind.endswith("-stream")
    match call.kind.removesuffix("-stream"):
        case "open":
            return "/v1/chat/completions", _streamed({"model": model, "messages": messages}, stream=stream)
        case "chat" | "unknown":
            return "/v1/chat/completions", _streamed(
                {"model": model, "messages": messages, "max_tokens": tokens}, stream=stream
            )
        case "responses":
            return "/v1/responses", {"model": model, "input": text, "max_output_tokens": tokens, "store": False}
        case "messages":
            return "/v1/messages", _streamed(
                {"model": model, "messages": messages, "max_tokens": tokens}, stream=stream
            )
        case "count":
            return "/v1/messages/count_tokens", {"model": model, "messages": messages}
        case "native":
            body = {"contents": [{"parts": [{"text": text}]}], "generationConfig": {"maxOutputTokens": tokens}}
            return f"/v1beta/models/{model}:generateContent", body
        case "embed":
            return "/v1/embeddings", {"model": model, "input": text}
        case "rerank":
            return "/v1/rerank", {"model": model, "query": text, "documents": ["one"]}
        case "image":
            return "/v1/images/generations", {"model": model, "prompt": text, "n": call.images}
        case _:
            raise AssertionError(call.kind)


def _streamed(body: dict[str, Any], *, stream: bool) -> dict[str, Any]:
    return {**body, "stream": True} if stream else body
