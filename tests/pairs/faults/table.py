"""Table of expected results: fault x upstream format x streamed or not x face, with the faulty channel alone and with a
healthy one behind it.
"""

import zlib
from collections.abc import Iterator
from dataclasses import dataclass

from tests.pairs.table import TEXT_CLIENTS, TEXT_FACES
from tests.proofs.soak.callers import CallResult, Outcome
from tests.proofs.soak.questions import EMBED, GENERATE, GRPC, HTTP, IMAGE, IMAGE_BYTES, IMAGE_GROUP, RERANK, Question
from tests.support.providers.faulty import right_answers
from tests.support.providers.faulty.answer_encoding import send_right
from tests.support.providers.faulty.faults import FAULTS, Fault, Strikes
from tests.support.providers.faulty.image_answers import IMAGE_FORMATS, STREAMED_FORMATS
from tests.support.providers.faulty.right_answers import TEXT_FORMATS
from tests.support.providers.faulty.server import REFUSES, TAKES_NONE
from umg_grpc.v1 import pb
from umg_grpc.wire.errors.http_status import HTTP_STATUS, PROVIDERS_OWN

FORMATS = (*right_answers.FORMATS, *IMAGE_FORMATS)
ALONE, BEHIND = "alone", "a healthy one behind it"
WAYS = (ALONE, BEHIND)

UNREACHABLE = (
    Fault(REFUSES, send_right, Strikes.BEFORE, Strikes.BEFORE, 502),
    Fault(TAKES_NONE, send_right, Strikes.BEFORE, Strikes.BEFORE, 504),
)
"""Faults of an address without a server."""
ALL = (*UNREACHABLE, *FAULTS.values())


@dataclass(frozen=True)
class Case:
    """One call, and its expected result."""

    fault: Fault
    upstream: str
    question: Question
    way: str
    number: int

    @property
    def id(self) -> str:
        return f"{self.fault.name}: {self.question.id} by {self.upstream}, {self.way}"

    @property
    def model(self) -> str:
        """Model id of this case alone: the state of a channel after one case must not affect another."""
        return f"{self.fault.name}-{self.number}"

    @property
    def nonce(self) -> str:
        return f"{zlib.crc32(self.id.encode()):08x}{self.number:04x}"

    @property
    def strikes(self) -> Strikes:
        found = strikes(self.fault, self.upstream, streamed=self.question.stream)
        assert found is not None
        return found

    @property
    def expected(self) -> Outcome:
        """Expected outcome; FAILED for all errors before the first content."""
        match self.strikes:
            case Strikes.NEVER:
                return Outcome.RIGHT
            case Strikes.AFTER:
                return Outcome.CUT
        return Outcome.RIGHT if self.way == BEHIND and not self.fault.callers else Outcome.FAILED

    @property
    def status(self) -> int:
        """Expected HTTP status of an error; for gRPC, that of its reason."""
        status = STATED.get((self.fault.name, self.upstream), self.fault.status)
        if self.question.over != HTTP:
            return 400 if str(status) in PROVIDERS_OWN else status
        return 529 if status == 503 and self.question.format == "messages" else status

    def problem(self, called: CallResult) -> str:
        """Return a description of the difference from the expected result, "" for none."""
        outcome = Outcome.FAILED if called.outcome is Outcome.REFUSED else called.outcome
        if outcome is not self.expected:
            return f"{self.id}: {self.expected.value} was expected, {called.outcome.value}: {called.detail}"
        if outcome is not Outcome.FAILED:
            return ""
        if self.fault.begins and self.question.stream and status_of(called) == 200:
            return ""
        status, waits = status_of(called), float(called.headers.get("retry-after", 0))
        if status != self.status:
            return f"{self.id}: {self.status} was expected, {called.detail}"
        if waits != float(self.fault.retry_after or 0):
            return f"{self.id}: retry-after {self.fault.retry_after or 'none'} was expected, {waits}: {called.detail}"
        return ""


STATED = {(fault, name): 503 for fault in ("error-first", "error-before-content") for name in ("messages", "native")}
"""(fault, upstream format) -> HTTP status of the caller, where the code of the error states another one."""

OTHERWISE: dict[tuple[str, str], Strikes | None] = {
    ("no-end-marker", "chat"): Strikes.NEVER,  # the finish reason precedes the marker, which many leave out
    ("no-end-marker", "messages"): Strikes.NEVER,
    ("no-end-marker", "converse"): Strikes.NEVER,  # only the usage follows the reason for the end
    ("comments", "converse"): None,  # its streams are binary
    ("comments-for-ever", "converse"): None,
    ("byte-order-mark", "converse"): None,
    ("more-after-end", "native"): None,  # which has no end marker
    ("stream-for-whole", "chat"): Strikes.NEVER,  # events are gathered; a whole response is an event of these formats
    ("stream-for-whole", "native"): Strikes.NEVER,
    ("no-end-marker", "ark_images"): Strikes.NEVER,  # the event with the usage precedes the marker
}
"""(fault, upstream format) -> when the fault strikes, where formats differ."""


