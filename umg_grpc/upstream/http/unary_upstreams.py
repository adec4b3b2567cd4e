"""Upstreams over HTTP of the operations with one request and one response."""

from collections.abc import Sequence
from typing import Any

from umg_grpc.knowledge.vendor_member_dialects import MemberDialect
from umg_grpc.operations import UnaryOperation
from umg_grpc.operations.embedding_operation import EMBED_OPERATION
from umg_grpc.upstream.http.embedding_batches import HttpEmbedding
from umg_grpc.upstream.http.provider_connection import HttpChannel
from umg_grpc.upstream.http.unary_operations import HttpUnary
from umg_grpc.upstream.upstream_interfaces import UnaryUpstream
from umg_grpc.wire.unary_format_interface import UnaryProviderFormat


def unary_upstream(
    operation: UnaryOperation[Any, Any],
    channel: HttpChannel,
    formats: Sequence[UnaryProviderFormat[Any, Any]],
    max_items: int | None,
    dialects: tuple[MemberDialect, ...],
) -> UnaryUpstream[Any, Any]:
    """Return the upstream of an operation over HTTP. Parameters: as in `HttpEmbedding`."""
    if operation is EMBED_OPERATION:
        return HttpEmbedding(channel, formats, max_items=max_items, dialects=dialects)
    return HttpUnary(channel, formats, dialects=dialects, method=operation.stream)
