"""Reader of a provider's model list, page by page."""

import asyncio
import time
from collections.abc import Mapping

from umg_grpc.base.errors import UmgError
from umg_grpc.operations.listed_operations import LISTED_OPERATIONS
from umg_grpc.upstream.http.operator_failure_facts import add_facts
from umg_grpc.upstream.http.provider_connection import HttpChannel
from umg_grpc.upstream.http.response_decoding import decoded_body, refusal
from umg_grpc.upstream.http1.response import NO_HEADERS
from umg_grpc.v1 import pb
from umg_grpc.wire.dropped_fields_report import Report
from umg_grpc.wire.errors.provider_errors import decode_error
from umg_grpc.wire.provider_model_lists import ProviderModelList
from umg_grpc.wire.text_format_interface import UpstreamRequest

MAX_PAGES = 50
MAX_MODELS = 10_000
MAX_BYTES = 32 * 2**20
"""Largest page; a list of 10,000 models with their descriptions has about 20 MB."""
OK_STATUS = 200


async def fetch_models(channel: HttpChannel, listing: ProviderModelList, seconds: float) -> list[pb.Model]:
    """Return the models in the provider's list, at most MAX_MODELS. `seconds`: time for all pages. Raise UmgError with
    facts for operators. A failure suspends no key, since a key may be allowed to generate but not to list models.
    """
    no_headers: Mapping[str, str] = NO_HEADERS
    models, query, end = list[pb.Model](), listing.first_query, time.monotonic() + seconds
    for _ in range(MAX_PAGES):
        request = UpstreamRequest(listing.path + query, b"", listing.headers, Report(), method="GET")
        endpoint, outgoing = await channel.outgoing(
            request, listing.key_header, end - time.monotonic(), max_bytes=MAX_BYTES
        )
        status, headers = 0, no_headers
        try:
            status, headers, body = await channel.client.fetch(outgoing)
            if status != OK_STATUS:
                raise refusal(decode_error, status, headers, body, is_forwarded=outgoing.is_forwarded)
            page = await asyncio.to_thread(decoded_body, body, listing.decode, LISTED_OPERATIONS)
        except UmgError as error:
            add_facts(error, endpoint, channel.secrets.mask, request.path, status, headers)
            raise
        models += page.models
        query = page.next_query
        if not query or len(models) >= MAX_MODELS:
            break
    return models[:MAX_MODELS]
