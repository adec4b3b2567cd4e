"""Estimates of the tokens of a call before it is made, in microseconds."""

from collections.abc import Iterable, Iterator
from typing import TypeAlias

from umg_grpc.access.key_limits import TokenEstimate
from umg_grpc.v1 import pb

Request: TypeAlias = pb.GenerateRequest | pb.EmbedRequest | pb.RerankRequest

BYTES_PER_TOKEN = 4
"""Average of English text in common vocabularies."""
MEDIA_TOKENS = 1000
"""Tokens of one image or document, of which only the model knows the actual number."""
UNKNOWN_OUTPUT_TOKENS = 128_000
"""Most tokens of an answer of a model whose maximum is not known; that of most large models."""
DEFAULT_OUTPUT_TOKENS = 1000
"""Tokens of an answer whose request states no maximum."""


def _all_parts(parts: Iterable[pb.Part]) -> Iterator[pb.Part]:
    """Yield the parts, and those of the tool results among them."""
    for part in parts:
        yield part
        if part.HasField("tool_result"):
            yield from part.tool_result.parts


def estimate_tokens(request: Request, model: pb.Model) -> TokenEstimate:
    """Return the estimated tokens of the request, and the maximum of its answer: a caller may state a maximum far above
    that of the model, which must not reserve a whole budget.
    """
    size = request.ByteSize() - len(request.source.body)
    if not isinstance(request, pb.GenerateRequest):
        return TokenEstimate(size // BYTES_PER_TOKEN, 0)
    media = [part.media for message in request.messages for part in _all_parts(message.parts) if part.HasField("media")]
    size -= sum(len(each.data) for each in media)
    answer = request.max_output_tokens if request.HasField("max_output_tokens") else DEFAULT_OUTPUT_TOKENS
    answer = min(answer, model.output_token_limit or UNKNOWN_OUTPUT_TOKENS)
    input_tokens = size // BYTES_PER_TOKEN + len(media) * MEDIA_TOKENS
    return TokenEstimate(input_tokens, answer * max(1, request.candidate_count))
