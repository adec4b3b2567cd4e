"""Strict fake providers of the text formats: real servers that refuse requests that the provider's own SDK types do not
allow, answer by scenario, and verify the reasoning state that comes back.
"""

from contextlib import AbstractAsyncContextManager

from tests.pairs.table import strict_fake
from tests.support.providers.server import KEY
from tests.support.providers.strict_text_server import Provider, text_provider


def provider(name: str, cut: int = 0) -> AbstractAsyncContextManager[Provider]:
    """Return a running fake provider of a format. `cut`: size in bytes of the pieces of its streams."""
    return text_provider(strict_fake(name)(), cut)


__all__ = ["KEY", "Provider", "provider", "text_provider"]
