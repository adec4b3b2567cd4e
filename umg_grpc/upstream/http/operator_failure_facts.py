"""Facts about a failed call for operators (address, status, key), and masking of secrets in error messages."""

import re
from collections.abc import Mapping
from urllib.parse import urlsplit

from umg_grpc.base.errors import UmgError
from umg_grpc.base.provider_failure import MAX_MESSAGE_CHARACTERS, FailureKind, ProviderFailure
from umg_grpc.operations.provider_call_paths import right_base_url
from umg_grpc.upstream.http.provider_endpoints import ProviderEndpoint
from umg_grpc.upstream.http1.response import NO_HEADERS
from umg_grpc.wire.errors.error_message_redaction import clean
from umg_grpc.wire.errors.failure_kinds import Evidence, kind_of
from umg_grpc.wire.errors.secret_masking import SecretMask

TAIL_CHARACTERS = 4
MIN_KEY_CHARACTERS = 12
"""Characters that a key must have for its last ones to be shown in facts for operators."""
REQUEST_ID_HEADERS = ("x-request-id", "request-id", "x-goog-request-id", "apim-request-id", "x-amzn-requestid")
REQUEST_ID_KEYS = frozenset(name.encode() for name in REQUEST_ID_HEADERS)
_REQUEST_ID = re.compile(r"[\w.:/+=-]{1,128}", re.ASCII)
_MEDIA_TYPE = re.compile(r"[\w.+-]{1,60}/[\w.+-]{1,60}", re.ASCII)


def add_facts(
    error: UmgError,
    endpoint: ProviderEndpoint,
    secrets: SecretMask,
    path: str,
    status: int = 0,
    headers: Mapping[str, str] = NO_HEADERS,
) -> None:
    """Add facts for operators (address, status, key) to the error of a failed call, and mask the channel's secrets in
    its message, which callers see. `path`: below the base URL; `status`, `headers`: 0 and none without a response.
    """
    mask = secrets.text
    error.message, error.cause = mask(error.message), mask(error.cause)
    for name, value in error.metadata.items():
        error.metadata[name] = mask(value)
    if error.failure is None:  # the caller's own deadline, or a limit of the gateway: the provider did not fail
        return
    media_type = headers.get("content-type", "").partition(";")[0].strip().lower()
    page = media_type == "text/html"
    facts = error.facts or ProviderFailure(kind_of(Evidence(error.reason, status, page=page)))
    address = urlsplit(endpoint.base_url + path)
    error.facts = facts._replace(
        status=facts.status or status,
        code=mask(facts.code),
        message=clean(mask(facts.message or error.cause or error.message), MAX_MESSAGE_CHARACTERS),
        request_id=request_id_of(headers, secrets),
        host=address.netloc.rpartition("@")[2],
        path=address.path,
        content_type=media_type if media_type != "application/json" and _MEDIA_TYPE.fullmatch(media_type) else "",
        right_base_url=(
            right_base_url(endpoint.base_url, path) or "" if facts.kind is FailureKind.WRONG_ADDRESS else ""
        ),
        key_tail=endpoint.secret[-TAIL_CHARACTERS:] if len(endpoint.secret) >= MIN_KEY_CHARACTERS else "",
    )


def request_id_of(headers: Mapping[str, str], secrets: SecretMask) -> str:
    """Return the request id in the provider's response headers; "" if there is none or it looks like no id."""
    for name in REQUEST_ID_HEADERS:
        if (value := headers.get(name)) is not None and _REQUEST_ID.fullmatch(value):
            return secrets.text(value)
    return ""
