"""Storage of the beginnings of prompts at a provider over HTTP (`cachedContents`)."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from msgspec import structs

from umg_grpc.base.errors import UmgError
from umg_grpc.upstream.http.provider_call import HttpCall
from umg_grpc.upstream.http.provider_connection import UNAUTHORIZED_STATUS
from umg_grpc.upstream.http.response_decoding import decoded_body, refusal
from umg_grpc.upstream.http1.response import NO_HEADERS
from umg_grpc.v1 import pb
from umg_grpc.wire.core.prompt_cache_marks import PromptMark
from umg_grpc.wire.dropped_fields_report import Report
from umg_grpc.wire.native.stored_prompts import (
    STORED_PROMPTS_PATH,
    Beginning,
    Created,
    DividedPrompt,
    decode_created,
    place_of,
)
from umg_grpc.wire.text_format_interface import UpstreamRequest

OF_THE_KEY = frozenset({0, UNAUTHORIZED_STATUS})
"""Statuses of failures that concern calls, too; 0 for one without a response. Providers refuse to store prompts for
keys and at rates with which they answer calls: a refusal must not send the calls of these keys to others.
"""


class HttpPromptStorage:
    """Storage at the provider that a call is sent to, with the same API key as the call."""

    def __init__(self, call: HttpCall[pb.GenerateRequest, pb.GenerateResponse]) -> None:
        self._call = call

    @property
    def body(self) -> bytes:
        return self._call.encoded.body

    @property
    def marks(self) -> Sequence[PromptMark]:
        return self._call.encoded.marks

    def before_send(self, change: Callable[[], None]) -> None:
        self._call.before_send = change

    def replace_body(self, body: bytes) -> None:
        self._call.encoded = structs.replace(self._call.encoded, body=body)

    async def store(self, prompt: DividedPrompt, beginning: Beginning, model: str, seconds: int) -> Created:
        channel, codec, report = self._call.channel, self._call.format, Report()
        endpoint, outgoing = await channel.outgoing(
            UpstreamRequest(STORED_PROMPTS_PATH, b"", {}, report),
            codec.key_header,
            channel.total_seconds,
            repeatable=False,
        )
        place = place_of(endpoint.base_url)
        outgoing = structs.replace(outgoing, body=prompt.stored(beginning, f"{place.models}{model}", seconds))
        if place.base_url:
            url = replace(endpoint, base_url=place.base_url).url(STORED_PROMPTS_PATH)
            outgoing = structs.replace(outgoing, url=url, common=None)
        status, headers = 0, NO_HEADERS
        try:
            status, headers, body = await channel.client.fetch(outgoing)
            if status != 200:
                raise refusal(codec.decode_error, status, headers, body, is_forwarded=outgoing.is_forwarded)
            created = decoded_body(body, decode_created)
        except UmgError as error:
            if status in OF_THE_KEY:
                channel.record_failure(error, endpoint, STORED_PROMPTS_PATH, status, headers)
            raise
        channel.record_success(endpoint, headers, report)
        return created
