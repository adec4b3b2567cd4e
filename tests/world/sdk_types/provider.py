"""A provider of any text format that records the bodies that it receives, and gives short answers."""

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any

from tests.support.providers.server import RecordingProvider, serve_provider

USAGE = {"input_tokens": 1, "output_tokens": 1}
ANSWERS: Mapping[str, Mapping[str, Any]] = {
    "/chat/completions": {
        "id": "c1",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "ok"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
    },
    "/responses": {"id": "resp_1", "object": "response", "model": "m", "status": "completed", "output": []}
    | {"created_at": 1, "usage": USAGE | {"total_tokens": 2}},
    "/messages": {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "usage": USAGE}
    | {"content": [{"type": "text", "text": "ok"}], "stop_reason": "end_turn", "stop_sequence": None},
    ":generateContent": {
        "candidates": [{"content": {"role": "model", "parts": [{"text": "ok"}]}, "finishReason": "STOP"}],
        "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2},
    },
    "/embeddings": {"object": "list", "model": "m", "data": [{"object": "embedding", "index": 0, "embedding": [1.0]}]}
    | {"usage": {"prompt_tokens": 1, "total_tokens": 1}},
    ":batchEmbedContents": {"embeddings": [{"values": [1.0]}]},
}


def answering_provider() -> AbstractAsyncContextManager[RecordingProvider]:
    """Return the provider, which records the bodies that it receives."""
    return serve_provider(
        RecordingProvider(lambda request: dict(next(ANSWERS[end] for end in ANSWERS if request.path.endswith(end))))
    )
