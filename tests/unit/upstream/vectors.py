"""Helpers of the tests of vectors: the real model, loaded once, and short forms of requests."""

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from umg_grpc.upstream.local.wordllama import WordLlamaEngine
from umg_grpc.upstream.local.wordllama.model import Vectors, WordLlamaModel, load
from umg_grpc.upstream.upstream_interfaces import UnaryUpstream
from umg_grpc.v1 import pb

Embedder = UnaryUpstream[pb.EmbedRequest, pb.EmbedResponse]
Reranker = UnaryUpstream[pb.RerankRequest, pb.RerankResponse]
SECONDS = 60

shared_model = cache(load)


def loaded_engine() -> WordLlamaEngine:
    return WordLlamaEngine(shared_model)


def embed_request(*texts: str, **fields: Any) -> pb.EmbedRequest:
    return pb.EmbedRequest(inputs=[pb.EmbeddingInput(text=text) for text in texts], **fields)


def rerank_request(query: str, *documents: str, **fields: Any) -> pb.RerankRequest:
    return pb.RerankRequest(query=query, documents=[pb.RerankDocument(text=text) for text in documents], **fields)


def rows(response: pb.EmbedResponse) -> Vectors:
    return np.stack([np.frombuffer(one.values, "<f4") for one in response.embeddings])


async def vectors_of(upstream: Embedder, model: str, texts: Sequence[str], **fields: Any) -> Vectors:
    return rows(await upstream.prepare(embed_request(*texts, **fields), model).send(SECONDS))


def model() -> WordLlamaModel:
    """Return the model, for comparisons without an engine."""
    return shared_model()
