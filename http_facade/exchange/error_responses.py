"""Error responses: their HTTP status and headers, and their JSON body in the caller's format."""

import math
from collections.abc import Callable
from http import HTTPStatus

from aiohttp import hdrs, web

from http_facade.connect import connect_protocol, grpc_web
from http_facade.connect.connect_protocol import CONNECT_PROTOCOL
from http_facade.connect.grpc_web import GRPC_WEB
from umg_grpc.base.errors import UmgError
from umg_grpc.operations.wire_formats_by_name import face_of
from umg_grpc.v1 import pb
from umg_grpc.wire.errors.error_classification import CHANNEL_STATUSES
from umg_grpc.wire.errors.http_status import http_status
from umg_grpc.wire.messages.errors import encode_count_error
from umg_grpc.wire.model_lists import MODEL_LISTS

# SDKs retry 409, 429 and 5xx by themselves; a retry of these reasons fails in the same way.
NOT_RETRYABLE = frozenset(
    {
        pb.ERROR_REASON_QUOTA_EXHAUSTED,
        pb.ERROR_REASON_UPSTREAM_QUOTA_EXHAUSTED,
        pb.ERROR_REASON_ALREADY_EXISTS,
        pb.ERROR_REASON_NOT_IMPLEMENTED,
    }
)


def error_encoder(face: str) -> Callable[[UmgError, int], bytes]:
    """Return the encoder of a format's error bodies: (error, HTTP status) -> body. Raise KeyError if it is unknown."""
    if face == CONNECT_PROTOCOL:
        return connect_protocol.encode_error
    if face == GRPC_WEB:
        return grpc_web.encode_error
    if face == "count_tokens":
        return encode_count_error
    return (face_of(face) or MODEL_LISTS[face]).encode_error


def error_response(error: UmgError, face: str, status: int | None = None) -> web.Response:
    """Return the response to a failed call in the format `face`. `status`: None for that of the error's reason."""
    if status is None and "upgrade" in error.metadata:
        status = HTTPStatus.UPGRADE_REQUIRED
    elif status is None:
        status = (
            connect_protocol.http_status(error) if face in {CONNECT_PROTOCOL, GRPC_WEB} else http_status(error, face)
        )
    headers: dict[str, str] = {hdrs.CONTENT_TYPE: grpc_web.PROTO_TYPE if face == GRPC_WEB else "application/json"}
    if status == 401:
        headers[hdrs.WWW_AUTHENTICATE] = "Bearer"
    if "upgrade" in error.metadata:
        headers[hdrs.UPGRADE] = error.metadata["upgrade"]  # required beside the status (RFC 9110, 15.5.22)
        headers[hdrs.CONNECTION] = "close, upgrade"
    if "allow" in error.metadata:
        headers[hdrs.ALLOW] = error.metadata["allow"]
    if error.reason == pb.ERROR_REASON_RANGE_NOT_SATISFIABLE and "total_bytes" in error.metadata:
        headers[hdrs.CONTENT_RANGE] = f"bytes */{error.metadata['total_bytes']}"
    if "retry_after_seconds" in error.metadata:
        headers[hdrs.RETRY_AFTER] = str(max(1, math.ceil(float(error.metadata["retry_after_seconds"]))))
    if not _is_worth_retrying(error):
        headers["x-should-retry"] = "false"
    return web.Response(status=status, headers=headers, body=error_encoder(face)(error, status))


def _is_worth_retrying(error: UmgError) -> bool:
    if error.reason == pb.ERROR_REASON_RATE_LIMITED:
        return error.retry_after is not None
    if error.reason == pb.ERROR_REASON_UPSTREAM_FAILED:
        return error.metadata.get("upstream_status") not in CHANNEL_STATUSES
    return error.reason not in NOT_RETRYABLE
