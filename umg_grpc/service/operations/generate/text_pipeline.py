"""Pipeline of text generation, for complete responses and for streams."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import TypeAlias

from google.protobuf.message import Message
from msgspec.structs import replace

from umg_grpc.base.errors import UmgError
from umg_grpc.knowledge.families import text_model_rules as text_families
from umg_grpc.routing import ANY_ROUTE, GENERATE_VALUE, Resolved, RoutePreferences
from umg_grpc.service.caching.prompt_cache_account_choice import find_affinity
from umg_grpc.service.caching.provider_stored_prompts import StoredPrompts
from umg_grpc.service.conversations.message_threads import THREADED_FORMAT, Thread, unsupported
from umg_grpc.service.conversations.stored_responses import SEALED_BYTES, Continued
from umg_grpc.service.guardrails.guard_driver import Checked, GuardRun
from umg_grpc.service.operations.generate.compacted_streams import CompactedStream, StreamedSummary
from umg_grpc.service.operations.generate.compaction_during_a_call import InlineCompaction
from umg_grpc.service.operations.generate.conversation_compaction import Summary, opened, sealed_messages
from umg_grpc.service.operations.generate.conversation_stores import ConversationStores
from umg_grpc.service.operations.generate.conversation_truncation import Truncation, replace_oldest
from umg_grpc.service.operations.generate.first_output_detection import is_without_output
from umg_grpc.service.operations.generate.guarded_text_calls import guard_response, guarded_stream, take_request
from umg_grpc.service.operations.generate.provider_content_refusals import RefusalCheck, is_refusal, refused_content
from umg_grpc.service.operations.generate.rejection_healing import RefusalHealing
from umg_grpc.service.operations.generate.required_content import check_content
from umg_grpc.service.operations.generate.streamed_text_responses import StreamedText
from umg_grpc.service.operations.generate.text_request_encoder import (
    NO_ORIGIN,
    GenerationAttempt,
    GenerationCall,
    GenerationEncoder,
    find_origin,
)
from umg_grpc.service.operations.generate.text_response_finishing import ResponseCompletion
from umg_grpc.service.operations.generate.tool_choice_validation import check_tool_choice
from umg_grpc.service.pipeline.base_pipeline import PipelineContext, RequestStep
from umg_grpc.service.pipeline.call_state import Call
from umg_grpc.service.pipeline.failover import FailoverLoop
from umg_grpc.service.pipeline.request_decoding import read_source
from umg_grpc.service.pipeline.request_validation import validate
from umg_grpc.service.pipeline.response_pipeline import ResponseStep, checked_message
from umg_grpc.service.pipeline.step_order import COMPLETE, CONVERSATION, READING_STEPS, RULES, SETTLE, Step
from umg_grpc.service.pipeline.stream_pipeline import StreamedResponse, StreamPipeline
from umg_grpc.tokens import TokenCounter
from umg_grpc.v1 import pb
from umg_grpc.wire import TEXT_FACES, TEXT_FORMATS
from umg_grpc.wire.core.context_management_edits import Compact
from umg_grpc.wire.core.gateway_headers import STRICT_HEADER
from umg_grpc.wire.facts_beside_request import NO_NOTES, DecodedRequest, RequestNotes
from umg_grpc.wire.text_format_interface import TextFace

TextStep: TypeAlias = ResponseStep[GenerationCall, GenerationAttempt, pb.GenerateResponse]


class GenerationPipeline(
    StreamPipeline[
        pb.GenerateRequest, pb.GenerateResponse, GenerationCall, GenerationAttempt, pb.StreamGenerateResponse
    ]
):
    """Pipeline of text generation, for complete responses and for streams."""

    def __init__(self, context: PipelineContext, memory: ConversationStores, stored_prompts: StoredPrompts) -> None:
        super().__init__(context, GENERATE_VALUE, pb.GenerateResponse, GenerationCall)
        taken = self._request_steps()
        self._reading = tuple(taken[step] for step in self.steps if step in READING_STEPS)
        self._memory = memory
        self._stored_prompts = stored_prompts

    async def read(self, call: Call, message: Message, request: pb.GenerateRequest) -> GenerationCall:
        """Return the call with its request decoded, its model resolved, and the response that it continues, to count
        its tokens. Limits and prices are not checked. `message`: contains `request`. Raise UmgError.
        """
        notes = call.arrival.notes or NO_NOTES
        counted = GenerationCall(call=call, message=message, request=request, notes=notes, counted=True)
        for step in self._reading:
            if (waiting := step(counted)) is not None:
                await waiting
        call.facts.model = counted.model.id
        counted.full_request = counted.request
        if counted.request.previous_response_id:
            decoded = DecodedRequest(counted.request, counted.notes)
            counted.continued = await self._memory.stored_responses.continue_(call.caller.key_id, decoded)
            self._open_stored(counted.continued, call.caller.key_id)
            counted.full_request = counted.continued.whole.canonical
        return counted

    async def close(self, call: Call, continued: Continued | Thread | None) -> None:
        """End the exclusive right of the call to continue its thread, also if the call is cancelled; do nothing for a
        call without a thread. `continued`: result of `admit`, None if the call continues nothing.
        """
        if self._memory.threads is not None and isinstance(continued, Thread):
            await asyncio.shield(self._memory.threads.close(call.caller.key_id, continued))

    # --- steps before the attempts

    def _request_steps(self) -> Mapping[Step, RequestStep[GenerationCall]]:
        return {**super()._request_steps(), RULES: self._apply_rules, CONVERSATION: self._find_conversation}

    async def _decode_body(self, admitted: GenerationCall) -> None:
        given, counted = admitted.request, admitted.counted

        def decode(codec: TextFace, body: bytes, headers: Mapping[str, str]) -> DecodedRequest[pb.GenerateRequest]:
            if counted and codec.decode_count is not None:
                return codec.decode_count(body, headers, given.model)
            if given.compaction.standalone and codec.decode_compaction is not None:
                return codec.decode_compaction(body, headers, given.model)
            request, _, notes = codec.decode_request(body, headers, given.model)
            return DecodedRequest(request, notes)

        limit = self._context.body_limit
        admitted.request, admitted.notes = await read_source(
            given.source, TEXT_FACES, decode, none="no text format", limit=limit
        )

    def _validate(self, admitted: GenerationCall) -> Awaitable[None] | None:
        if admitted.is_canonical:
            return self._validate_message(admitted)
        self._check_content(admitted)
        return None

    async def _validate_message(self, admitted: GenerationCall) -> None:
        await validate(checked_message(admitted))
        self._check_content(admitted)

    def _check_content(self, admitted: GenerationCall) -> None:
        request = admitted.request
        check_content(request)
        if sealed := admitted.notes.compactions or (admitted.is_canonical and sealed_messages(request)):
            self._open_summaries(admitted, sealed)

    def _open_summaries(self, admitted: GenerationCall, indexes: Sequence[int]) -> None:
        """Decrypt the sealed summaries in the messages at `indexes`: the request then contains them as texts."""
        owner, notes = admitted.call.caller.key_id, admitted.notes
        admitted.sealed_messages = admitted.request.messages
        admitted.request = opened(admitted.request, indexes, notes, owner, self._memory.seals)
        if notes.context_edits is not None and any(isinstance(edit, Compact) for edit in notes.context_edits):
            replace_oldest(admitted.request, indexes[-1])  # the last summary replaces them
        admitted.notes = notes.with_edited("messages")

    def _apply_rules(self, admitted: GenerationCall) -> None:
        access, request = admitted.access, admitted.request
        if access.has_rules or request.HasField("tool_choice"):
            decoded = DecodedRequest(request, admitted.notes)
            admitted.request, admitted.notes = _apply_rules(decoded, access.resolved, stream=admitted.stream)

    def _find_conversation(self, admitted: GenerationCall) -> Awaitable[None] | None:
        """Find the stored response or thread that the call continues. Raise UmgError for an unknown one."""
        admitted.face = face = TEXT_FACES.get(admitted.request.source.format)
        stores_by_default, has_stored = face is not None and face.stores_by_default, False
        if self._memory.conversations is not None:
            has_stored = stores_by_default
        elif admitted.request.store or stores_by_default:
            admitted.request, admitted.notes = _disable_storage(admitted.request, admitted.notes)
        admitted.full_request = request = admitted.request
        if has_stored or request.HasField("thread") or request.previous_response_id:
            return self._continue_conversation(admitted)
        return None

    async def _continue_conversation(self, admitted: GenerationCall) -> None:
        call, conversations = admitted.call, self._memory.conversations
        if conversations is not None and admitted.face is not None and admitted.face.stores_by_default:
            resolved = await conversations.resolve(admitted.access.caller.key_id, admitted.request)
            if resolved is not admitted.request:
                admitted.request, admitted.notes = resolved, admitted.notes.with_edited("messages")
                if sealed := sealed_messages(resolved):
                    self._open_summaries(admitted, sealed)
        decoded = DecodedRequest(admitted.request, admitted.notes)
        if admitted.request.HasField("thread"):
            resolved_model = admitted.access.resolved
            admitted.continued = await self._open_thread(call, decoded, resolved_model, stream=admitted.stream)
        elif admitted.request.previous_response_id:
            admitted.continued = await self._continue(call, decoded, admitted.model.id)
        continued = admitted.continued
        admitted.full_request = admitted.request if continued is None else continued.whole.canonical

    def _whole_request(self, admitted: GenerationCall) -> DecodedRequest[pb.GenerateRequest]:
        continued = admitted.continued
        return super()._whole_request(admitted) if continued is None else continued.whole

    async def _leave_model(self, admitted: GenerationCall) -> None:
        continued, admitted.continued, admitted.settle = admitted.continued, None, None
        await self.close(admitted.call, continued)  # the next model continues the thread again

    # --- plan and completion

    async def _plan(self, admitted: GenerationCall) -> tuple[RoutePreferences, GenerationEncoder]:
        reasoning, access, call = self._memory.reasoning, admitted.access, admitted.call
        pins, origin, preferences = access.caller.channel_rules, NO_ORIGIN, ANY_ROUTE
        if access.guards is not None and access.guards.response and admitted.stream:
            admitted.notes = replace(admitted.notes, reads_stream=True)
        if access.has_several_accounts:
            call.affinity = find_affinity(access.caller.affinity_id, admitted.full_request, call.arrival.metadata)
        if access.has_several or pins:
            origin = await find_origin(admitted, reasoning)
            preferences = RoutePreferences(
                protocol=admitted.request.source.format,
                pins=pins,
                state_channel=origin.channel,
                affinity=call.affinity,
                is_healthy=self._context.shared.is_healthy,
            )
        upstreams, shared = self._context.channels.text, self._context.shared
        healing = RefusalHealing(
            shared.learned, self._context.observers, is_strict=STRICT_HEADER in call.arrival.metadata and call.strict
        )
        summary = Summary(Truncation(admitted.full_request)) if admitted.request.HasField("compaction") else None
        truncation = Truncation(admitted.full_request) if admitted.request.truncation == pb.TRUNCATION_AUTO else None
        compaction = None if summary is not None else self._compaction(admitted)
        encoder = GenerationEncoder(
            *(admitted, upstreams, reasoning, origin.state_channels, healing, self._stored_prompts),
            *(summary, truncation, compaction),
        )
        return preferences, encoder

    def _compaction(self, admitted: GenerationCall) -> InlineCompaction | None:
        """Return the compaction that the caller requests inside this call; None if the caller requests none."""
        if (edits := admitted.notes.context_edits) is None:
            return None
        edit = next((each for each in edits if isinstance(each, Compact)), None)
        if edit is None:
            return None
        model = admitted.model
        return InlineCompaction(edit, self._whole_request(admitted), TokenCounter(model.family, model.tokenizer))

    def _response_steps(self) -> Mapping[Step, TextStep]:
        return {COMPLETE: self._complete, SETTLE: self._settle}

    def _complete(
        self, admitted: GenerationCall, attempt: GenerationAttempt, response: pb.GenerateResponse
    ) -> Awaitable[None] | None:
        if admitted.fallbacks is not None and is_refusal(response) and self._may_replace_refusal(admitted):
            raise refused_content(admitted, response.usage if response.HasField("usage") else None)
        completion = ResponseCompletion(admitted, attempt, self._memory)
        admitted.settle = completion.store_whole
        if attempt.summary is not None or attempt.compaction is not None:
            return self._complete_compacted(attempt, completion, response)
        return completion.complete_whole(response)

    def _may_replace_refusal(self, admitted: GenerationCall) -> bool:
        if (fallbacks := admitted.fallbacks) is None or admitted.request.HasField("compaction"):
            return False
        return self._has_fallback(fallbacks, admitted.call, "content")

    async def _complete_compacted(
        self, attempt: GenerationAttempt, completion: ResponseCompletion, response: pb.GenerateResponse
    ) -> None:
        """Complete a response that is the summary of a conversation, or the response to the summary."""
        if (waiting := completion.complete_whole(response)) is not None:
            await waiting
        admitted, seals = completion.admitted, self._memory.seals
        facts, owner, compaction = admitted.call.facts, admitted.access.caller.key_id, attempt.compaction
        if attempt.summary is None:
            if compaction is not None:
                compaction.add_to(response, owner, seals)
        elif compaction is None:
            facts.usage = attempt.summary.complete(response, owner, seals)
            _show_stored_turns(admitted, response)
        else:
            facts.usage = compaction.complete(response, attempt.summary, owner, seals)
            attempt.is_followed = not compaction.edit.pauses

    def _settle(
        self, admitted: GenerationCall, attempt: GenerationAttempt, response: pb.GenerateResponse
    ) -> Awaitable[None] | None:
        settle, admitted.settle = admitted.settle, None  # it refers to the call: a cycle would keep both
        return settle(response) if settle is not None else None

    # --- guards

    def _take_request(self, admitted: GenerationCall, checked: Checked[pb.GenerateRequest]) -> None:
        take_request(admitted, checked)

    async def _guard_response(
        self, admitted: GenerationCall, attempt: GenerationAttempt, response: pb.GenerateResponse, run: GuardRun
    ) -> None:
        await guard_response(admitted, ResponseCompletion(admitted, attempt, self._memory), response, run)

    def _charge_refused(
        self, admitted: GenerationCall, attempt: GenerationAttempt, response: pb.GenerateResponse
    ) -> None:
        """Do nothing: the usage of a refused response is already recorded by the step `complete`."""

    # --- streams

    def _release(self, admitted: GenerationCall) -> Awaitable[None] | None:
        return self.close(admitted.call, admitted.continued) if admitted.continued is not None else None

    async def _cached(
        self, admitted: GenerationCall, make: Callable[[], AsyncGenerator[pb.StreamGenerateResponse, None]]
    ) -> AsyncGenerator[pb.StreamGenerateResponse, None] | None:
        entry = await self._cache_entry(admitted)
        return entry.streamed(make) if entry is not None else None

    def _output_check(self, admitted: GenerationCall) -> Callable[[pb.StreamGenerateResponse], bool]:
        check = partial(is_without_output, TEXT_FORMATS.get(admitted.request.source.format))
        if admitted.fallbacks is None or not self._may_replace_refusal(admitted):
            return check
        return RefusalCheck(check, admitted)

    def _streamed(
        self, admitted: GenerationCall, attempts: FailoverLoop[GenerationAttempt]
    ) -> StreamedResponse[pb.StreamGenerateResponse]:
        streamed, guards = self._unguarded(admitted, attempts), admitted.access.guards
        if guards is None or not guards.response:
            if isinstance(streamed, StreamedText) and not self._may_cache(admitted):
                streamed.relay = admitted.call.arrival.relay
            return streamed
        run = GuardRun(guards, admitted.call, admitted.model.id, "response")
        completion = ResponseCompletion(admitted, attempts.attempt, self._memory)
        return guarded_stream(streamed, admitted, completion, run)

    def _unguarded(
        self, admitted: GenerationCall, attempts: FailoverLoop[GenerationAttempt]
    ) -> StreamedText | StreamedSummary | CompactedStream:
        attempt, seals = attempts.attempt, self._memory.seals
        completion = ResponseCompletion(admitted, attempt, self._memory)
        if attempt.summary is not None:
            return StreamedSummary(completion, attempts, self._complete_compacted)
        candidates = max(1, admitted.request.candidate_count)
        streamed = StreamedText(completion, attempts, self._memory, candidates)
        if (compaction := attempt.compaction) is None or compaction.usage is None:
            return streamed
        return CompactedStream(streamed, compaction.events(admitted.access.caller.key_id, seals), compaction.usage)

    # --- conversations

    async def _open_thread(
        self, call: Call, decoded: DecodedRequest[pb.GenerateRequest], resolved: Resolved, *, stream: bool
    ) -> Thread | None:
        """Return the thread of the request, which no other call may continue until `close`. None for a thread that the
        gateway has not stored but the provider may have, if all keys share the provider's account.
        """
        request = decoded.canonical
        threads, owner = self._memory.threads, call.caller.key_id
        shared = request.source.format == THREADED_FORMAT and self._context.channels.router.shares(
            resolved.model.id, THREADED_FORMAT
        )
        if threads is None:
            if shared:
                return None
            raise unsupported()
        try:
            thread = await threads.open(owner, decoded, call.seconds_left())
        except UmgError as error:
            if error.reason == pb.ERROR_REASON_THREAD_NOT_FOUND and shared:
                return None
            raise
        if thread.continued is not None:
            try:
                thread.continued = _apply_rules(thread.continued, resolved, stream=stream)
            except UmgError:
                await threads.close(owner, thread)
                raise
        return thread

    async def _continue(self, call: Call, decoded: DecodedRequest[pb.GenerateRequest], model: str) -> Continued | None:
        """Return the request with the stored response that it continues. None for a response that the gateway has not
        stored but the provider may have, if all keys share the provider's account. Raise UmgError(OBJECT_NOT_FOUND).
        """
        try:
            continued = await self._memory.stored_responses.continue_(call.caller.key_id, decoded)
        except UmgError as error:
            router = self._context.channels.router
            shared = any(codec.stores_by_default and router.shares(model, name) for name, codec in TEXT_FORMATS.items())
            if error.reason == pb.ERROR_REASON_OBJECT_NOT_FOUND and shared:
                return None
            raise
        self._open_stored(continued, call.caller.key_id)
        return continued

    def _open_stored(self, continued: Continued, owner: str) -> None:
        if SEALED_BYTES in continued.earlier:
            request, notes = continued.whole
            text = opened(request, sealed_messages(request), notes, owner, self._memory.seals)
            continued.whole = DecodedRequest(text, notes)


def _show_stored_turns(admitted: GenerationCall, response: pb.GenerateResponse) -> None:
    """Write the body of a response that compacts a stored conversation: with its turns that the request lacks."""
    continued, face = admitted.continued, admitted.face
    if face is None or not isinstance(continued, Continued) or not admitted.request.compaction.standalone:
        return
    request = pb.GenerateRequest.FromString(continued.earlier)
    request.messages.extend(admitted.sealed_messages or admitted.request.messages)
    request.compaction.standalone = True
    response.source.body = face.encode_response(response, request)
    response.source.format = face.name


def _apply_rules(
    decoded: DecodedRequest[pb.GenerateRequest], resolved: Resolved, *, stream: bool
) -> DecodedRequest[pb.GenerateRequest]:
    """Return the request as changed by the rules of its model's family."""
    request, notes = decoded
    if request.tool_choice.mode == pb.TOOL_CHOICE_MODE_REQUIRED and not request.thread.previous_response_id:
        check_tool_choice(request)  # the tools of a continued thread are in the thread
    if not resolved.rules.family and resolved.suffix is None:
        return decoded
    applied, edited = text_families.apply(request, notes.family, resolved.rules, resolved.suffix, stream=stream)
    if applied is request:
        return decoded
    return DecodedRequest(applied, notes.with_edited("reasoning") if edited else notes)


def _disable_storage(given: pb.GenerateRequest, notes: RequestNotes) -> DecodedRequest[pb.GenerateRequest]:
    """Return the request with `store` set to false, for a gateway without stored responses."""
    if given.store:
        notes = replace(notes, uncarried=[*notes.uncarried, "store"])
    request = pb.GenerateRequest()
    request.CopyFrom(given)
    request.store = False
    return DecodedRequest(request, notes)
