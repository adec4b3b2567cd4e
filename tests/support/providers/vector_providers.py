"""Strict fake providers that embed and rerank: real servers, which refuse requests as the real providers do, and whose
vectors and scores a test can compute.
"""

from contextlib import AbstractAsyncContextManager

from tests.support.providers.embeddings import Embeddings
from tests.support.providers.native_embeddings import NativeEmbeddings
from tests.support.providers.rerank import Jina, RerankV1, RerankV2
from tests.support.providers.server import KEY, serve_provider
from tests.support.providers.strict_vector_server import Provider

EMBEDDING = {"embeddings": Embeddings, "native_embeddings": NativeEmbeddings}
"""Protocol of a channel -> the provider's format."""
RERANK = {"rerank v1": RerankV1, "rerank v2": RerankV2, "jina": Jina}
"""Providers of the protocol `rerank`, by name."""


def provider(name: str) -> AbstractAsyncContextManager[Provider]:
    """Return the provider with this name in either table."""
    return serve_provider(Provider((EMBEDDING | RERANK)[name]()))


__all__ = ["EMBEDDING", "KEY", "RERANK", "Provider", "provider"]
