"""Driver of the guards: runs the guards of a call one after the other, each within its time limit, applies their
decisions, and records them.
"""

import asyncio
import time
from collections.abc import Sequence
from typing import Generic, NamedTuple, TypeVar

import msgspec
import structlog
from google.protobuf.message import Message
from structlog.typing import FilteringBoundLogger

from umg_grpc.base.errors import UmgError
from umg_grpc.base.printable_text import printable
from umg_grpc.service.guardrails.guard_interface import ALLOWED, Guard, GuardFailedError
from umg_grpc.service.guardrails.guard_plan import GuardPlan
from umg_grpc.service.guardrails.guarded_texts import FoundText, is_json, replace_texts, texts_of
from umg_grpc.service.pipeline.call import Call, GuardFacts
from umg_grpc.v1 import pb
from umg_grpc.wire.core.gateway_headers import GUARDS

ALLOW, MASKED, REFUSED, FAILED_OPEN, FAILED_CLOSED = "allow", "masked", "refused", "failed-open", "failed-closed"
DECISIONS = (ALLOW, MASKED, FAILED_OPEN, REFUSED, FAILED_CLOSED)
"""Decisions in the order in which a later one replaces an earlier one of the same guard in the record of a call."""
PHASES = {"request": pb.GUARD_PHASE_REQUEST, "response": pb.GUARD_PHASE_RESPONSE}
CONTENTS = {
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
    """Message that the guards let pass."""

    message: MessageT
    """The given message if no guard has changed it, else a copy."""
    changed: frozenset[str]
    """Names of its fields that the guards have changed."""


class GuardRun(msgspec.Struct, eq=False):
    """Guards of one phase of a call."""

    plan: GuardPlan
    call: Call
    model: str
    phase: str
    """`request` or `response`."""

    @property
    def guards(self) -> Sequence[Guard]:
        return self.plan.request if self.phase == "request" else self.plan.response

    async def check(self, message: MessageT, *, is_part: bool = False) -> Checked[MessageT]:
        """Run the guards on a whole message. `is_part`: whether it is a part of a stream, in which only texts are
        checked. Raise UmgError: GUARD_REFUSED, and UNAVAILABLE for a guard that failed and is closed then.
        """
        given, changed = message, set[str]()
        for guard in self.guards:
            found = [*texts_of(message)]
            request = self.request_to(guard, [each.guarded for each in found])
            if guard.row.content and not is_part:
                request.content.CopyFrom(content_of(message))
            elif not found:
                continue
            response = await self.decision(guard, request)
            if response.HasField("replace"):
                if message is given:
                    message = type(given)()
                    message.CopyFrom(given)
                    found = [*texts_of(message)]
                changed |= self._replace(guard, message, found, response.replace)
        return Checked(message, frozenset(changed))

    def request_to(self, guard: Guard, texts: Sequence[pb.GuardedText]) -> pb.CheckRequest:
        """Return the request of a check of texts."""
        caller = self.call.caller
        return pb.CheckRequest(
            guard=guard.row.name,
            phase=PHASES[self.phase],
            operation=self.plan.operation,
            model=self.model,
            request_id=self.call.arrival.request_id,
            key_id=caller.key_id,
            key_name=caller.name,
            texts=texts,
        )

    async def decision(self, guard: Guard, request: pb.CheckRequest) -> pb.CheckResponse:
        """Return the decision of a guard, and record it: that it allows the content after a failure of a guard that is
        open then. Raise UmgError for a refusal, and for a failure of a guard that is closed then.
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
        except TimeoutError:
            return self._fail(guard, f"no decision within {seconds:g} seconds", began)
        except GuardFailedError as error:
            return self._fail(guard, str(error), began)
        self._note(guard, response)
        if made == "refuse":
            self._record(guard, REFUSED, began)
            raise self._refused(guard, response.refuse)
        self._record(guard, MASKED if made == "replace" else ALLOW, began)
        return response

    def replaced(self, guard: Guard, given: pb.GuardedText, replace: pb.GuardReplace) -> str:
        """Return the text that a guard puts in the place of the only checked one. A replacement that does not fit is a
        failure of the guard.
        """
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
        self, guard: Guard, message: Message, found: Sequence[FoundText], replace: pb.GuardReplace
    ) -> frozenset[str]:
        """Change a message as a guard demands."""
        texts = {each.path: each.text for each in replace.texts}
        changed = frozenset[str]()
        try:
            if replace.HasField("content"):
                changed = _replace_content(message, replace.content)
                found = [*texts_of(message)]
            replace_texts(found, texts)
        except ValueError as error:
            self._fail(guard, str(error), time.perf_counter())
            return changed
        return changed | {path.partition(".")[0].partition("[")[0] for path in texts}

    def _fail(self, guard: Guard, cause: str, began: float) -> pb.CheckResponse:
        """Record a failure of a guard. Return that it allows the content if it is open then, else raise UmgError."""
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
            return ALLOWED
        message = f"the guard `{name}`, which checks the {self.phase}, is not available; repeat the call later"
        raise UmgError(pb.ERROR_REASON_UNAVAILABLE, message, guard=name)

    def _refused(self, guard: Guard, refusal: pb.GuardRefuse) -> UmgError:
        """Return the error for content that a guard refuses. It is no failure of the channel, and has no fallback."""
        name, reason = guard.row.name, printable(refusal.reason)[:MAX_REASON]
        remedy = "change the request" if self.phase == "request" else "the caller gets nothing of it"
        message = f"the guard `{name}` refuses the {self.phase}{f': {reason}' if reason else ''}; {remedy}"
        metadata = {"guard": name, "phase": self.phase}
        if refusal.category:
            metadata["category"] = printable(refusal.category)[:MAX_NOTE_NAME]
        return UmgError(pb.ERROR_REASON_GUARD_REFUSED, message, **metadata)

    def _record(self, guard: Guard, decision: str, began: float) -> None:
        decisions, name = self._facts.decisions, f"{self.phase}:{guard.row.name}"
        self.plan.note(guard.row.name, self.phase, decision, time.perf_counter() - began)
        decisions[name] = max(decisions.get(name, ALLOW), decision, key=DECISIONS.index)
        self.call.headers[GUARDS] = ", ".join(self._facts.described)

    @property
    def _facts(self) -> GuardFacts:
        facts = self.call.facts
        facts.guards = facts.guards or GuardFacts()
        return facts.guards

    def _note(self, guard: Guard, response: pb.CheckResponse) -> None:
        notes = self._facts.notes
        for name, value in sorted(response.annotations.items())[: max(0, MAX_NOTES - len(notes))]:
            notes[printable(f"{guard.row.name}.{name}")[:MAX_NOTE_NAME]] = printable(value)[:MAX_NOTE]


def clear_field(message: Message, name: str) -> None:
    """Clear a field of a message, if its type has the field."""
    if name in message.DESCRIPTOR.fields_by_name:
        message.ClearField(name)


def content_of(message: Message) -> pb.GuardedContent:
    """Return the content of a check with a message, without the caller's body."""
    content = pb.GuardedContent()
    if (field := CONTENTS.get(message.DESCRIPTOR.full_name)) is not None:
        copy = getattr(content, field)
        copy.CopyFrom(message)
        for name in OF_GATEWAY:
            clear_field(copy, name)
    return content


def _replace_content(message: Message, content: pb.GuardedContent) -> frozenset[str]:
    """Replace fields of a message by those of a guard's."""
    kind = content.WhichOneof("message")
    if kind is None or kind != CONTENTS.get(message.DESCRIPTOR.full_name):
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
