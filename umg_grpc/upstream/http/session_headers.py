"""Headers by which client, gateway and provider keep a session together. They are no part of the wire format."""

from collections.abc import Mapping, Sequence

from msgspec import structs

from umg_grpc.knowledge.model_quirk_definitions import Quirks
from umg_grpc.knowledge.vendor_client_headers import is_sendable, request_names, response_names
from umg_grpc.upstream.http1.response import Headers
from umg_grpc.v1 import pb
from umg_grpc.wire.errors.secret_masking import SecretMask
from umg_grpc.wire.facts_beside_request import RequestNotes
from umg_grpc.wire.text_format_interface import UpstreamRequest


def with_relayed(
    encoded: UpstreamRequest,
    request: pb.GenerateRequest,
    model: str,
    protocol: str,
    notes: RequestNotes,
    quirks: Quirks,
) -> UpstreamRequest:
    """Return a request with the session headers that the provider accepts, and record the response headers that the
    caller gets. Headers of clients go only to a provider with the client's format. `notes`: contain the headers of the
    caller's request.
    """
    face, sent = request.source.format, dict[str, str]()
    if quirks.client_headers and face == protocol:
        sent = request_names(face, quirks.client_headers).select(notes.client_headers)
        is_renamed = request.model != model
        encoded.report.awaited_headers = response_names(face, quirks.client_headers, is_renamed=is_renamed)
    if quirks.session_header and notes.conversation:
        sent[quirks.session_header] = notes.conversation
    return structs.replace(encoded, relayed_headers=sent) if sent else encoded


def lines_beside(configured: Mapping[str, str], headers: Mapping[str, str]) -> bytes:
    """Return the encoded lines of the headers that the operator has not configured otherwise."""
    names = {name.lower() for name in configured}
    return b"".join(f"{name}: {value}\r\n".encode() for name, value in headers.items() if name not in names)


def found(headers: Headers, names: Sequence[str], mask: SecretMask) -> dict[str, str]:
    """Return the response headers with these names that the caller gets, with the channel's secrets masked."""
    values = {name: value for name in names if (value := headers.get(name)) is not None}
    return {name: mask.text(value) for name, value in values.items() if is_sendable(value)}
