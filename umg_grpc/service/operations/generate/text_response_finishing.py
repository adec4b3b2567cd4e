"""Completion of a text response for the caller (ids, model name, usage), and its storage for later calls."""

import asyncio
import re
import secrets
import time
from collections.abc import Awaitable, Callable, Iterable

import msgspec
import structlog
from structlog.typing import FilteringBoundLogger

from umg_grpc.base.errors import UmgError
from umg_grpc.service.conversations.message_threads import Thread
from umg_grpc.service.conversations.stored_responses import Continued, ResponseOrigin, new_response_id
from umg_grpc.service.conversations.tool_call_ids import NewCallIds, PassedCallIds
from umg_grpc.service.operations.generate.conversation_stores import ConversationStores
from umg_grpc.service.operations.generate.text_request_encoder import GenerationAttempt, GenerationCall
from umg_grpc.tokens import TokenCounter
from umg_grpc.upstream.http.response_decoding import guarded
from umg_grpc.v1 import pb
from umg_grpc.wire import TEXT_FORMATS
from umg_grpc.wire.core.charged_service_tiers import charged_tier
from umg_grpc.wire.core.content_derived_call_ids import ContentIds
from umg_grpc.wire.core.finish_reason_conversion import unknown_word
from umg_grpc.wire.core.prompt_cache_lifetimes import selects_long_lifetime
from umg_grpc.wire.core.stream_aggregator import read_whole_response
from umg_grpc.wire.text_format_interface import BIG_BYTES

MANY_BYTES = 32 * 2**10
"""Maximum bytes of a stream or response processed in the event loop, in about 1 ms; more are processed in a thread."""

HEADER_NAME = re.compile(r"[\w.-]{1,64}", re.ASCII)

logger: FilteringBoundLogger = structlog.get_logger(__name__)


