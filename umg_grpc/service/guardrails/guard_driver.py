"""Driver of guards: it runs them in order, each within its time limit, and applies and records their decisions."""

import asyncio
import time
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Generic, NamedTuple, TypeVar

import msgspec
import structlog
from google.protobuf.message import Message
from structlog.typing import FilteringBoundLogger

from umg_grpc.base.errors import UmgError
from umg_grpc.base.printable_text import printable
from umg_grpc.service.guardrails.guard_interface import ALLOW_RESPONSE, Guard, GuardFailedError
from umg_grpc.service.guardrails.guard_selection import GuardPlan
from umg_grpc.service.guardrails.guarded_bodies import (
    SOURCE_FIELD,
    FoundMember,
    edit_body,
    unread_members,
    unread_paths,
)
from umg_grpc.service.guardrails.guarded_texts import Found, fit_parts, is_json, replace_texts, texts_of
from umg_grpc.service.pipeline.call_state import Call, GuardFacts
from umg_grpc.v1 import pb
from umg_grpc.wire.core.gateway_headers import GUARDS_HEADER
from umg_grpc.wire.facts_beside_request import NO_NOTES, RequestNotes
from umg_grpc.wire.text_format_interface import BIG_BYTES

ALLOW_DECISION, MASKED_DECISION, REFUSED_DECISION = "allow", "masked", "refused"
FAILED_OPEN, FAILED_CLOSED = "failed-open", "failed-closed"
GUARD_DECISIONS = (ALLOW_DECISION, MASKED_DECISION, FAILED_OPEN, REFUSED_DECISION, FAILED_CLOSED)
"""Decisions in the order in which a later one replaces an earlier one of the same guard in the record of a call."""
GUARD_PHASES = {"request": pb.GUARD_PHASE_REQUEST, "response": pb.GUARD_PHASE_RESPONSE}
CONTENT_FIELDS = {
    field.message_type.full_name: field.name
    for field in pb.GuardedContent.DESCRIPTOR.fields
    if field.message_type is not None
}
"""Name of the message of an operation -> its field in the content of a check."""
REPLACED_FIELDS = ("messages", "instructions", "tools")
"""Fields of a request for text that a guard may replace."""
OF_GATEWAY = ("source", "face_hints")
"""Fields that no guard gets: the caller's body, and details of it for the gateway."""
MAX_REASON, MAX_NOTES, MAX_NOTE_NAME, MAX_NOTE = 1000, 16, 64, 256

MessageT = TypeVar("MessageT", bound=Message)
logger: FilteringBoundLogger = structlog.get_logger(__name__)


class Checked(NamedTuple, Generic[MessageT]):
    """Message after the guards have allowed it, with the changes that they made."""

    message: MessageT
    """The given message if no guard has changed it, else a copy."""
    changed: frozenset[str]
    """Names of its fields that the guards have changed."""


