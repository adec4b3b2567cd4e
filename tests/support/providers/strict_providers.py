"""Strict fake providers of the text formats: real servers that refuse requests that the provider's own SDK types do not
allow, answer by scenario, and verify the reasoning state that comes back.
"""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

from tests.support.providers.chat import Chat
from tests.support.providers.messages import Messages
from tests.support.providers.native import Native
from tests.support.providers.responses import Responses
from tests.support.providers.server import KEY
from tests.support.providers.strict_text_server import Provider, TextFormat, text_provider

FORMATS: dict[str, Callable[[], TextFormat]] = {
    "chat": Chat,
    "responses": Responses,
    "messages": Messages,
    "native": Native,
}


def provider(name: str, cut: int = 0) -> AbstractAsyncContextManager[Provider]:
    """Return a running fake provider of a format. `cut`: size in bytes of the pieces of its streams."""
    return text_provider(FORMATS[name](), cut)


__all__ = ["FORMATS", "KEY", "Native", "Provider", "provider", "text_provider"]