def strikes(fault: Fault, upstream: str, *, streamed: bool) -> Strikes | None:
    """Return when a fault strikes at a provider of the format."""
    usual = fault.strikes(streamed=streamed)
    return usual if usual is None else OTHERWISE.get((fault.name, upstream), usual)


def status_of(called: CallResult) -> int:
    """Return the HTTP status, 200 for a stream that an event ends as failed. For gRPC, the HTTP status of its reason."""
    first, _, rest = called.detail.partition(" ")
    if called.question.over == HTTP:
        return int(first[:3]) if first[:3].isdigit() else 200
    return HTTP_STATUS[pb.ErrorReason.Value(f"ERROR_REASON_{rest.partition(':')[0]}")]


def questions(fault: Fault, upstream: str) -> Iterator[Question]:
    """Yield questions in the upstream's own format, in another, and over gRPC. A provider's error is decoded alike for
    all faces: faults that differ only in their body are tested once.
    """
    other = _other(fault, upstream)
    own = Question(HTTP, FACES.get(upstream, upstream))
    face = upstream if upstream in TEXT_FACES else TEXT_FORMATS[0]
    if upstream in IMAGE_FORMATS:
        kind = IMAGE_QUESTIONS.get(upstream, IMAGE)
        selected = [
            Question(GRPC, kind, stream) for stream in (False, *([True] if upstream in STREAMED_FORMATS else ()))
        ]
        yield from (each for each in selected if strikes(fault, upstream, streamed=each.stream) is not None)
        return
    if upstream in FACES:
        selected = [own]
    elif upstream == "rerank":
        selected = [own, Question(GRPC, RERANK)]
    elif upstream not in TEXT_FORMATS:
        selected = [own, Question(HTTP, other), Question(GRPC, EMBED)]
    else:
        selected = [
            Question(over, name, stream)
            for over, name in ((HTTP, face), (HTTP, other), (GRPC, GENERATE))
            for stream in (False, True)
        ]
    for question in selected[: len(selected) // 3] if fault.name.endswith(("-empty", "-html")) else selected:
        if strikes(fault, upstream, streamed=question.stream) is not None:
            yield question


FACES = {"vertex_embeddings": "embeddings", "bedrock_embeddings": "embeddings", "bedrock_rerank": "rerank"}
"""Format that providers alone have -> the face of its question."""
IMAGE_QUESTIONS = {"umg_images": IMAGE_BYTES, "ark_images": IMAGE_GROUP}
"""Format of a provider -> its question, from which the provider recognizes its format."""


def _other(fault: Fault, upstream: str) -> str:
    formats = tuple(TEXT_CLIENTS) if upstream in TEXT_FORMATS else ("embeddings", "native_embeddings")
    others = [name for name in formats if name != upstream] or [upstream]
    return others[(zlib.crc32(fault.name.encode()) + FORMATS.index(upstream)) % len(others)]


def cases(upstream: str, way: str) -> list[Case]:
    """Return the cases of an upstream format.

    Of a faulty channel alone: all of the first face, which is the upstream's own where it has one, and of the second
    face and gRPC one the whole response and the other the stream, by turns, since both encode the same error. With a
    healthy channel behind it: a third of each fault's, since the next attempt does not depend on the face.
    """
    selected = list[tuple[Fault, Question]]()
    for place, fault in enumerate(ALL):
        every = list(questions(fault, upstream))
        kept = _by_turns(every, place + FORMATS.index(upstream)) if way == ALONE else every[place % 3 :: 3] or every[:1]
        selected += [(fault, question) for question in kept]
    return [Case(fault, upstream, question, way, number) for number, (fault, question) in enumerate(selected)]


def _by_turns(every: list[Question], turn: int) -> list[Question]:
    """Return questions of the first face, and of the others one for each of two forms, by turns."""
    first = [each for each in every if (each.over, each.format) == (every[0].over, every[0].format)]
    forms = [[each for each in every if each not in first and each.stream is form] for form in (False, True)]
    if not all(forms):
        return every
    return first + [each for at, others in enumerate(forms) for each in others[(turn + at) % 2 :: 2]]


__all__ = ["ALL", "FORMATS", "WAYS", "Case", "cases"]
