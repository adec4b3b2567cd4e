"""Table of faces and providers. A new face or provider is a row here, and a case of every test that takes its parameters
from the table: all tests of this room, and loads, agents and chains of other rooms.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from pkgutil import resolve_name
from typing import Any

import pytest

from tests.support.callers import text_format_clients as clients
from tests.support.callers.text_format_clients import TextClient

Json = dict[str, Any]


class Kind(Enum):
    """Operation of a face or of a provider."""

    TEXT = auto()
    EMBEDDING = auto()
    RERANKING = auto()
    IMAGE = auto()
    VIDEO = auto()


@dataclass(frozen=True)
class Face:
    """Face of the gateway, as the callers of the tests name it."""

    name: str
    kind: Kind
    format: str
    """Name of its codec."""
    client: TextClient | None = None
    """Plain client. Faces of vectors have one for all: `tests.support.callers.vector_callers`."""
    body: Json | None = None
    """Smallest body, of a face of text."""


@dataclass(frozen=True)
class Provider:
    """Provider of a protocol. Several may have the same one, each with rules of its own."""

    name: str
    kind: Kind
    protocol: str
    """Protocol of a channel to it."""
    fake: str = ""
    """Location of its strict fake as `module:name` below `tests.support.providers`. Most import an SDK of a vendor, which
    takes seconds. "" for a provider that is another gateway of this project.
    """
    root: str = "/v1"
    """Beginning of its paths, the end of the base URL of a channel."""
    model: str = "m"
    """Id of a model there. Requests of some formats depend on its maker."""


QUESTION = "Hi"
TURN = {"role": "user", "content": QUESTION}
FACES = (
    Face("chat", Kind.TEXT, "chat", clients.CHAT, {"model": "m", "messages": [TURN]}),
    Face("responses", Kind.TEXT, "responses", clients.RESPONSES, {"model": "m", "input": [TURN]}),
    Face("messages", Kind.TEXT, "messages", clients.MESSAGES, {"model": "m", "max_tokens": 5000, "messages": [TURN]}),
    Face(
        "native", Kind.TEXT, "native", clients.NATIVE, {"contents": [{"role": "user", "parts": [{"text": QUESTION}]}]}
    ),
    Face("ollama_chat", Kind.TEXT, "ollama_chat", clients.OLLAMA_CHAT, {"model": "m", "messages": [TURN]}),
    Face("ollama_generate", Kind.TEXT, "ollama_generate", clients.OLLAMA_GENERATE, {"model": "m", "prompt": QUESTION}),
    Face("cohere", Kind.TEXT, "cohere", clients.COHERE, {"model": "m", "messages": [TURN]}),
    Face("embeddings", Kind.EMBEDDING, "embeddings"),
    Face("embeddings, base64", Kind.EMBEDDING, "embeddings"),
    Face("native_embedding", Kind.EMBEDDING, "native_embedding"),
    Face("native_embeddings", Kind.EMBEDDING, "native_embeddings"),
    Face("rerank", Kind.RERANKING, "rerank"),
    Face("rerank_v2", Kind.RERANKING, "rerank_v2"),
)
PROVIDERS = (
    Provider("chat", Kind.TEXT, "chat", "chat:Chat"),
    Provider("responses", Kind.TEXT, "responses", "responses:Responses"),
    Provider("messages", Kind.TEXT, "messages", "messages:Messages"),
    Provider("native", Kind.TEXT, "native", "native:Native", root="/v1beta"),
    Provider("converse", Kind.TEXT, "converse", "converse:Converse", root="", model="anthropic.m"),
    Provider("embeddings", Kind.EMBEDDING, "embeddings", "embeddings:Embeddings"),
    Provider("native_embeddings", Kind.EMBEDDING, "native_embeddings", "native_embeddings:NativeEmbeddings"),
    Provider("vertex_embeddings", Kind.EMBEDDING, "vertex_embeddings", "vertex_embeddings:VertexEmbeddings"),
    Provider("bedrock_embeddings", Kind.EMBEDDING, "bedrock_embeddings", "bedrock_vectors:BedrockEmbeddings"),
    Provider("rerank v1", Kind.RERANKING, "rerank", "rerank:RerankV1"),
    Provider("rerank v2", Kind.RERANKING, "rerank", "rerank:RerankV2"),
    Provider("jina", Kind.RERANKING, "rerank", "rerank:Jina"),
    Provider("bedrock_rerank", Kind.RERANKING, "bedrock_rerank", "bedrock_vectors:BedrockRerank"),
    Provider("images", Kind.IMAGE, "images", "images.openai:OpenaiImages"),
    Provider("umg_images", Kind.IMAGE, "umg_images"),
    Provider("native_images", Kind.IMAGE, "native_images", "images.native:NativeImages"),
    Provider("ark_images", Kind.IMAGE, "ark_images", "images.ark:ArkImages"),
    Provider("dashscope_images", Kind.IMAGE, "dashscope_images", "images.dashscope:DashscopeImages"),
    Provider("vidA", Kind.VIDEO, "vidA", "video_a:VideoObjectProvider"),
    Provider("vidB", Kind.VIDEO, "vidB", "video_b:OperationProvider"),
    Provider("vidC", Kind.VIDEO, "vidC", "video_c:TaskApiProvider"),
    Provider("vidD", Kind.VIDEO, "vidD", "video_d:ContentTaskProvider"),
    Provider("vidE", Kind.VIDEO, "vidE", "video_e:FamilyEProvider"),
    Provider("vidF", Kind.VIDEO, "vidF", "video_f:SignedProvider"),
    Provider("vidG", Kind.VIDEO, "vidG", "video_g:TwoVersionProvider"),
    Provider("umg_video", Kind.VIDEO, "umg_video"),
)


def names_of(kind: Kind) -> tuple[str, ...]:
    """Return the names of the providers of a kind that have a strict fake."""
    return tuple(row.name for row in PROVIDERS if row.kind is kind and row.fake)


def protocols_of(*kinds: Kind) -> tuple[str, ...]:
    """Return the protocols of the providers of some kinds."""
    return tuple(dict.fromkeys(row.protocol for row in PROVIDERS if row.kind in kinds))


def protocol_of(name: str) -> str:
    """Return the protocol of a provider."""
    [protocol] = (row.protocol for row in PROVIDERS if row.name == name)
    return protocol


def strict_fake(name: str) -> Callable[..., Any]:
    """Return the class of the strict fake of a provider."""
    [fake] = (row.fake for row in PROVIDERS if row.name == name)
    made: Callable[..., Any] = resolve_name(f"tests.support.providers.{fake}")
    return made


LEAST: dict[str, Json] = {row.name: row.body for row in FACES if row.body is not None}
"""Face of text -> its smallest body."""
TEXT_CLIENTS = {row.name: row.client for row in FACES if row.client is not None}
"""All faces of text."""
TEXT_FACES = {name: client for name, client in TEXT_CLIENTS.items() if name in protocols_of(Kind.TEXT)}
"""Faces of text whose format providers have, too, so that the product decodes their answers. The plain clients of the
others read theirs.
"""
EMBEDDING_FACES = tuple(row.name for row in FACES if row.kind is Kind.EMBEDDING)
RERANK_FACES = tuple(row.name for row in FACES if row.kind is Kind.RERANKING)
STRICT_PROVIDERS = names_of(Kind.TEXT)
"""All providers of text."""
TEXT_PROVIDERS = tuple(name for name in STRICT_PROVIDERS if name in TEXT_FACES)
"""Providers of text whose format callers have, too, so that a gateway or an SDK of callers can take their place."""
STRICT_ROOTS = {row.name: row.root for row in PROVIDERS if row.name in STRICT_PROVIDERS}
"""Provider of text -> the beginning of its paths."""
STRICT_MODELS = {row.name: row.model for row in PROVIDERS if row.name in STRICT_PROVIDERS}
"""Provider of text -> the id of a model there."""
ROOTS = {name: STRICT_ROOTS[name] for name in TEXT_PROVIDERS}
"""The same of the providers whose format callers have, too."""
EMBEDDING_PROVIDERS = names_of(Kind.EMBEDDING)
RERANK_PROVIDERS = names_of(Kind.RERANKING)
IMAGE_PROVIDERS = names_of(Kind.IMAGE)

every_face = pytest.mark.parametrize("face", TEXT_FACES)
every_upstream = pytest.mark.parametrize("upstream", TEXT_PROVIDERS)
every_strict_provider = pytest.mark.parametrize("upstream", STRICT_PROVIDERS)
