"""The product between a caller's body and a vendor's, without sockets: codecs, config, router and channel."""

import asyncio
from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

import msgspec

from tests.pairs.vendors.refusal import Json
from umg_grpc.base.errors import UmgError
from umg_grpc.config import parse
from umg_grpc.knowledge.vendor_member_dialects import dialects_at
from umg_grpc.routing import Router
from umg_grpc.upstream.http.embedding_batches import HttpEmbedding
from umg_grpc.upstream.http.provider_call import HttpCall
from umg_grpc.upstream.http.provider_connection import HttpChannel
from umg_grpc.upstream.http.provider_endpoints import ProviderEndpoint, RotatingEndpoints
from umg_grpc.upstream.http.text_generation import HttpText
from umg_grpc.upstream.http1.client import Client
from umg_grpc.upstream.http1.deadlines import Deadlines
from umg_grpc.v1 import pb
from umg_grpc.wire import TEXT_FORMATS
from umg_grpc.wire.embedding_formats import EMBEDDING_FORMATS

BASE_URLS = {
    "azure": "https://acme.openai.azure.com/openai/v1",
    "bedrock-anthropic": "https://bedrock-runtime.us-east-1.amazonaws.com/anthropic/v1",
    "vertex": "https://aiplatform.googleapis.com/v1/projects/p/locations/global/publishers/google",
}
"""Preset -> address, if it differs for each account."""
CONFIG = """\
channels:
  - name: {preset}
    provider: {preset}
    api_key: sk-vendor
"""


class Model(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Model of a vendor: its id at the gateway, and the vendor's own if it differs."""

    vendor: str
    id: str
    model: str = ""
    judged_as: str = ""
    """Model by whose facts it is judged, of an id that the sources do not have; "" for its own."""

    @property
    def is_unknown(self) -> bool:
        """Whether no source has the model: only its series is known to the gateway."""
        return bool(self.judged_as) and self.judged_as not in self.id

    @property
    def own_id(self) -> str:
        """Id by which the vendor judges it."""
        return self.judged_as or self.model or self.id


class Sent(NamedTuple):
    """Request that the gateway sends to a vendor."""

    protocol: str
    body: bytes
    headers: Mapping[str, str]
    dropped: Mapping[str, str | None]
    """Named field -> value that is sent instead, None for a field that is left out."""
    route: str
    """Reason for another protocol than the usual one, "" for the usual one."""
    stops: bool
    """Whether the gateway itself ends the text at the caller's stop sequences."""


def send(model: Model, face: str, body: Json, stream: bool, cache_key: str = "") -> Sent:
    """Return the request to the vendor of a model that the gateway makes of a body of a face. Raise UmgError for a refusal.

    `cache_key`: key of the prompt cache that the gateway made, "" for none.
    """
    codec = TEXT_FORMATS[face]
    given = body if face == "native" else {"model": model.id, **body}
    decoded = codec.decode_request(msgspec.json.encode(given), {}, model.id)
    canonical, streamed, notes = decoded.canonical, decoded.stream, decoded.notes.with_cache_key(cache_key)
    (target,) = _router(model.vendor).channels(model.id)
    text = _text(model.vendor)
    call = text.prepare(canonical, target.model, notes, stream=streamed or stream, quirks=target.quirks)
    report = call.report
    report.rename(lambda name: name if name in notes.uncarried else codec.wire_path(name))
    protocol = call.format.name
    return Sent(
        protocol,
        call.encoded.body,
        {name.lower(): value for name, value in call.encoded.headers.items()},
        report.dropped,
        report.protocol,
        bool(call.encoded.local_stops),
    )


def embed(model: Model, face: str, body: Json) -> Sent:
    """Return the request to the vendor of an embedding model that the gateway makes of a body of a face. Raise UmgError
    for a refusal.
    """
    codec = EMBEDDING_FORMATS[face]
    canonical, notes = codec.decode_request(msgspec.json.encode({"model": model.id, **body}), {}, model.id)
    (target,) = _router(model.vendor).channels(model.id, pb.MODEL_OPERATION_EMBED)
    call = _embedding(model.vendor).prepare(canonical, target.model, notes)
    assert isinstance(call, HttpCall)
    call.report.rename(lambda name: name if name in notes.uncarried else codec.wire_path(name))
    spoken = [name for name in protocols(model.vendor) if name not in TEXT_FORMATS]
    protocol = codec.protocol if codec.protocol in spoken else spoken[0]
    headers = {name.lower(): value for name, value in call.encoded.headers.items()}
    return Sent(protocol, call.encoded.body, headers, call.report.dropped, "", stops=False)


def protocols(vendor: str) -> tuple[str, ...]:
    """Return the text protocols of a vendor's preset."""
    (channel,) = parse(_config(vendor), "channels.yaml", {}).channels
    known = {*TEXT_FORMATS, *(codec.protocol for codec in EMBEDDING_FORMATS.values())}
    return tuple(name for name in channel.protocols if name in known)


def base_url(vendor: str) -> str:
    """Return the address of a vendor's preset."""
    (channel,) = parse(_config(vendor), "channels.yaml", {}).channels
    return channel.base_url


def base_urls(vendor: str) -> Mapping[str, str]:
    """Return the addresses of the formats that a vendor's preset serves elsewhere."""
    (channel,) = parse(_config(vendor), "channels.yaml", {}).channels
    return channel.base_urls


@cache
def _router(vendor: str) -> Router:
    return Router(parse(_config(vendor), "channels.yaml", {}))


@cache
def _text(vendor: str) -> HttpText:
    return HttpText(_channel(), [TEXT_FORMATS[name] for name in protocols(vendor) if name in TEXT_FORMATS])


@cache
def _embedding(vendor: str) -> HttpEmbedding:
    codecs = [codec for codec in EMBEDDING_FORMATS.values() if codec.protocol in protocols(vendor)]
    return HttpEmbedding(_channel(), codecs, dialects=dialects_at(base_url(vendor)))


@cache
def _channel() -> HttpChannel:
    endpoints = RotatingEndpoints([ProviderEndpoint("https://vendor.invalid", {}, "sk-vendor")])
    return HttpChannel(asyncio.run(_client()), endpoints, Deadlines(1, 1, 1, 1))


async def _client() -> Client:
    return Client()


def _config(vendor: str) -> str:
    config = CONFIG.format(preset=vendor)
    if vendor in BASE_URLS:
        config += f"    base_url: {BASE_URLS[vendor]}\n"
    if vendor == "vertex":
        config += "    auth: {kind: bearer}\n"
    return config


__all__ = ["Model", "Sent", "UmgError", "base_url", "base_urls", "embed", "protocols", "send"]
