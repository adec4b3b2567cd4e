"""Strict fake providers that embed and rerank: real servers, which refuse requests as the real providers do, and whose
vectors and scores a test can compute.
"""

from contextlib import AbstractAsyncContextManager

from tests.pairs.table import strict_fake
from tests.support.providers.server import KEY, serve_provider
from tests.support.providers.strict_vector_server import Provider


def provider(name: str) -> AbstractAsyncContextManager[Provider]:
    return serve_provider(Provider(strict_fake(name)()))


__all__ = ["KEY", "Provider", "provider"]
