"""Limits on the lengths of texts for the local and the simulated embedding and reranking models."""

from collections.abc import Sequence

from umg_grpc.base.errors import Failure, UmgError
from umg_grpc.knowledge.model_catalogue import describe
from umg_grpc.v1 import pb

VECTOR_DIMENSIONS = 256
"""Length of the model's own vectors."""
LONGEST_TOKEN = 16
"""Maximum characters of one token of the model: a text of n characters has at least n / 16 tokens."""
MAX_TOKENS = 8192
"""Maximum tokens of a text for a model that the catalogue does not list."""
SLOW_BYTES = 64 * 2**10
"""Size of a request in bytes from which encoding it takes a millisecond."""


def max_tokens(model: str) -> int:
    """Return the maximum number of tokens in one text for a model."""
    known = describe(model)
    return known.input_token_limit if known is not None and known.input_token_limit else MAX_TOKENS


def check_characters(texts: Sequence[str], model: str, characters: int, field: str) -> None:
    """Raise UmgError(CONTEXT_TOO_LONG) for a text with too many characters for the model's token limit. This is checked
    before the text is tokenized. `characters`: length of the longest token; `field`: path of a text, with `{}` for its
    position.
    """
    limit = max_tokens(model)
    for position, text in enumerate(texts):
        if len(text) > limit * characters:
            raise too_long(field.format(position), f"{len(text)} characters", model)


def too_long(field: str, length: str, model: str) -> UmgError:
    """Return the error CONTEXT_TOO_LONG for the text at `field`. `length`: in words, for example `9000 tokens`."""
    maximum = max_tokens(model)
    message = f"{field} is too long: {length}, and {model} takes texts of at most {maximum} tokens; split it"
    return UmgError(pb.ERROR_REASON_CONTEXT_TOO_LONG, message, field=field).with_failure(Failure.CONTEXT)
