"""Streamed responses of operations with one request: completes the messages, and records the usage."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence

from google.protobuf.message import Message

from umg_grpc.operations import StreamedMethod
from umg_grpc.service.pipeline.call_state import Call
from umg_grpc.v1 import pb


class StreamedMessages:
    """State of a streamed response. If it breaks off after its first output, the call is charged by its request."""

    def __init__(
        self, call: Call, method: StreamedMethod[Message], record: Callable[[pb.Usage], Awaitable[None]]
    ) -> None:
        """Create the state of a stream. `record`: called with the response to record the call's usage in it."""
        self._call = call
        self._method = method
        self._record = record
        self._usage = pb.Usage()
        self._is_first = True
        self._has_output = False

    def feed(self, message: Message) -> bool:
        if self._is_first:
            self._is_first = False
            self._call.list_dropped(message)
        if (usage := self._method.usage(message)) is not None:
            self._usage = usage
        self._has_output = self._has_output or self._method.has_output(message)
        return True

    async def close(self) -> Sequence[Message]:
        await self._record(self._usage)
        return ()

    async def break_off(self, messages: AsyncGenerator[Message, None], error: BaseException) -> None:
        try:
            await messages.aclose()
        finally:
            if self._has_output:
                await self._record(self._usage)
