"""How long texts may be, and vectors are."""

from collections.abc import Sequence

from umg_grpc.catalogue import describe
from umg_grpc.errors import Failure, UmgError
from umg_grpc.v1 import pb

DIMENSIONS = 256
"""Of the model's own vectors."""
LONGEST_TOKEN = 16
"""Characters of a token of the model: a text of n has at least n / 16."""
MOST_TOKENS = 8192
"""Of a text for a model that the catalogue does not know."""


def most_tokens(model: str) -> int:
    """Of one text."""
    known = describe(model)
    return known.input_token_limit if known is not None and known.input_token_limit else MOST_TOKENS


def refuse_endless(texts: Sequence[str], model: str, characters: int, field: str) -> None:
    """Raises UmgError(CONTEXT_TOO_LONG) for a text that is too long whatever it says, `characters` being those of the
    longest token: such a text is not even read. `field` has a place for its position.
    """
    limit = most_tokens(model)
    for position, text in enumerate(texts):
        if len(text) > limit * characters:
            raise too_long(field.format(position), f"{len(text)} characters", model)


def too_long(field: str, length: str, model: str) -> UmgError:
    """For a text of `length` (`9000 tokens`)."""
    most = most_tokens(model)
    message = f"{field} is too long: {length}, and {model} takes texts of at most {most} tokens; split it"
    return UmgError(pb.ERROR_REASON_CONTEXT_TOO_LONG, message, field=field).of(Failure.CONTEXT)
