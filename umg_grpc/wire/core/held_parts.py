"""Parts of a stream that a format writes only when they are complete."""

from umg_grpc.v1 import pb
from umg_grpc.wire.core.text_buffers import Pieces


class HeldPart:
    """Tool call or media that is encoded only when complete: its pieces are joined once, not copied for each piece."""

    def __init__(self, started: pb.Part) -> None:
        self.part = pb.Part()
        self.part.CopyFrom(started)
        self._inputs = Pieces()
        self._data: list[bytes] = []
        self.size = started.ByteSize()  # in bytes, approximately

    def append_input(self, text: str) -> int:
        """Append text to the input of a tool call. Return the bytes that are held in addition."""
        self._inputs.append(text)
        self.size += len(text)
        return len(text)

    def append_data(self, data: bytes) -> int:
        """Append bytes to media. Return the bytes that are held in addition."""
        self._data.append(data)
        self.size += len(data)
        return len(data)

    def whole(self) -> pb.Part:
        """Return the complete part, with its pieces joined."""
        if self._inputs and self.part.tool_call.WhichOneof("input") == "text":
            self.part.tool_call.text += self._inputs.text()
        elif self._inputs:
            self.part.tool_call.arguments_json += self._inputs.text()
        if self._data:
            self.part.media.data += b"".join(self._data)
        return self.part
