"""Detection of the first output in a stream: until then the call can fail over to another channel."""

from umg_grpc.v1 import pb
from umg_grpc.wire.text_format import TextFormat

NO_OUTPUT = frozenset({"started", "usage", "opaque", None})
"""Kinds of events without output of the model."""


def is_without_output(face: TextFormat | None, message: pb.StreamGenerateResponse) -> bool:
    """Return whether a message of a stream has no output yet. `face`: format of the caller, if the message has frames
    of it.
    """
    if frames := message.source_frames:  # each access to them is a copy
        return face is not None and face.has_no_output(frames)
    return all(_has_no_output(event) for event in message.events)


def _has_no_output(event: pb.GenerateEvent) -> bool:
    """Return whether the event has no output, for example the start of an empty part."""
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
