"""Detection of the first output in a stream: failover to another channel is possible until then."""

from collections.abc import Callable

from umg_grpc.v1 import pb
from umg_grpc.wire import FORMATS

NO_OUTPUT = frozenset({"started", "usage", "opaque", None})
"""Kinds of events without output of the model."""


def output_check(face: str) -> Callable[[pb.StreamGenerateResponse], bool]:
    """Return a function that tests whether a message has no output, in the format of the face."""
    face_format = FORMATS.get(face)

    def has_no_output(message: pb.StreamGenerateResponse) -> bool:
        if message.source_frames:
            return face_format is not None and face_format.has_no_output(message.source_frames)
        return all(_is_without_output(event) for event in message.events)

    return has_no_output


def _is_without_output(event: pb.GenerateEvent) -> bool:
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
