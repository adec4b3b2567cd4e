"""Assignment of tool results to tool calls, since native bodies may lack the ids that pair a result with its call."""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

from umg_grpc.v1 import pb
from umg_grpc.wire.core.json_decoding import JsonObject
from umg_grpc.wire.core.tool_name_conversion import OpenCalls


def pair_results(messages: Iterable[pb.Message]) -> None:
    """Set the missing id of each tool result to that of its tool's first unanswered call in the message before: clients
    return calls with ids, but results without.
    """
    waiting, answered = dict[str, deque[str]](), set[str]()
    for message in messages:
        calls = [part.tool_call for part in message.parts if part.HasField("tool_call")]
        if calls:
            waiting, answered = {}, set()
        for call in calls:
            if call.call_id:
                waiting.setdefault(call.name, deque()).append(call.call_id)
        for part in message.parts if waiting else ():
            if not part.HasField("tool_result"):
                continue
            result = part.tool_result
            ids = waiting.get(result.name)
            while not result.call_id and ids:
                if (call_id := ids.popleft()) not in answered:
                    result.call_id = call_id
            answered.add(result.call_id)


@dataclass(slots=True)
class Result:
    """Encoded tool result in a message, before it is paired with the call to which it belongs."""

    call_id: str
    name: str
    fields: JsonObject  # `functionResponse` without id and name
    fallback: list[object]  # content for a result without a call


class UnansweredCalls:
    """Tool calls in one message of the model, with the results that are already assigned to them."""

    def __init__(self, calls: list[pb.ToolCall]) -> None:
        self.answers: list[JsonObject | None] = [None] * len(calls)  # `functionResponse` of each, without id and name
        self._by_id, self._by_name = dict[str, list[int]](), OpenCalls()
        for position, call in enumerate(calls):
            self._by_name.add(call.name, str(position))
            if call.call_id:
                self._by_id.setdefault(call.call_id, []).append(position)

    def answer(self, result: Result) -> bool:
        """Assign a result to the call with its id, else to one of its tool, else to any. Return False without one."""
        position = self._of_id(result.call_id) if result.call_id else self._of_name(result.name)
        if position is None:
            return False
        self.answers[position] = result.fields
        return True

    def _of_id(self, call_id: str) -> int | None:
        positions = self._by_id.get(call_id, ())
        return next((position for position in positions if self.answers[position] is None), None)

    def _of_name(self, name: str) -> int | None:
        while key := self._by_name.answered(name):
            if self.answers[int(key)] is None:
                return int(key)
        return None
