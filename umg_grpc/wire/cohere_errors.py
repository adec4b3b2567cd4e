"""Error bodies of the second version of Cohere's API, which all of its formats have."""

import msgspec

from umg_grpc.base.errors import UmgError
from umg_grpc.wire.chat import errors


def encode_error(error: UmgError, http_status: int) -> bytes:
    """Return the JSON error body: the member `message`, which its clients read, and the member `error` of chat."""
    message = msgspec.json.encode(errors.message_for_callers(error))
    return b'{"message":%b,%b' % (message, errors.encode_error(error, http_status)[1:])
