"""Streamed responses to conversations that the same call has compacted. The first part is the summary."""

from collections.abc import AsyncGenerator, Sequence

import msgspec

from umg_grpc.service.operations.generate.streamed_responses import StreamedText
from umg_grpc.v1 import pb

WITHOUT_PART = frozenset({"started", "usage", "finished"})
"""Events of a stream that belong to no part of the message."""


class CompactedStream(msgspec.Struct, eq=False):
    """Streamed response to a conversation that the same call has compacted. Its first part is the summary."""

    _response: StreamedText
    _block: Sequence[pb.GenerateEvent]
    _usage: pb.Usage  # of the summary

    def feed(self, message: pb.StreamGenerateResponse) -> bool:
        events = list[pb.GenerateEvent]()
        for event in message.events:
            kind = event.WhichOneof("kind")
            if kind == "usage":
                event.usage.compaction.CopyFrom(self._usage)
            elif not event.candidate_index and kind not in WITHOUT_PART:
                event.part_index += 1
            events.append(event)
            if kind == "started":
                events += self._block
        if len(events) != len(message.events):
            sent = pb.StreamGenerateResponse(events=events)
            message.ClearField("events")
            message.MergeFrom(sent)
        return self._response.feed(message)

    async def close(self) -> Sequence[pb.StreamGenerateResponse]:
        held = await self._response.close()
        for message in held:
            for event in message.events:
                if event.HasField("usage"):  # it may have been estimated
                    event.usage.compaction.CopyFrom(self._usage)
        return held

    async def break_off(self, messages: AsyncGenerator[pb.StreamGenerateResponse, None], error: BaseException) -> None:
        await self._response.break_off(messages, error)
