"""Errors of Converse providers: failed calls, by HTTP status, and exceptions in streams."""

import re
from collections.abc import Mapping
from dataclasses import replace

from msgspec import Raw, Struct
from msgspec.json import Decoder

from umg_grpc.base.errors import UmgError
from umg_grpc.wire.core.json_decoding import decode_or_none
from umg_grpc.wire.errors.error_classification import ProviderError, table_for
from umg_grpc.wire.errors.provider_errors import from_provider, read_error

ERROR_TABLE = table_for("converse")
TYPE_HEADER = "x-amzn-errortype"
_NAME = re.compile(r"\w+")


class _Original(Struct, rename="camel"):
    original_message: str = ""


_ORIGINAL = Decoder(_Original)


def decode_error(status: int, headers: Mapping[str, str], body: bytes) -> UmgError:
    """Return the error for a failed call, named by a header (`ValidationException:http://...`) whose URL is ignored."""
    name = _NAME.match(headers.get(TYPE_HEADER, ""))
    return from_provider(
        status, _typed(read_error(body), name[0] if name is not None else ""), headers, table=ERROR_TABLE
    )


def stream_error(exception: str, payload: bytes) -> UmgError:
    """Return the caller's error for an `exception` in a stream. Its message may be that of the server of the model."""
    error = read_error(payload)
    if not error.message and (original := decode_or_none(_ORIGINAL, Raw(payload))) is not None:
        error = replace(error, message=original.original_message)
    return from_provider(200, _typed(error, exception[:1].upper() + exception[1:]), table=ERROR_TABLE)


def _typed(error: ProviderError, name: str) -> ProviderError:
    if not name:
        return error
    if not error.type and error.code is None:
        return replace(error, type=name)
    return replace(error, hints=f"{error.hints} {name}".strip())
