"""State of the parts of a streamed response while they are encoded as content blocks."""

import msgspec

from umg_grpc.v1 import pb
from umg_grpc.wire.core.tool_arguments import BLANK


class OpenPart:
    """Part of a streamed response of which content blocks are being written: its index, its content so far, its open
    block, and arguments that are kept until they are known to be a JSON object.
    """

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
        """Whether another part may begin before the end of this part, as is the case for texts: the rest of an
        interrupted text goes into another block.
        """
        return self.kind in {"text", "refusal"}

    def first_arguments(self, text: str) -> str:
        """Add a piece to the arguments of a tool call, and return all of them once they are known to begin a JSON
        object.
        Return "" as long as only blanks were received, and always if the arguments begin as any other JSON.
        """
        self.held.append(text)
        stripped = text.lstrip(BLANK)
        self.unreadable = self.unreadable or (stripped != "" and stripped[0] != "{")
        return "".join(self.held) if stripped and not self.unreadable else ""

    def is_complete(self) -> bool:
        """Return whether the part is a tool call whose arguments are complete, that is, are one JSON object.

        The arguments are checked again only after they have doubled in length, since this is called for every event of
        a part that waits for this part to end.
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
        """Replace the part by the provider's final version `part`. Of media the transcript received so far is kept if
        the final version has none.
        """
        transcript = self.part.media.transcript if self.kind == "media" else ""
        self.part = _copied(part)
        if self.kind == "media":
            self.part.media.transcript = part.media.transcript or transcript

    def set_state(self, state: pb.ReasoningState) -> None:
        """Set the reasoning state."""
        self.part = _copied(self.part)
        self.part.state.CopyFrom(state)

    def append_transcript(self, transcript: str) -> None:
        """Append text to the transcript of an audio part."""
        if transcript:
            self.part = _copied(self.part)
            self.part.media.transcript += transcript


def _copied(part: pb.Part) -> pb.Part:
    copy = pb.Part()
    copy.CopyFrom(part)
    return copy
