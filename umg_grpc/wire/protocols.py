"""Names of the providers' protocols, and the properties of them that the config needs, so that a command which reads a
config imports no codec. The codecs take the properties from here; a test compares the names with the tables of codecs.
"""

from collections.abc import Mapping
from types import MappingProxyType

TEXT_PROTOCOLS = ("chat", "responses", "messages", "native")
EMBEDDING_PROTOCOLS = ("embeddings", "native_embeddings")
RERANK_PROTOCOLS = ("rerank",)
IMAGE_PROTOCOLS = ("images", "umg_images", "native_images", "ark_images", "dashscope_images")
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
"""Other name in lower case -> protocol."""

DEFAULT_KEY_HEADER = "authorization"
KEY_HEADERS: Mapping[str, str] = MappingProxyType(
    {
        "messages": "x-api-key",
        **dict.fromkeys(("native", "native_embeddings", "native_images", "vidB"), "x-goog-api-key"),
    }
)
"""Protocol -> header that carries the key; `DEFAULT_KEY_HEADER` for all others."""
WITH_CACHE_MARKS = ("messages",)
"""Text protocols in which a request marks the parts that the provider should cache."""
