"""Windows of a streamed text. The guards check the text one after the other, each in windows of its own. The last
characters of a window are held back, and checked once more with the next window.
"""

from collections.abc import Sequence

import msgspec

from umg_grpc.service.guardrails.guard_driver import GuardRun
from umg_grpc.service.guardrails.guard_interface import Guard
from umg_grpc.v1 import pb

CONTEXT_CHARACTERS = 200
"""Characters before a window that a guard gets to read."""


class _Stage(msgspec.Struct, eq=False):
    """One guard with the text that it has not allowed yet."""

    guard: Guard
    context: str = ""
    """End of the text that has passed."""
    held: str = ""
    """Text that has not passed yet."""


class GuardedText(msgspec.Struct, eq=False):
    """One text of a stream on its way through the guards of its response."""

    run: GuardRun
    path: str
    """Path of the text in the whole response."""
    is_json: bool = False
    is_whole: bool = False
    """Whether the text is checked at its end only."""
    is_changed: bool = False
    _stages: Sequence[_Stage] = ()
    _whole: list[str] = []

    def __post_init__(self) -> None:
        self._stages = [_Stage(guard) for guard in self.run.guards]

    @property
    def held_characters(self) -> int:
        """Number of characters that have not passed yet."""
        return sum(len(stage.held) for stage in self._stages) + sum(map(len, self._whole))

    async def feed(self, text: str) -> str:
        """Add a piece of the text. Return the part that all guards have allowed. Raise as `GuardRun.decision` does."""
        if self.is_whole:
            self._whole.append(text)
            return ""
        return await self._pass(text, is_last=False)

    async def close(self) -> str:
        """Check the last characters at the end of the text. Return the part that was held back until now."""
        text = "".join(self._whole)
        self._whole.clear()
        return await self._pass(text, is_last=True)

    async def _pass(self, text: str, *, is_last: bool) -> str:
        for stage in self._stages:
            stage.held += text
            text = await self._check(stage, is_last=is_last)
        return text

    async def _check(self, stage: _Stage, *, is_last: bool) -> str:
        """Run one guard on its text. Return the part of the text that it allows now."""
        guard, held = stage.guard, stage.held
        size = len(held) if is_last else guard.due(stage.context, held)
        if not size:
            return ""
        guarded = pb.GuardedText(path=self.path, text=held[:size], role=pb.ROLE_ASSISTANT, is_json=self.is_json)
        request = self.run.request_to(guard, [guarded])
        request.window.context, request.window.is_last = stage.context, is_last
        response = await self.run.decision(guard, request)
        checked = held[:size]
        if response.HasField("replace"):
            checked = self.run.replaced(guard, guarded, response.replace)
            self.is_changed = self.is_changed or checked != guarded.text
        passes = len(checked) if is_last else max(0, len(checked) - guard.hold_back)
        stage.held = checked[passes:] + held[size:]
        stage.context = (stage.context + checked[:passes])[-CONTEXT_CHARACTERS:]
        return checked[:passes]