class GuardRun(msgspec.Struct, eq=False):
    """Guards that run on the request, or on the response, of one call."""

    plan: GuardPlan
    call: Call
    model: str
    phase: str
    """`request` or `response`."""
    notes: RequestNotes = msgspec.field(default_factory=lambda: NO_NOTES)
    rest: Found | None = None
    """Texts of a passed-through response that its message does not contain; None if there are none."""

    @property
    def guards(self) -> Sequence[Guard]:
        return self.plan.request if self.phase == "request" else self.plan.response

    async def check(self, message: MessageT, *, is_part: bool = False) -> Checked[MessageT]:
        """Run the guards on a message. `is_part`: the message is a part of a stream, in which only texts are checked.
        Raise UmgError: GUARD_REFUSED; UNAVAILABLE if a guard with `on_failure: closed` failed.
        """
        given, changed = message, set[str]()
        unread = await self._unread_paths(message)
        found = [*self._texts_of(message, unread)]
        for guards in side_by_side(self.guards):
            requests = [
                (guard, self._request_about(guard, message, found, is_part=is_part))
                for guard in guards
                if found or (guard.row.content and not is_part)
            ]
            for (guard, _), response in zip(requests, await self._decisions(requests), strict=True):
                if not response.HasField("replace"):
                    continue
                if message is given:
                    message = type(given)()
                    message.CopyFrom(given)
                    found = [*self._texts_of(message, unread)]
                changed |= self._replace(guard, message, found, response.replace)
                found = [*self._texts_of(message, unread)]  # of the changed message, for the guards that follow
        return Checked(message, frozenset(changed))

    def _request_about(
        self, guard: Guard, message: Message, found: Sequence[Found], *, is_part: bool
    ) -> pb.CheckRequest:
        request = self.request_to(guard, [each.guarded for each in found])
        if guard.row.content and not is_part:
            request.content.CopyFrom(content_of(message))
        return request

    async def _decisions(self, requests: Sequence[tuple[Guard, pb.CheckRequest]]) -> Sequence[pb.CheckResponse]:
        """Return the decisions of guards that run at the same time. The first error ends the other checks."""
        if len(requests) == 1:
            return [await self.decision(*requests[0])]
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(self.decision(*each)) for each in requests]
        except BaseExceptionGroup as errors:
            raise errors.exceptions[0] from None
        return [task.result() for task in tasks]

    async def _unread_paths(self, message: Message) -> Sequence[str]:
        """Return the paths of the members of the caller's body that the request `message` does not contain."""
        if self.phase != "request" or (source := source_of(message)) is None:
            return ()
        if len(source.body) < BIG_BYTES:
            return unread_paths(source, self.notes)
        return await asyncio.to_thread(unread_paths, source, self.notes)

    def _texts_of(self, message: Message, unread: Sequence[str]) -> Iterator[Found]:
        yield from texts_of(message)
        if unread and (source := source_of(message)) is not None:
            yield from unread_members(source, unread)
        if self.rest is not None:
            yield self.rest

    def request_to(self, guard: Guard, texts: Sequence[pb.GuardedText]) -> pb.CheckRequest:
        """Return the request by which a guard checks texts."""
        caller = self.call.caller
        return pb.CheckRequest(
            guard=guard.row.name,
            phase=GUARD_PHASES[self.phase],
            operation=self.plan.operation,
            model=self.model,
            request_id=self.call.arrival.request_id,
            key_id=caller.key_id,
            key_name=caller.name,
            texts=texts,
        )

    async def decision(self, guard: Guard, request: pb.CheckRequest) -> pb.CheckResponse:
        """Return the decision of a guard, and record it. After a failure, a guard that is `open` allows the content.
        Raise UmgError if the guard refuses the content, or if a guard that is `closed` fails.
        """
        began, seconds = time.perf_counter(), min(guard.row.timeout, self.call.seconds_left())
        try:
            if guard.is_local:
                response = await guard.check(request)
            else:
                async with asyncio.timeout(seconds):
                    response = await guard.check(request)
            if (made := response.WhichOneof("decision")) is None:
                raise GuardFailedError("the response has no decision")
            if made == "replace" and not guard.row.replaces:
                raise GuardFailedError("it replaces texts in spite of `replaces: false`")
        except TimeoutError:
            return self._fail(guard, f"no decision within {seconds:g} seconds", began)
        except GuardFailedError as error:
            return self._fail(guard, str(error), began)
        self._note(guard, response)
        if made == "refuse":
            self._record(guard, REFUSED_DECISION, began)
            raise self._refused(guard, response.refuse)
        is_changed = bool(response.replace.texts) or response.replace.HasField("content")
        self._record(guard, MASKED_DECISION if is_changed else ALLOW_DECISION, began)
        return response

    def replaced(self, guard: Guard, given: pb.GuardedText, replace: pb.GuardReplace) -> str:
        """Return the replacement of the checked text. A replacement of any other text is a failure of the guard."""
        texts = {each.path: each.text for each in replace.texts}
        text = texts.get(given.path, given.text)
        if replace.HasField("content") or texts.keys() - {given.path}:
            self._fail(guard, "a window has one text only, which may be replaced", time.perf_counter())
        elif given.is_json and is_json(given.text) and not is_json(text):
            self._fail(guard, "the replacement is not JSON", time.perf_counter())
        else:
            return text
        return given.text

    def _replace(
        self, guard: Guard, message: Message, found: Sequence[Found], replace: pb.GuardReplace
    ) -> frozenset[str]:
        """Change a message as a guard requests. Return the names of the changed fields."""
        texts = {each.path: each.text for each in replace.texts}
        changed = frozenset[str]()
        try:
            if replace.HasField("content"):
                changed = _replace_content(message, replace.content)
                found = [*texts_of(message), *(each for each in found if isinstance(each, FoundMember))]
            replace_texts(found, texts)
        except ValueError as error:
            self._fail(guard, str(error), time.perf_counter())
            return changed
        if isinstance(message, pb.TranscribeResponse):
            fit_parts(message)
        if self.phase == "request":
            given = [each.guarded for each in found]
            _edit_source(message, [(each, texts[each.path]) for each in given if each.path in texts], changed)
        return changed | frozenset(map(_first_name, texts))

    def _fail(self, guard: Guard, cause: str, began: float) -> pb.CheckResponse:
        """Record the failure of a guard. Allow the content if the guard is `open`, otherwise raise UmgError."""
        name, is_open = guard.row.name, guard.row.on_failure == "open"
        logger.warning(
            "guard failed",
            request_id=self.call.arrival.request_id,
            guard=name,
            phase=self.phase,
            on_failure=guard.row.on_failure,
            cause=cause,
        )
        self._record(guard, FAILED_OPEN if is_open else FAILED_CLOSED, began)
        self._facts.has_failed = True
        if is_open:
            return ALLOW_RESPONSE
        message = f"the guard `{name}`, which checks the {self.phase}, is not available; repeat the call later"
        raise UmgError(pb.ERROR_REASON_UNAVAILABLE, message, guard=name)

    def _refused(self, guard: Guard, refusal: pb.GuardRefuse) -> UmgError:
        """Return the error for content that a guard refuses. No channel is at fault, so no fallback model is called."""
        name, reason = guard.row.name, printable(refusal.reason)[:MAX_REASON]
        remedy = "change the request" if self.phase == "request" else "no more of it is sent"
        message = f"the guard `{name}` refuses the {self.phase}{f': {reason}' if reason else ''}; {remedy}"
        metadata = {"guard": name, "phase": self.phase}
        if refusal.category:
            metadata["category"] = printable(refusal.category)[:MAX_NOTE_NAME]
        return UmgError(pb.ERROR_REASON_GUARD_REFUSED, message, **metadata)

    def _record(self, guard: Guard, decision: str, began: float) -> None:
        decisions, name = self._facts.decisions, f"{self.phase}:{guard.row.name}"
        self.plan.note(guard.row.name, self.phase, decision, time.perf_counter() - began)
        decisions[name] = max(decisions.get(name, ALLOW_DECISION), decision, key=GUARD_DECISIONS.index)
        self.call.headers[GUARDS_HEADER] = ", ".join(self._facts.described)

    @property
    def _facts(self) -> GuardFacts:
        facts = self.call.facts
        facts.guards = facts.guards or GuardFacts()
        return facts.guards

    def _note(self, guard: Guard, response: pb.CheckResponse) -> None:
        notes = self._facts.notes
        for name, value in sorted(response.annotations.items())[: max(0, MAX_NOTES - len(notes))]:
            notes[printable(f"{guard.row.name}.{name}")[:MAX_NOTE_NAME]] = printable(value)[:MAX_NOTE]