class ResponseCompletion(msgspec.Struct, eq=False):
    """Completion of a channel's response to a text call. It also stores parts that later calls need."""

    admitted: GenerationCall
    _attempt: GenerationAttempt
    _memory: ConversationStores
    stores_response: bool = False
    """Whether the response is stored, for calls that read or continue it by its id."""
    thread: Thread | None = None
    stores_reasoning: bool = False
    """Whether the reasoning is stored, for the call that returns the results of the response's tool calls."""
    stores_ids: bool = False
    """Whether the ids of the provider's objects in the response are stored: the caller may refer to them later."""
    stores_any: bool = False
    passthrough: bool = False
    """Whether the caller gets the provider's own body, unchanged."""
    has_reasoning: Callable[[bytes], bool] | None = None
    """Function that returns whether a body has reasoning that clients do not send back; None for no search."""

    def begin(self, *, passthrough: bool) -> bool:
        """Decide which parts of the response are stored. Return whether any part may be; a stream is then collected as
        a whole. `passthrough`: whether the caller gets the provider's own body.
        """
        admitted, memory = self.admitted, self._memory
        request, face, continued, notes = admitted.request, admitted.face, admitted.continued, admitted.notes
        stores = face is not None and face.stores_by_default
        response = memory.conversations is not None and (request.store if request.HasField("store") else stores)
        reasoning = ids = False
        if memory.reasoning is not None:
            # the modalities and tools of most requests are empty: a search in them takes longer than this test
            modalities, tools = request.output_modalities, request.tools
            reasoning = bool(tools if continued is None else admitted.full_request.tools)
            ids = (
                (response and stores)
                or admitted.access.has_several  # the channel of stored items, generated audio and reasoning states
                or (bool(modalities) and "audio" in modalities)
                # the provider compares the request with earlier ones, which the caller names by their responses' ids
                or bool(request.prompt_cache_options_json)
                or "diagnostics" in notes.uncarried
                # the provider may run its own tools in a container, which the caller names later
                or "container" in notes.indispensable
                or (bool(tools) and any(tool.HasField("opaque") for tool in tools))
            )
        if continued is not None and isinstance(continued, Thread):
            self.thread = continued
        may_store = response or reasoning or ids or self.thread is not None
        self.passthrough = passthrough
        if may_store:
            self.stores_response, self.stores_ids = response, ids and (passthrough or stores)
            if passthrough and reasoning:
                self.has_reasoning = TEXT_FORMATS[request.source.format].has_unreturned_reasoning
            else:
                self.stores_reasoning = reasoning
            self.stores_any = response or self.stores_ids or self.stores_reasoning or self.thread is not None
        return may_store

    def stop_storing(self) -> None:
        """Decide that no part of the response is stored, for example because it is too large."""
        self.stores_response = self.stores_reasoning = self.stores_ids = self.stores_any = False
        self.thread = self.has_reasoning = None

    def find_reasoning(self, passed: Iterable[bytes]) -> None:
        """Decide that the reasoning is stored if a passed-through body contains reasoning that clients do not send
        back. `passed`: the body, or the frames of its stream.
        """
        if self.has_reasoning is not None and any(map(self.has_reasoning, passed)):
            self.stores_reasoning = self.stores_any = True
            self.has_reasoning = None

    def complete_whole(self, response: pb.GenerateResponse) -> Awaitable[None] | None:
        """Complete a response that is not streamed, and record its usage."""
        self.begin(passthrough=response.HasField("source"))
        self.complete(response)
        if not response.HasField("complete_time"):
            response.complete_time.seconds = int(time.time())
        if not self.passthrough:
            self._complete_calls(response)
            self._report_unsupported(response)
        else:
            self._complete_passed_calls(response)
            if self.has_reasoning is not None:
                self.find_reasoning([response.source.body])
        call, facts = self.admitted.call, self.admitted.call.facts
        call.list_dropped(response)  # with the parts that `_report_unsupported` found
        if response.HasField("usage"):
            self.note_usage(response.usage)
        if response.candidates and (word := response.candidates[0].provider_reason):
            facts.finish_reason = unknown_word(word)
        return self._estimate_whole(response) if facts.usage is None or facts.usage.estimated else None

    def note_usage(self, usage: pb.Usage) -> None:
        """Record the usage that the provider reported. Cache writes without a lifetime have that of the request."""
        call = self._attempt.call
        if usage.cache_write_tokens and selects_long_lifetime(call.protocol, call.body):
            usage.long_cache_write_tokens += usage.cache_write_tokens
            usage.cache_write_tokens = 0
        self.admitted.call.facts.usage = usage

    async def _estimate_whole(self, response: pb.GenerateResponse) -> None:
        facts = self.admitted.call.facts
        facts.usage = with_reported(await self.estimate(await self.read(response)), facts.usage)
        if not self.passthrough:  # the body of a passthrough stays unchanged
            response.usage.CopyFrom(facts.usage)

    def store_whole(self, response: pb.GenerateResponse) -> Awaitable[None] | None:
        """Store the parts of a completed response that later calls need. Return None if they need none."""
        return self._store_whole(response) if self.stores_any else None

    async def _store_whole(self, response: pb.GenerateResponse) -> None:
        await self.retain(await self.read(response), streamed=False)

    def _complete_calls(self, response: pb.GenerateResponse) -> None:
        """Set the ids that are missing in the tool calls of the response."""
        if self.admitted.request.face_hints.legacy_functions:
            return  # legacy function calls have no ids
        ids = NewCallIds(self.admitted.full_request)
        for position, candidate in enumerate(response.candidates):
            for part in candidate.message.parts:
                ids.complete(part, position)

    @property
    def passed_call_ids(self) -> PassedCallIds | None:
        """Replacement of the ids of tool calls in a passed-through response; None for a request without tools."""
        face, request = self.admitted.face, self.admitted.full_request
        return PassedCallIds(face.call_ids, request) if face is not None and request.tools else None

    def _complete_passed_calls(self, response: pb.GenerateResponse) -> None:
        if (ids := self.passed_call_ids) is not None:
            body = response.source.body
            if (renamed := ids.body(body)) is not body:
                response.source.body = renamed

    def _report_unsupported(self, response: pb.GenerateResponse) -> None:
        """Report the parts of the response that the caller's format cannot express, for the header `x-umg-dropped`."""
        report = self._attempt.call.report
        if (face := self.admitted.face) is None:
            return
        parts = [part for candidate in response.candidates for part in candidate.message.parts]
        if unsupported := [part for part in parts if not face.can_express(part)]:
            for part in unsupported:
                report.drop(f"answer.{_header_name(part)}")

    async def read(self, response: pb.GenerateResponse) -> pb.GenerateResponse:
        """Return the response with its candidates. Those of a passed-through response are decoded from the provider's
        body; if that fails, the response has none.
        """
        if not self.passthrough:
            return response
        text_format, request = TEXT_FORMATS[response.source.format], self._attempt.request
        try:
            if len(response.source.body) < BIG_BYTES:
                return guarded(read_whole_response, text_format, request, response)
            return await asyncio.to_thread(guarded, read_whole_response, text_format, request, response)
        except UmgError as error:
            logger.warning("a response that is passed on cannot be read", channel=self._attempt.channel, why=str(error))
            return response

    def complete(self, head: pb.GenerateResponse | pb.GenerationStarted) -> None:
        """Set the fields that every format needs: the caller's model id, an id, a time, whether it is stored. `head`:
        the response, or the first event of a stream. The id of a response that can be retrieved is random, so that it
        cannot be guessed. A provider's id is kept only if the caller gets the provider's own body.
        """
        admitted = self.admitted
        head.model = admitted.request.model
        if not self.passthrough and admitted.face is not None and admitted.face.stores_by_default:
            head.response_id = new_response_id()
        elif not self.passthrough and isinstance(admitted.continued, Thread):
            head.response_id = f"msg_{secrets.token_hex(16)}"
        elif not head.response_id:
            head.response_id = f"gen-{secrets.token_hex(16)}"
        if not head.HasField("create_time"):
            head.create_time.seconds = int(time.time())
        if self._memory.conversations is None:
            head.stored = False
        if (management := self._attempt.context_management) is not None:
            head.context_management.CopyFrom(management)

    async def estimate(self, response: pb.GenerateResponse, sample: int | None = None) -> pb.Usage:
        """Return the usage of a response by counting its tokens, if the provider did not report it. `sample`: counted
        characters of each text, since hundreds of callers may cancel at once; None for all.
        """
        model, request = self.admitted.model, self._attempt.request
        if request.thread.previous_response_id:
            request = self.admitted.full_request
        counter = TokenCounter(model.family, model.tokenizer)
        is_large = sample is None and (counter.needs_thread(request) or response.ByteSize() > MANY_BYTES)
        if is_large or counter.is_slow:
            usage = await asyncio.to_thread(counter.estimate_response, request, response, sample)
        else:
            usage = counter.estimate_response(request, response, sample)
        usage.service_tier = charged_tier(response.service_tier)
        return usage

    async def retain(self, response: pb.GenerateResponse, *, streamed: bool) -> None:
        """Store the parts of the response that later calls need: ids of its objects, reasoning, and the response or its
        thread. `response`: has its candidates, also after passthrough.
        """
        reasoning, owner = self._memory.reasoning, self.admitted.access.caller.key_id
        if reasoning is not None:
            for candidate in response.candidates:
                if self.stores_ids:
                    reasoning.own(owner, self._attempt.channel, candidate, response.response_id)
                if self.stores_reasoning:
                    parts, face = candidate.message.parts, self.admitted.face
                    loses = face is not None and face.loses_call_ids
                    content_ids = ContentIds.after(self.admitted.full_request) if loses else None
                    reasoning.remember(owner, self._attempt.channel, parts, content_ids)
            if self.stores_reasoning:
                await reasoning.flushed()  # before the call that returns the tool results arrives, at any process
        if self.stores_response or self.thread is not None:
            await self._store(response, owner, streamed=streamed)

    async def _store(self, response: pb.GenerateResponse, owner: str, *, streamed: bool) -> None:
        """Store the response, to be read or continued by its id, or to be continued in its thread."""
        continued, channel = self.admitted.continued, self._attempt.channel
        threads, conversations = self._memory.threads, self._memory.conversations
        if threads is not None and self.thread is not None:
            known = response.response_id if self.passthrough and self._attempt.request.HasField("thread") else ""
            await threads.keep(owner, self.thread, response, ResponseOrigin(channel, known))
        if conversations is not None and self.stores_response:
            await conversations.keep(
                owner,
                _as_sent(self.admitted),
                response,
                channel=channel,
                streamed=streamed,
                continued=continued if isinstance(continued, Continued) else None,
                upstream_response_id=response.response_id if self.passthrough else "",
            )


