"""Detection of the first output of a stream, until which the caller has nothing and another channel can be tried."""

from umg_grpc.v1 import pb
from umg_grpc.wire.text_format_interface import TextFormat

NO_OUTPUT = frozenset({"started", "usage", "opaque", None})
"""Kinds of events that contain no output of the model; None is a kind that this version does not have."""


def is_without_output(passed: TextFormat | None, message: pb.StreamGenerateResponse) -> bool:
    """Return whether a message of a stream contains no output of the model, so that the message can be held back.
    `passed`: format of the caller's body, in which the message's own frames (`source_frames`) are; None without it.
    """
    if frames := message.source_frames:  # each access to them is a copy
        return passed is not None and passed.has_no_output(frames)
    return all(_has_no_output(event) for event in message.events)


def _has_no_output(event: pb.GenerateEvent) -> bool:
    kind = event.WhichOneof("kind")
    if kind != "part_started":
        return kind in NO_OUTPUT
    part = event.part_started
    match part.WhichOneof("kind"):
        case "text":
            return not part.text.text
        case "reasoning":
            return not part.reasoning.texts and not part.reasoning.summaries
        case _:  # any other part is output
            return False
