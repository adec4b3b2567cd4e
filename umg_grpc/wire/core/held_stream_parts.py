"""Parts of a stream (tool calls, media) that an encoder holds until they are complete."""

from umg_grpc.v1 import pb
from umg_grpc.wire.core.streamed_text_buffers import Pieces


class HeldPart:
    """Tool call or media that is encoded when complete. Its pieces are joined once at the end, for speed and memory."""

    def __init__(self, started: pb.Part) -> None:
        self.part = pb.Part()
        self.part.CopyFrom(started)
        self._inputs = Pieces()
        self._data: list[bytes] = []
        self.size = started.ByteSize()  # in bytes, approximately

    def append_input(self, text: str) -> int:
        """Append text to the input of a tool call. Return the number of bytes by which the held content grew."""
        self._inputs.append(text)
        self.size += len(text)
        return len(text)

    def append_data(self, data: bytes) -> int:
        """Append bytes to media. Return the number of bytes by which the held content grew."""
        self._data.append(data)
        self.size += len(data)
        return len(data)

    def whole(self) -> pb.Part:
        if self._inputs and self.part.tool_call.WhichOneof("input") == "text":
            self.part.tool_call.text += self._inputs.text()
        elif self._inputs:
            self.part.tool_call.arguments_json += self._inputs.text()
        if self._data:
            self.part.media.data += b"".join(self._data)
        return self.part