def _as_sent(admitted: GenerationCall) -> pb.GenerateRequest:
    """Return the request as the caller sent it, with sealed summaries. In the model's request they are texts."""
    if not admitted.sealed_messages:
        return admitted.request
    request = pb.GenerateRequest()
    request.CopyFrom(admitted.request)
    request.ClearField("messages")
    request.messages.extend(admitted.sealed_messages)
    return request


def with_reported(usage: pb.Usage, reported: pb.Usage | None) -> pb.Usage:
    """Return an estimated usage, with the provider's numbers where it reported them. If it reported only tokens of the
    response, these are final. Otherwise they are a minimum, since the stream may have ended early.
    """
    if reported is None:
        return usage
    prompt = reported.input_tokens or max(usage.input_tokens, reported.cache_read_tokens)
    response = reported.output_tokens
    if reported.input_tokens:
        response = max(response, usage.output_tokens)
    reasoning = max(reported.reasoning_tokens, usage.reasoning_tokens)
    usage.CopyFrom(reported)
    usage.input_tokens, usage.output_tokens = prompt, response
    usage.reasoning_tokens, usage.estimated = min(reasoning, response), True
    return usage


def _header_name(part: pb.Part) -> str:
    """Return the kind of a message part as a word for a header: the provider's name of the kind, if there is one."""
    kind = part.WhichOneof("kind") or "part"
    match kind:
        case "opaque":
            name = part.opaque.type
        case "server_tool_call":
            name = part.server_tool_call.name
        case "server_tool_result":
            name = part.server_tool_result.name
        case "media":
            name = pb.MediaKind.Name(part.media.kind).removeprefix("MEDIA_KIND_").lower()
        case _:  # the other kinds have no name of the provider
            name = kind
    return name if HEADER_NAME.fullmatch(name) else kind
