"""Names of the providers' protocols, and the properties of them that a config needs, so that a command that reads a
config imports no codec. The codecs take the properties from here; a test compares the names with the tables of codecs.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

DEFAULT_KEY_HEADER = "authorization"


@dataclass(frozen=True)
class TextProtocol:
    """Properties of a text format that a config needs, for formats that callers and providers share."""

    codec: str
    """Location of the `TextFormat` as `module:name`, for `pkgutil.resolve_name`."""
    key_header: str = DEFAULT_KEY_HEADER
    """Header that carries a provider's key."""
    has_cache_marks: bool = False
    """Whether requests of the format mark the parts that the provider should cache (`cache_control`)."""


TEXT_PROTOCOLS = {
    "chat": TextProtocol("umg_grpc.wire.chat:CHAT"),
    "responses": TextProtocol("umg_grpc.wire.responses:RESPONSES"),
    "messages": TextProtocol("umg_grpc.wire.messages:MESSAGES", key_header="x-api-key", has_cache_marks=True),
    "native": TextProtocol("umg_grpc.wire.native:NATIVE", key_header="x-goog-api-key"),
}
"""Name of a text format -> its properties."""
EMBEDDING_PROTOCOLS = ("embeddings", "native_embeddings")
RERANK_PROTOCOLS = ("rerank",)
IMAGE_PROTOCOLS = ("images", "umg_images", "native_images", "ark_images", "dashscope_images")
REMIX_PROTOCOLS = ("vidA", "umg_video")
"""Video protocols of providers that change a finished video."""
VIDEO_PROTOCOLS = ("vidA", "vidB", "vidC", "vidD", "vidE", "vidF", "vidG", "umg_video")
OTHER_NAMES: Mapping[str, str] = MappingProxyType(
    {
        "chat_completions": "chat",
        "chat-completions": "chat",
        "completions": "chat",
        "claude": "messages",
        "generatecontent": "native",
        "google": "native",
        "embed": "embeddings",
        "reranker": "rerank",
    }
)
"""Alternative name in lower case, as operators write it in a config -> name of the protocol."""

KEY_HEADERS: Mapping[str, str] = MappingProxyType(
    dict.fromkeys(("native_embeddings", "native_images", "vidB"), "x-goog-api-key")
)
"""Protocol of another operation -> header that carries the key; `DEFAULT_KEY_HEADER` for all others."""


def key_header(protocol: str) -> str:
    """Return the HTTP header for a provider's key in this protocol, for a channel whose config sets no `auth`."""
    if protocol in TEXT_PROTOCOLS:
        return TEXT_PROTOCOLS[protocol].key_header
    return KEY_HEADERS.get(protocol, DEFAULT_KEY_HEADER)


def has_cache_marks(protocol: str) -> bool:
    """Return whether requests of this protocol mark the parts that the provider should cache (`cache_control`); False
    for protocols that are no text formats.
    """
    return protocol in TEXT_PROTOCOLS and TEXT_PROTOCOLS[protocol].has_cache_marks
