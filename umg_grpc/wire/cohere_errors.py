"""Error bodies of the second version of Cohere's API. All of its formats have the same."""

import msgspec

from umg_grpc.base.errors import UmgError
from umg_grpc.wire.chat import errors


def encode_error(error: UmgError, http_status: int) -> bytes:
    """Return the JSON error body: `message`, which Cohere's clients read, and the member `error` of the chat format."""
    message = msgspec.json.encode(errors.message_for_callers(error))
    return b'{"message":%b,%b' % (message, errors.encode_error(error, http_status)[1:])
