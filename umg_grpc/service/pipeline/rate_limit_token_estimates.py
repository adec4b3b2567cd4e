"""Estimates of the tokens of a call before it is sent, for the rate limits of its key. Each takes microseconds."""

from collections.abc import Collection

from umg_grpc.access.key_limits import TokenEstimate
from umg_grpc.operations import UNARY_BY_REQUEST
from umg_grpc.operations.canonical_message_unions import CanonicalRequest
from umg_grpc.service.pipeline import image_call_costs
from umg_grpc.v1 import pb

BYTES_PER_TOKEN = 4
"""Bytes of a token on average, in English text with common vocabularies."""
MEDIA_TOKENS = 1000
"""Tokens counted for one image or document, whose actual number depends on the model."""
UNKNOWN_OUTPUT_TOKENS = 128_000
"""Maximum output tokens assumed for a model whose maximum is not known: that of most large models."""
DEFAULT_OUTPUT_TOKENS = 1000
"""Output tokens counted for a request without an output limit."""


def estimate_tokens(request: CanonicalRequest, model: pb.Model, limit: int | None = None) -> TokenEstimate:
    """Return the estimated input tokens and the maximum output tokens of a request. The maximum is its output limit,
    but at most the model's maximum, so that a high limit does not use up a whole rate limit; and at most `limit`, which
    the gateway sets.
    """
    if not isinstance(request, pb.GenerateRequest):
        if not isinstance(request, pb.GenerateImageRequest):
            return TokenEstimate(unary_bytes(request) // BYTES_PER_TOKEN, 0)
        media_tokens = MEDIA_TOKENS * image_call_costs.input_count(request)
        return TokenEstimate(image_call_costs.text_bytes(request) // BYTES_PER_TOKEN + media_tokens, 0)
    media: list[pb.MediaPart] = []
    for message in request.messages:
        for part in message.parts:
            if part.HasField("text"):
                continue
            if part.HasField("media"):
                media.append(part.media)
            elif part.HasField("tool_result"):
                media += [inner.media for inner in part.tool_result.parts if inner.HasField("media")]
    output = request.max_output_tokens if request.HasField("max_output_tokens") else DEFAULT_OUTPUT_TOKENS
    output = min(output, model.output_token_limit or UNKNOWN_OUTPUT_TOKENS)
    if limit is not None:
        output = min(output, limit)
    tokens = text_bytes(request, media) // BYTES_PER_TOKEN + len(media) * MEDIA_TOKENS
    return TokenEstimate(tokens, output * max(1, request.candidate_count))


def unary_bytes(request: CanonicalRequest) -> int:
    """Return the size in bytes of the request of an operation that is not a text generation, without an input file."""
    name = UNARY_BY_REQUEST[type(request)].file_field
    body_size = len(request.source.body)
    return body_size or request.ByteSize() - (getattr(request, name).ByteSize() if name else 0)


def text_bytes(request: CanonicalRequest, media: Collection[pb.MediaPart] = ()) -> int:
    """Return the size of the request in bytes, without the data of `media` (its media parts). If there is a body of the
    caller, its size is used, since that of a message takes longer to compute.
    """
    body_size = len(request.source.body)
    size = body_size or request.ByteSize()
    if not media:
        return size
    data = sum(len(part.data) for part in media)
    return max(0, size - (data * 4 // 3 if body_size else data))  # a body has it in base64
