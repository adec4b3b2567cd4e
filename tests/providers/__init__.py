"""Strict fake providers: a real server per text format, which refuses what the provider's own SDK types do not allow,
answers by scenario, and verifies the reasoning state that comes back.
"""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

from tests.providers.chat import Chat
from tests.providers.messages import Messages
from tests.providers.native import Native
from tests.providers.responses import Responses
from tests.providers.server import KEY, Provider, Speech, serving

FORMATS: dict[str, Callable[[], Speech]] = {
    "chat": Chat,
    "responses": Responses,
    "messages": Messages,
    "native": Native,
}


def provider(name: str, cut: int = 0) -> AbstractAsyncContextManager[Provider]:
    """The provider of a format; `cut` writes its streams in pieces of so many bytes."""
    return serving(FORMATS[name](), cut)


__all__ = ["FORMATS", "KEY", "Native", "Provider", "provider", "serving"]
