"""JSON bodies of the embeddings of Ollama's API as typed structs. `None` means absent, and so does an explicit null."""

from msgspec import Raw, Struct

from umg_grpc.wire.core.json_decoding import ABSENT_MEMBER, Whole
from umg_grpc.wire.ollama.schema import ModelName


class EmbedBody(Struct, kw_only=True):
    """Body of `POST /api/embed`."""

    model: ModelName
    input: str | list[str] | None = None
    truncate: bool | None = None
    dimensions: Whole | None = None
    options: Raw = ABSENT_MEMBER
    keep_alive: Raw = ABSENT_MEMBER


class EmbeddingsBody(Struct, kw_only=True):
    """Body of `POST /api/embeddings`, the older path for one text."""

    model: ModelName
    prompt: str | None = None
    options: Raw = ABSENT_MEMBER
    keep_alive: Raw = ABSENT_MEMBER
