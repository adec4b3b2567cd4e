"""State of the parts of a streamed response while they are encoded as content blocks."""

import msgspec

from umg_grpc.v1 import pb
from umg_grpc.wire.core.tool_argument_objects import BLANK_CHARACTERS


class OpenPart:
    """Part that is being written as blocks. Arguments are kept until it is known whether they are an object."""

    def __init__(self, index: int, part: pb.Part) -> None:
        self.index = index
        self.part = part  # as far as it is known
        self.kind = part.WhichOneof("kind")
        self.block: int | None = None  # index of its open block
        # index of the reasoning text written last; summaries have the indices -1, -2, ...
        self.piece: int | None = None
        self.held: list[str] = []  # arguments that may not be an object
        self.unreadable = False  # whether they are known not to be an object
        self.arguments: list[str] = []  # arguments that were written
        self.checked_pieces = 0  # length of `arguments` when they were last found incomplete
        self.size = 0  # bytes of media
        self.retained_bytes = 0  # bytes of arguments

    @property
    def interruptible(self) -> bool:
        """Whether another part may begin before this one ends. True for a text: its rest goes into another block."""
        return self.kind in {"text", "refusal"}

    def first_arguments(self, text: str) -> str:
        """Add a piece of arguments, and return all once they begin an object. Return "" for blanks and other JSON."""
        self.held.append(text)
        stripped = text.lstrip(BLANK_CHARACTERS)
        self.unreadable = self.unreadable or (stripped != "" and stripped[0] != "{")
        return "".join(self.held) if stripped and not self.unreadable else ""

    def is_complete(self) -> bool:
        """Return whether a call's arguments are one object. They are decoded again once their length doubled, since
        this is called for each event of a waiting part.
        """
        pieces = len(self.arguments)
        if self.kind != "tool_call" or pieces < max(1, 2 * self.checked_pieces):
            return False
        self.checked_pieces = pieces
        try:
            msgspec.json.decode("".join(self.arguments), type=dict[str, msgspec.Raw])
        except (ValueError, RecursionError):
            return False
        return True

    def update(self, part: pb.Part) -> None:
        """Replace the part by its final version. Media keep the received transcript if the final version has none."""
        transcript = self.part.media.transcript if self.kind == "media" else ""
        self.part = _copied(part)
        if self.kind == "media":
            self.part.media.transcript = part.media.transcript or transcript

    def set_state(self, state: pb.ReasoningState) -> None:
        self.part = _copied(self.part)
        self.part.state.CopyFrom(state)

    def append_transcript(self, transcript: str) -> None:
        if transcript:
            self.part = _copied(self.part)
            self.part.media.transcript += transcript


def _copied(part: pb.Part) -> pb.Part:
    copy = pb.Part()
    copy.CopyFrom(part)
    return copy
