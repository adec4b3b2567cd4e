"""Estimates of the tokens of a call before it is made, in microseconds."""

from typing import TypeAlias

from umg_grpc.access.key_limits import TokenEstimate
from umg_grpc.v1 import pb

Request: TypeAlias = pb.GenerateRequest | pb.EmbedRequest | pb.RerankRequest

BYTES_PER_TOKEN = 4
"""Average of English text in common vocabularies."""
MEDIA_TOKENS = 1000
"""Tokens of one image or document, whose actual number depends on the model."""
UNKNOWN_OUTPUT_TOKENS = 128_000
"""Maximum tokens of an answer, for models whose maximum is not known: the maximum of most large models."""
DEFAULT_OUTPUT_TOKENS = 1000
"""Tokens of an answer whose request states no maximum."""


def estimate_tokens(request: Request, model: pb.Model) -> TokenEstimate:
    """Return the estimated tokens of the input, and the maximum tokens of the output.

    The maximum is the caller's, but no more than the model's, so that a high value does not reserve a whole budget.
    """
    body = request.source.body
    size = len(body) or request.ByteSize()  # which encodes the request, and so takes longer than the length of a body
    if not isinstance(request, pb.GenerateRequest):
        return TokenEstimate(size // BYTES_PER_TOKEN, 0)
    count, media_bytes = 0, 0
    for message in request.messages:
        for part in message.parts:
            if not part.HasField("text"):
                for media in _media_of(part):
                    count, media_bytes = count + 1, media_bytes + len(media.data)
    if media_bytes:
        size = max(0, size - (_base64_bytes(media_bytes) if body else media_bytes))
    answer = request.max_output_tokens if request.HasField("max_output_tokens") else DEFAULT_OUTPUT_TOKENS
    answer = min(answer, model.output_token_limit or UNKNOWN_OUTPUT_TOKENS)
    return TokenEstimate(size // BYTES_PER_TOKEN + count * MEDIA_TOKENS, answer * max(1, request.candidate_count))


def _media_of(part: pb.Part) -> list[pb.MediaPart]:
    """Return the media of a part, and of the parts of a tool result."""
    if part.HasField("tool_result"):
        return [inner.media for inner in part.tool_result.parts if inner.HasField("media")]
    return [part.media] if part.HasField("media") else []


def _base64_bytes(size: int) -> int:
    return size * 4 // 3