def side_by_side(guards: Sequence[Guard]) -> Iterator[Sequence[Guard]]:
    """Yield the guards in their order, in groups that run at the same time. Guards that may change texts are alone."""
    for replaces, group in groupby(guards, lambda guard: guard.row.replaces):
        together = tuple(group)
        yield from ((guard,) for guard in together) if replaces else (together,)


def clear_field(message: Message, name: str) -> None:
    """Clear a field of a message if the type of the message has this field."""
    if name in message.DESCRIPTOR.fields_by_name:
        message.ClearField(name)


def content_of(message: Message) -> pb.GuardedContent:
    """Return the content of a message that a guard checks: the message without the caller's body."""
    content = pb.GuardedContent()
    if (field := CONTENT_FIELDS.get(message.DESCRIPTOR.full_name)) is not None:
        copy = getattr(content, field)
        copy.CopyFrom(message)
        for name in OF_GATEWAY:
            clear_field(copy, name)
    return content


def source_of(message: Message) -> pb.SourceDocument | None:
    """Return the caller's or provider's body that a message contains; None if it contains none."""
    if SOURCE_FIELD not in message.DESCRIPTOR.fields_by_name or not message.HasField(SOURCE_FIELD):
        return None
    source: pb.SourceDocument = getattr(message, SOURCE_FIELD)
    return source


def without_source(message: MessageT) -> MessageT:
    """Return a copy of a message without the body that it contains."""
    copy = type(message)()
    copy.CopyFrom(message)
    clear_field(copy, SOURCE_FIELD)
    return copy


def _first_name(path: str) -> str:
    return path.partition(".")[0].partition("[")[0]


def _edit_source(message: Message, texts: Sequence[tuple[pb.GuardedText, str]], replaced: frozenset[str]) -> None:
    """Make the changes of a request's texts in the caller's body too. If the body has one of the texts in another form,
    remove the body, so that the request is encoded without it. `replaced`: fields that are replaced as a whole.
    """
    if (source := source_of(message)) is None:
        return
    encoded = {SOURCE_FIELD, *(REPLACED_FIELDS if isinstance(message, pb.GenerateRequest) else ())}
    edited = [(given, text) for given, text in texts if _first_name(given.path) not in encoded]
    if replaced - encoded or not edit_body(source, edited):
        message.ClearField(SOURCE_FIELD)


def _replace_content(message: Message, content: pb.GuardedContent) -> frozenset[str]:
    """Replace the fields of a message that a guard has returned anew. Return the names of the changed fields."""
    kind = content.WhichOneof("message")
    if kind is None or kind != CONTENT_FIELDS.get(message.DESCRIPTOR.full_name):
        raise ValueError("the replaced content is of another kind")
    given: Message = getattr(content, kind)
    names = REPLACED_FIELDS if isinstance(message, pb.GenerateRequest) else given.DESCRIPTOR.fields_by_name
    fixed = ("model", *OF_GATEWAY)
    changed = {name for name in names if name not in fixed and getattr(message, name) != getattr(given, name)}
    taken = type(given)()
    taken.CopyFrom(given)
    for field, _ in taken.ListFields():
        if field.name not in changed:
            taken.ClearField(field.name)
    for name in changed:
        message.ClearField(name)
    message.MergeFrom(taken)
    return frozenset(changed)
