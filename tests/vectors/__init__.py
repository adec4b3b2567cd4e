"""Strict fake providers that embed and rerank: real servers, which refuse what the real ones would, and whose vectors
and scores a test can know.
"""

from contextlib import AbstractAsyncContextManager

from tests.vectors.embeddings import Embeddings
from tests.vectors.native import NativeEmbeddings
from tests.vectors.rerank import Jina, RerankV1, RerankV2
from tests.vectors.server import KEY, Provider, serving

EMBEDDING = {"embeddings": Embeddings, "native_embeddings": NativeEmbeddings}
"""By the protocol of a channel."""
RERANK = {"rerank v1": RerankV1, "rerank v2": RerankV2, "jina": Jina}
"""All of one protocol, `rerank`."""


def provider(name: str) -> AbstractAsyncContextManager[Provider]:
    """One of them, by its name in either table."""
    return serving((EMBEDDING | RERANK)[name]())


__all__ = ["EMBEDDING", "KEY", "RERANK", "Provider", "provider"]
