"""Encoding of a text request for each channel at which the call is tried."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import msgspec

from umg_grpc.base.errors import UmgError
from umg_grpc.knowledge.model_quirk_definitions import NO_QUIRKS
from umg_grpc.routing import Target
from umg_grpc.service.caching.prompt_cache_account_choice import find_affinity, lacks_key, make_key
from umg_grpc.service.caching.provider_stored_prompts import StoredPrompts
from umg_grpc.service.conversations import reasoning_state
from umg_grpc.service.conversations.account_object_ownership import AccountObject, account_objects, check_ownership
from umg_grpc.service.conversations.conversation_edits import EditedConversation, edited_conversation, may_edit
from umg_grpc.service.conversations.message_threads import Thread
from umg_grpc.service.conversations.reasoning_store import ReasoningStore
from umg_grpc.service.conversations.stored_responses import Continued
from umg_grpc.service.operations.generate.compaction_during_a_call import InlineCompaction
from umg_grpc.service.operations.generate.conversation_compaction import Summary
from umg_grpc.service.operations.generate.conversation_truncation import Truncation
from umg_grpc.service.operations.generate.rejection_healing import RefusalHealing
from umg_grpc.service.pipeline.base_pipeline import Admitted
from umg_grpc.service.pipeline.channel_attempt import OUTPUT_LIMIT, Attempt, finish_report
from umg_grpc.service.possibly_unwritten_error import unwritten
from umg_grpc.tokens import TokenCounter
from umg_grpc.upstream.upstream_interfaces import TextCall, TextUpstream
from umg_grpc.v1 import pb
from umg_grpc.wire import TEXT_FORMATS, TEXT_UPSTREAMS
from umg_grpc.wire.core.context_management_edits import EDITS_FIELD, ContextEdit, UnknownEdit
from umg_grpc.wire.core.json_decoding import echo
from umg_grpc.wire.dropped_fields_report import Report
from umg_grpc.wire.facts_beside_request import DecodedRequest, RequestNotes
from umg_grpc.wire.protocol_choice import refusal_of
from umg_grpc.wire.text_format_interface import TextFace

MESSAGE_PATH = re.compile(r"messages\[(\d+)\]")


class GenerationCall(Admitted[pb.GenerateRequest], kw_only=True):
    """Text call that was admitted, with the stored conversation that it continues."""

    counted: bool = False
    """Whether only the tokens of the request are counted."""
    face: TextFace | None = None  # format of the caller's body; None for a request in the canonical form
    continued: Continued | Thread | None = None
    full_request: pb.GenerateRequest = None  # type: ignore[assignment]  # set by the step `conversation`
    """Request with all messages of its conversation, stored ones included."""
    sealed_messages: Sequence[pb.Message] = ()
    """Messages of the request as the caller sent them, where it has sealed summaries; else empty."""
    settle: Callable[[pb.GenerateResponse], Awaitable[None] | None] | None = None
    """Step `settle` of the completed response, set by the step `complete`; None before it and for a stream."""


class GenerationAttempt(Attempt[TextCall], kw_only=True):
    """Attempt of a text call at one channel, with the request encoded for the channel."""

    request: pb.GenerateRequest  # for this channel: with the conversation that it continues
    summary: Summary | None = None
    """Summary that the model writes of the conversation; None for a response, and for a provider that compacts."""
    compaction: InlineCompaction | None = None
    """Compaction before the response to which this attempt belongs; None for a conversation without one."""
    context_management: pb.ContextManagement | None = None
    """Edits that the gateway made in the conversation; None if none was requested, or the provider makes them."""
    stored: bytes = b""
    """Digest of the beginning of the prompt that the provider has stored, and the request names; b"" if there is none.
    """


class SentConversation(NamedTuple):
    """Request for one channel, with a record of how its conversation was shortened."""

    request: pb.GenerateRequest
    notes: RequestNotes
    summary: Summary | None
    """Summary that it requests in place of a response; None if it requests a response."""
    is_truncated: bool
    """Whether the oldest turns were left out after an overflow."""
    management: pb.ContextManagement | None
    """Edits that the gateway made; None if the caller requested none, or the provider makes them."""
    compaction: InlineCompaction | None
    """Compaction before the response; None if the caller requested none, or the provider makes it."""


class StateOrigin(NamedTuple):
    """Channels whose accounts have data of a request: its reasoning states (opaque data), or its earlier response."""

    channel: str = ""  # the one whose account has the state; "" if none is known
    state_channels: Mapping[str, str] = MappingProxyType({})  # data of a reasoning state in the request -> channel


NO_ORIGIN = StateOrigin()


async def find_origin(admitted: GenerationCall, reasoning: ReasoningStore | None) -> StateOrigin:
    """Return the channels whose accounts have the data to which the request refers. Only if several channels serve the
    model are the channels of reasoning states looked up in the store. `reasoning`: None without this store.
    """
    continued, request = admitted.continued, admitted.full_request
    # the reasoning states of a stored response name their channels, those in a caller's body do not
    channel = continued.origin.channel if continued is not None else ""
    if isinstance(continued, Continued) or not admitted.access.has_several:
        return StateOrigin(channel)
    if reasoning is None or not reasoning_state.needs(request):
        return StateOrigin(channel)
    known = await reasoning.restore(admitted.access.caller.key_id, request)
    return StateOrigin(channel or reasoning_state.pinned_channel(known), reasoning_state.makers(known))


class GenerationEncoder(msgspec.Struct, eq=False):
    """Encoder of a text request for each channel at which the call is tried."""

    _admitted: GenerationCall
    _upstreams: Mapping[str, TextUpstream]  # by channel; those at the start of the call: a reload replaces them
    _reasoning: ReasoningStore | None
    _state_channels: Mapping[str, str]  # see `StateOrigin`
    _healing: RefusalHealing
    _stored: StoredPrompts
    _summary: Summary | None = None  # None for a call that requests no summary
    _truncation: Truncation | None = None  # None for a call that requests no truncation
    _compaction: InlineCompaction | None = None  # None for a call that requests no compaction before its response

    def can_repair(self, attempt: GenerationAttempt, error: UmgError) -> bool:
        if attempt.stored and self._stored.refuses(attempt.stored, error):
            return True
        if self._summary is not None and self._summary.recovers_from(
            attempt.channel, error, is_own=attempt.summary is not None
        ):
            return True
        if attempt.compaction is not None and attempt.summary is not None:
            # a refused member is mended first, without which the call would go on without the summary
            return self.can_mend(attempt, error) or attempt.compaction.recovers_from(attempt.channel, error)
        if self._truncation is not None and self._truncation.recovers_from(error):
            return True
        continued = self._admitted.continued
        return continued is not None and continued.recovers_from(attempt.request, error)

    def can_mend(self, attempt: GenerationAttempt, error: UmgError) -> bool:
        return error.refusal is not None and self._healing.can_mend(attempt.target, error)

    def note_success(self, attempt: GenerationAttempt) -> None:
        self._healing.note_success(attempt.target)

    async def encode(self, target: Target) -> GenerationAttempt:
        refusal = self._healing.refusal_of(target)
        if refusal is None:
            return await self._encode(target)
        try:
            attempt = await self._encode(target)
        except UmgError:
            raise refusal from None
        self._healing.check_change(target, attempt.call.body)
        return attempt

    async def _encode(self, target: Target) -> GenerationAttempt:
        admitted, sent = self._admitted, None
        face, continued = admitted.face, admitted.continued
        request, notes = admitted.request, admitted.notes
        if continued is not None:
            request, notes = continued.request_for(target)
        if self._summary is not None or self._truncation is not None or notes.context_edits is not None:
            sent = await self._shortened(request, notes, target)
            request, notes = sent.request, sent.notes
        elif self._reasoning is not None and self._may_lack_reasoning(request, target, self._reasoning):
            request, notes = await self._with_reasoning(request, notes, target, self._reasoning)
        source = request.source  # kept here: each step below would make a new wrapper of the message
        size = len(source.body) or request.ByteSize()
        try:
            if self._upstreams[target.channel.name].is_slow(request, size):
                attempt, objects = await asyncio.to_thread(self._prepare, request, notes, target)
            else:
                attempt, objects = self._prepare(request, notes, target)
            if objects:
                await self._check_ownership(objects, target)
            if sent is not None:
                self._report_changes(attempt, sent)
            wire_path = face.wire_path if face is not None else None
            finish_report(admitted.call, attempt.call.report, wire_path, notes.uncarried)
        except UmgError as error:
            raise self._with_caller_path(error) from None
        return attempt

    async def _shortened(self, request: pb.GenerateRequest, notes: RequestNotes, target: Target) -> SentConversation:
        """Return the request after the caller's edits. Reasoning is restored before, since edits may remove it."""
        is_truncated, management = False, None
        compaction = None if self._compaction is None or self._has_edits(request, target) else self._compaction
        if self._truncation is not None:
            whole, request = request, self._truncation.truncated(request)
            if is_truncated := request is not whole:
                notes = notes.with_edited("messages")
        summary = None if self._summary is None or self._compacts(target) else self._summary
        if compaction is not None:
            await compaction.decide()
            summary = compaction.pending
            if compaction.is_made:
                request, notes = compaction.compacted()
        if summary is not None:
            request, notes = summary.request(), notes.with_edited("messages")
        if self._reasoning is not None and self._may_lack_reasoning(request, target, self._reasoning):
            request, notes = await self._with_reasoning(request, notes, target, self._reasoning)
        if notes.context_edits is not None and not self._has_edits(request, target):
            (request, management), notes = await self._edit_conversation(request, notes.context_edits, notes)
        return SentConversation(request, notes, summary, is_truncated, management, compaction)

    def _report_changes(self, attempt: GenerationAttempt, sent: SentConversation) -> None:
        """Record in the attempt and its report how the conversation was shortened."""
        report, attempt.summary = attempt.call.report, sent.summary
        if compaction := sent.compaction:
            attempt.compaction = compaction if compaction.is_made or sent.summary is not None else None
        if (sent.summary is not None and sent.summary.is_cut) or (compaction is not None and compaction.is_cut):
            report.drop("messages", "without the oldest turns")
        if sent.is_truncated:
            report.perform("truncation")
        if sent.management is not None:
            attempt.context_management = sent.management
            _report_edits(report, sent.management, compaction)

    def _prepare(
        self, given: pb.GenerateRequest, notes: RequestNotes, target: Target
    ) -> tuple[GenerationAttempt, Sequence[AccountObject]]:
        """Encode the request `given` for the channel. Return the attempt, and the references to objects of the provider
        that must belong to this caller. References in dropped fields are left out, and so is the continued response,
        whose owner was checked.
        """
        admitted, quirks = self._admitted, self._healing.quirks_of(target)
        channel, name = target.channel, target.channel.name
        is_as_sent = admitted.face is not None and given is admitted.request and not notes.edited
        request = given
        if self._state_channels or not is_as_sent:  # states in a caller's body name no channel
            request = reasoning_state.without_states_of_others(given, name, self._state_channels)
        if lacks_state := request is not given:
            notes = notes.with_edited("messages")
        if (limit := admitted.call.charges.output_limit) is not None:
            request, notes, quirks = _limited(request, limit), notes.with_edited(OUTPUT_LIMIT), quirks.limited(limit)
        if quirks.takes_cache_key and lacks_key(request):
            key = make_key(admitted.access.caller.affinity_id, admitted.full_request, admitted.call.arrival.metadata)
            notes = notes.with_cache_key(key)
        if quirks.takes_client_headers:
            notes = notes.with_client_headers(admitted.call.arrival.metadata)
        if quirks.takes_session_header and (affinity := self._affinity()):
            notes = notes.with_conversation(f"umg-{affinity.hex()}")
        call = self._upstreams[name].prepare(request, target.model, notes, stream=self._admitted.stream, quirks=quirks)
        if lacks_state:
            call.report.drop("state")
        attempt = GenerationAttempt(channel=name, target=target, call=call, request=request)
        if channel.prompt_caching == "explicit":
            self._store_prompt(attempt)
        if channel.shared_objects or not (objects := account_objects(request, channel.protocols, notes)):
            return attempt, ()
        known = {"previous_response_id"} if isinstance(admitted.continued, Continued) else set[str]()
        known.update(call.report.dropped)
        return attempt, [named for named in objects if named.field not in known]

    def _affinity(self) -> bytes:
        admitted, call = self._admitted, self._admitted.call
        known = call.affinity
        return known or find_affinity(admitted.access.caller.affinity_id, admitted.full_request, call.arrival.metadata)

    def _compacts(self, target: Target) -> bool:
        name = self._same_format(self._admitted.request, target)
        if name is None or self._summary is None or not self._summary.is_made_by(target.channel.name):
            return False
        return self._healing.quirks_of(target).by_protocol.get(name, NO_QUIRKS).compaction is True

    def _has_edits(self, request: pb.GenerateRequest, target: Target) -> bool:
        """Return whether the provider itself makes the edits of the conversation that the request contains."""
        protocol = self._same_format(request, target)
        if protocol is None:
            return False
        known = self._healing.quirks_of(target)
        if self._compaction is not None and self._compaction.edit.is_sealed:
            return known.by_protocol.get(protocol, NO_QUIRKS).compaction is True
        return known.of(protocol, protocol).takes(EDITS_FIELD)

    async def _edit_conversation(
        self, request: pb.GenerateRequest, edits: Sequence[ContextEdit], notes: RequestNotes
    ) -> tuple[EditedConversation, RequestNotes]:
        """Return the request after the edits of its conversation, the report of the edits, and changed `notes`."""
        for edit in edits:
            if isinstance(edit, UnknownEdit):
                problem = f"`{echo(edit.type)}` is no edit that is known here, and this model's provider has none"
                message = f"`{edit.field}`: {problem}; leave it out or choose another model"
                raise UmgError(pb.ERROR_REASON_UNSUPPORTED_FIELD, message, field=edit.field)
        model = self._admitted.model
        counter = TokenCounter(model.family, model.tokenizer)
        if may_edit(request, edits) and counter.needs_thread(request):
            edited = await asyncio.to_thread(edited_conversation, request, edits, counter)
        else:
            edited = edited_conversation(request, edits, counter)
        notes = msgspec.structs.replace(notes, uncarried=[name for name in notes.uncarried if name != EDITS_FIELD])
        return edited, notes if edited.request is request else notes.with_edited("messages", EDITS_FIELD)

    def _store_prompt(self, attempt: GenerationAttempt) -> None:
        """Let the attempt use the longest stored beginning of its prompt when sent, if the prompt has cache marks."""
        storage, target, call = attempt.call.storage, attempt.target, self._admitted.call
        if storage is None or (prompt := self._stored.divided(storage, target, call)) is None:
            return

        def apply() -> None:
            attempt.stored = self._stored.apply(prompt, storage, target, call)

        storage.before_send(apply)

    def _may_lack_reasoning(self, request: pb.GenerateRequest, target: Target, reasoning: ReasoningStore) -> bool:
        """Return whether to look up stored reasoning: the channel needs some that the client may not have sent."""
        if self._admitted.continued is not None and (
            request.previous_response_id or request.thread.previous_response_id
        ):
            return False  # the provider has the earlier conversation
        if (source_format := self._same_format(request, target)) is not None:
            # clients of some formats do not send it back; only a model whose provider expects it or has returned a
            # state, or with reasoning turned on, is likely to need it
            if TEXT_FORMATS[source_format].has_unreturned_reasoning is None:
                return False
            if not (
                request.HasField("reasoning")
                or source_format in target.quirks.expecting_reasoning
                or reasoning.has_states_of(target.channel.name)
            ):
                return False
        return reasoning_state.needs(request)

    async def _with_reasoning(
        self, request: pb.GenerateRequest, notes: RequestNotes, target: Target, reasoning: ReasoningStore
    ) -> DecodedRequest[pb.GenerateRequest]:
        """Return the request with the stored reasoning that the client has not sent back, if the channel accepts it."""
        protocols = target.channel.protocols
        same_format = self._same_format(request, target)
        protocol = same_format or next((name for name in protocols if name in TEXT_UPSTREAMS), "")
        restored = await reasoning.restore(
            self._admitted.access.caller.key_id,
            request,
            target.channel.name,
            text_format=None if target.quirks.accepts_reasoning(protocol) else protocol,
            texts_of_others=protocol in target.quirks.expecting_reasoning,
            by_message=same_format is not None,
        )
        if same_format is not None and restored is not request:
            notes = notes.with_edited(reasoning_state.RESTORED_REASONING)
        return DecodedRequest(restored, notes)

    def _same_format(self, request: pb.GenerateRequest, target: Target) -> str | None:
        name = request.source.format
        if name not in target.channel.protocols:
            return None
        known = self._healing.quirks_of(target).by_protocol.get(name, NO_QUIRKS)
        return None if refusal_of(request, known, name) else name

    async def _check_ownership(self, objects: Sequence[AccountObject], target: Target) -> None:
        """Raise UmgError: OBJECT_NOT_FOUND unless the channel made all the objects for this caller. If the owner of one
        may not be in the database yet, it is UNAVAILABLE.
        """
        owners = dict[str, str]()
        if self._reasoning is not None:
            owner = self._admitted.access.caller.key_id
            owners = await self._reasoning.channels_of(owner, [named.id for named in objects])
            absent = next((named for named in objects if named.id not in owners), None)
            if absent is not None and self._reasoning.may_lack_rows:
                raise unwritten(absent.id, field=absent.field)
        check_ownership(objects, owners, target.channel.name)

    def _with_caller_path(self, error: UmgError) -> UmgError:
        """Return the error with the path of its field in the caller's own request."""
        path = caller_path = error.metadata.get("field", "")
        earlier = len(self._admitted.full_request.messages) - len(self._admitted.request.messages)
        found = MESSAGE_PATH.match(path)
        if found is not None and (index := int(found[1]) - earlier) >= 0:
            caller_path = f"messages[{index}]{path[found.end() :]}"
        caller_path = self._admitted.notes.opaque_paths.get(caller_path, caller_path)
        return (
            error
            if caller_path == path
            else error.with_message(error.message.replace(path, caller_path), field=caller_path)
        )


def _report_edits(report: Report, management: pb.ContextManagement, compaction: InlineCompaction | None) -> None:
    report.forget(EDITS_FIELD)  # the provider is not sent the member, of which nothing is lost
    if management.applied_edits or (compaction is not None and compaction.is_made):
        report.perform(EDITS_FIELD)
    if compaction is not None and compaction.has_failed:
        report.drop(compaction.edit.field, f"without {compaction.edit.type}")


def _limited(request: pb.GenerateRequest, limit: int) -> pb.GenerateRequest:
    limited = pb.GenerateRequest()
    limited.CopyFrom(request)
    limited.max_output_tokens = limit
    return limited
