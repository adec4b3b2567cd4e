"""Tool calls in passed-through chat streams, joined as the SDKs join them: by index, with all texts appended."""

from dataclasses import dataclass

import msgspec
import pytest

from tests.pairs.chains.habits import HABITS, Habit
from umg_grpc.v1 import pb
from umg_grpc.wire import TEXT_FORMATS

CALLING = [habit for habit in HABITS if habit.protocol == "chat" and habit.chunks and habit.effect.calls]


@dataclass
class Joined:
    """Tool call as an SDK joins its pieces."""

    id: str = ""
    name: str = ""
    arguments: str = ""


def joined(stream: bytes) -> dict[int, Joined]:
    """Return the calls of a stream by their index."""
    calls = dict[int, Joined]()
    for line in stream.split(b"\n"):
        if not line.startswith(b"data: {"):
            continue
        for choice in msgspec.json.decode(line[6:])["choices"]:
            for piece in choice["delta"].get("tool_calls") or []:
                call = calls.setdefault(piece["index"], Joined())
                function = piece.get("function") or {}
                call.id += piece.get("id") or ""
                call.name += function.get("name") or ""
                call.arguments += function.get("arguments") or ""
    return calls


@pytest.mark.parametrize("size", [40, 1 << 20])
@pytest.mark.parametrize("habit", CALLING, ids=lambda habit: habit.id)
def test_clients_that_append_all_texts_get_the_calls(habit: Habit, size: int) -> None:
    decoder = TEXT_FORMATS["chat"].passthrough_decoder(pb.GenerateRequest(model="m"))
    data = habit.data
    pieces = [data[at : at + size] for at in range(0, len(data), size)]
    messages = [message for piece in pieces if (message := decoder.feed(piece)) is not None]
    last = decoder.close()
    calls = joined(b"".join(message.source_frames for message in (*messages, *([last] if last else []))))
    if not calls:
        assert habit.id == "form-function-call", "the older form has no list of calls"
        return
    found = [(call.name, msgspec.json.decode(call.arguments)) for _, call in sorted(calls.items())]
    assert found == habit.effect.calls
    assert len({call.id for call in calls.values()} - {""}) == len(calls)
